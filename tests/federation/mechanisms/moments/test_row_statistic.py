"""X'X, X'y and y'y as one vector: its geometry, how far one replaced row moves it, and the noise that follows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from federation.contract.errors import InputError
from federation.mechanisms.noise import gaussian
from federation.mechanisms.sums.row_sums import SENSITIVITY, RowStatistic
from federation.mechanisms.sums.row_sums import calibrate_row_sums as calibrate
from federation.numerics.rows import within_norm

UNIT = st.floats(-1, 1, allow_subnormal=False)
BOTH = [True, False]


def rows_and_labels(count, features=3):
    return st.tuples(arrays(float, (count, features), elements=UNIT), arrays(float, count, elements=UNIT))


def moved(statistic, numbers):
    """How far two neighbours are apart: numbers of any size make two rows, cut to norm 1, and two labels, clipped."""
    rows = within_norm(numbers[:-2].reshape(2, -1))
    labels = np.clip(numbers[-2:], -1, 1)
    here, there = (statistic.of(rows[i : i + 1], labels[i : i + 1]) for i in (0, 1))
    return float(np.linalg.norm(here - there))


@pytest.mark.parametrize("second", BOTH)
@pytest.mark.parametrize("features", [1, 2, 5])
def test_no_search_moves_the_statistic_further_than_its_sensitivity_and_each_gets_there(features, second):
    statistic, random = RowStatistic(features, second), np.random.default_rng(features)
    starts = random.normal(size=(8, 2 * features + 2))
    found = [
        -minimize(lambda numbers: -moved(statistic, numbers), start, method=method).fun
        for start in starts
        for method in ("BFGS", "Nelder-Mead")
    ]
    assert max(found) <= SENSITIVITY * (1 + 1e-12)
    assert max(found) == pytest.approx(SENSITIVITY, rel=1e-3)


@pytest.mark.parametrize("second", BOTH)
@pytest.mark.parametrize("other", [[-1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, -1.0]])  # an opposite row, or label
def test_opposite_rows_and_opposite_labels_attain_it(second, other):
    reached = moved(RowStatistic(2, second), np.array([1.0, 0.0, *other]))
    assert reached == pytest.approx(SENSITIVITY, rel=1e-12)


def test_a_label_of_nothing_beside_an_orthogonal_row_attains_it_too():
    """So no larger weight of y^2 comes for nothing."""
    assert moved(RowStatistic(2), np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0])) == pytest.approx(SENSITIVITY, rel=1e-12)


@given(rows_and_labels(2))
def test_no_neighbours_are_further_apart(drawn):
    numbers = np.append(drawn[0].ravel(), drawn[1])
    assert moved(RowStatistic(3, False), numbers) <= moved(RowStatistic(3), numbers) * (1 + 1e-12)
    assert moved(RowStatistic(3), numbers) <= SENSITIVITY * (1 + 1e-12)


@given(rows_and_labels(4), rows_and_labels(3))
def test_vectors_add_up_and_give_all_moments_back(some, others):
    rows, labels = (np.concatenate(parts) for parts in zip(some, others, strict=True))
    for second in BOTH:
        statistic = RowStatistic(3, second)
        found = statistic.moments(statistic.of(*some) + statistic.of(*others))
        np.testing.assert_allclose(found.moment, labels @ rows, atol=1e-12)
        assert found.squares == pytest.approx(labels @ labels, abs=1e-12)
        if second:
            np.testing.assert_allclose(found.gram, rows.T @ rows, atol=1e-12)
        else:
            assert found.gram is None


@given(rows_and_labels(5))
def test_distances_are_those_of_matrices_and_sums(drawn):
    rows, labels = drawn
    expected = np.square(rows.T @ rows).sum() + 2 * np.square(labels @ rows).sum() + 4 * (labels @ labels) ** 2
    assert np.square(RowStatistic(3).of(rows, labels)).sum() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("second", BOTH)
@given(drawn=rows_and_labels(1))
def test_one_row_is_no_longer_than_is_said(second, drawn):
    statistic = RowStatistic(3, second)
    assert np.linalg.norm(statistic.of(within_norm(drawn[0]), drawn[1])) <= statistic.longest * (1 + 1e-12)
    longest = statistic.of(np.eye(1, 3), np.ones(1))
    assert np.linalg.norm(longest) == pytest.approx(statistic.longest, rel=1e-12)


@pytest.mark.parametrize("features", [1, 2, 5])
def test_variances_of_all_moments_are_those_of_independent_noise_in_the_vector(features):
    statistic = RowStatistic(features)
    found = statistic.moments(np.eye(statistic.dimension))  # one unit of noise in each number by itself
    assert np.square(found.gram).sum(axis=0).mean() == pytest.approx(statistic.gram_variance(1.0))
    np.testing.assert_allclose(np.square(found.moment).sum(axis=0), statistic.moment_variance(1.0))
    assert np.square(found.squares).sum() == pytest.approx(statistic.squares_variance(1.0))
    assert RowStatistic(features, second=False).gram_variance(3.0) == math.inf


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_x_y_gets_the_noise_that_it_needs_by_itself(epsilon):
    known = {"epsilon": epsilon, "delta": 1e-6, "rows": 1000}
    alone = calibrate("gaussian", dimension=9, **known).variance()  # sensitivity 2
    assert alone == pytest.approx((2 / gaussian.mu(epsilon, 1e-6)) ** 2, rel=2e-3)
    for second in BOTH:
        statistic = RowStatistic(9, second)
        assert statistic.moment_variance(statistic.noise(**known).variance()) == pytest.approx(alone, rel=2e-3)


def test_the_rounding_of_every_number_is_charged():
    additive = RowStatistic(9).noise(epsilon=1.0, delta=1e-6, rows=1000).additive
    assert additive.dimension == 55
    assert additive.charged >= math.sqrt(8) + math.sqrt(55) * additive.step


def test_a_sum_of_rows_that_were_not_cut_is_refused():
    noise = RowStatistic(2).noise(epsilon=1.0, delta=1e-6, rows=3)
    with pytest.raises(InputError, match=r"3 rows of norm 2\.65"):
        noise.release(np.array([8.0, 0.0, 0.0, 0.0, 0.0, 0.0]), None)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"delta": 0.0}, "delta"),
        ({"rows": 0}, "rows"),
        ({"contributors": 2**31}, "contributors must be at most"),
        ({"rows": 10**6, "epsilon": 1e3, "contributors": 10**4}, "does not fit the grid"),
    ],
)
def test_numbers_that_no_noise_serves_are_refused(changed, words):
    with pytest.raises(InputError, match=words):
        RowStatistic(2).noise(**{"epsilon": 1.0, "delta": 1e-6, "rows": 10, **changed})
