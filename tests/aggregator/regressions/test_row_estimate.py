"""Weights from noisy sums over private rows: exact without noise, mixed by variances with it, and useful."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.regressions.row_sessions import PublicMoment, estimate, public_share
from federation.mechanisms.sums.row_sums import RowStatistic
from federation.numerics.rows import within_norm

WEIGHTS = np.array([0.6, -0.3, 0.1])


def world(seed=0, count=2000):
    random = np.random.default_rng(seed)
    rows = within_norm(np.column_stack([random.normal(scale=0.4, size=(count, 2)), np.full(count, 0.6)]))
    return rows, np.clip(rows @ WEIGHTS + 0.1 * random.normal(size=count), -1, 1)


ROWS, LABELS = world()
PUBLIC = PublicMoment(world(1, 100)[0])


def test_without_noise_it_is_least_squares_whatever_the_public_rows():
    statistic = RowStatistic(3)
    found = estimate(statistic, PUBLIC, statistic.of(ROWS, LABELS), len(ROWS), 0.0)
    np.testing.assert_allclose(found, np.linalg.lstsq(ROWS, LABELS, rcond=None)[0], atol=1e-9)


def test_without_x_x_and_shrinkage_it_is_least_squares_with_that_of_public_rows():
    statistic = RowStatistic(3, second=False)
    found = estimate(statistic, PUBLIC, statistic.of(ROWS, LABELS), 2000, 1.0, shrunk=False)
    expected = np.linalg.solve(20 * PUBLIC.rows.T @ PUBLIC.rows, LABELS @ ROWS)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("second", [True, False])
def test_noise_alone_gives_the_middle_of_the_range(second):
    statistic = RowStatistic(3, second)
    noise = 1e6 * np.random.default_rng(3).normal(size=statistic.dimension)
    found = estimate(statistic, PUBLIC, noise, len(ROWS), 1e12)
    assert np.abs(ROWS @ found).max() < 0.02


def test_the_mixture_is_by_variances_and_weighs_least_noise_most():
    random, statistic = np.random.default_rng(4), RowStatistic(3)
    shares = [public_share(statistic, PUBLIC, 2000, variance) for variance in (0.0, 1.0, 1e4, 1e12)]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] > 0.999
    sampled = [PublicMoment(PUBLIC.rows[random.choice(100, 100)]).gram(2000) for _ in range(1000)]
    assert PUBLIC.variance(2000) == pytest.approx(np.var(sampled, axis=0).mean(), rel=0.1)
    private, known = statistic.gram_variance(700.0), PUBLIC.variance(2000)
    assert public_share(statistic, PUBLIC, 2000, 700.0) == pytest.approx(private / (private + known))


def test_public_rows_that_never_vary_are_believed():
    same = PublicMoment(np.tile([0.6, 0.8], (10, 1)))
    assert same.variance(100) == pytest.approx(0, abs=1e-12)
    assert public_share(RowStatistic(2, second=False), PUBLIC, 2000, 1.0) == 1


def test_the_sum_of_squares_tells_how_far_predictions_may_go():
    """Labels of a tenth of the range, and noise in X'y that would take predictions ten times further."""
    statistic, random = RowStatistic(3), np.random.default_rng(6)
    total, found = statistic.of(ROWS, 0.1 * LABELS), {}
    for known in (True, False):
        noisy = total + 300.0 * random.normal(size=statistic.dimension)
        noisy[-1] = total[-1] if known else 4000.0  # as of labels at both ends
        found[known] = np.abs(ROWS @ estimate(statistic, PUBLIC, noisy, 2000, 300.0**2)).mean()
    assert found[True] < found[False] / 1.5


def test_one_row_of_one_feature():
    statistic = RowStatistic(1)
    found = estimate(statistic, PublicMoment(np.ones((10, 1))), statistic.of(np.ones((1, 1)), np.ones(1)), 1.0, 50.0)
    assert 0 < found[0] < 1


def test_the_constant_answer_needs_no_column():
    rows = world(5, 500)[0][:, :2] + 0.5
    assert np.square(rows @ PublicMoment(rows).constant - 1).mean() < 1
    np.testing.assert_allclose(PUBLIC.constant, np.linalg.lstsq(PUBLIC.rows, np.ones(100), rcond=None)[0], atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([0.3, 1.0, 3.0]), st.integers(0, 30))
def test_weights_are_finite_and_better_than_the_middle_on_average(epsilon, seed):
    statistic, random = RowStatistic(3), np.random.default_rng(seed)
    variance = statistic.noise(epsilon=epsilon, delta=1e-6, rows=2000).variance()
    noise = variance**0.5 * random.normal(size=(8, statistic.dimension))
    found = [estimate(statistic, PUBLIC, statistic.of(ROWS, LABELS) + one, 2000, variance) for one in noise]
    assert np.isfinite(found).all()
    errors = [np.square(np.clip(ROWS @ weights, -1, 1) - LABELS).mean() for weights in found]
    assert np.mean(errors) < np.square(LABELS).mean()
