"""X'X and X'y as one vector: its geometry, how far one replaced row moves it, and the noise that follows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from federation.contract.errors import InputError
from federation.mechanisms.moments import row_statistic
from federation.mechanisms.moments.calibrated_moments import calibrate
from federation.mechanisms.moments.row_statistic import RowStatistic, sensitivity
from federation.mechanisms.noise import gaussian
from federation.numerics.norms import within_norm

WEIGHTS = [0.3, 1.0, 1.3, math.sqrt(2), 2.0, 5.0]
UNIT = st.floats(-1, 1, allow_subnormal=False)


def rows_and_labels(count, features=3):
    return st.tuples(arrays(float, (count, features), elements=UNIT), arrays(float, count, elements=UNIT))


def moved(statistic, numbers):
    """How far two neighbours are apart: numbers of any size make two rows, cut to norm 1, and two labels, clipped."""
    rows = within_norm(numbers[:-2].reshape(2, -1))
    labels = np.clip(numbers[-2:], -1, 1)
    here, there = (statistic.of(rows[i : i + 1], labels[i : i + 1]) for i in (0, 1))
    return float(np.linalg.norm(here - there))


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("features", [1, 2, 4])
def test_no_search_moves_the_statistic_further_than_its_sensitivity(features, weight, monkeypatch):
    monkeypatch.setattr(row_statistic, "WEIGHT", weight)
    statistic, random = RowStatistic(features), np.random.default_rng(features)
    found = [
        -minimize(lambda numbers: -moved(statistic, numbers), random.normal(size=2 * features + 2), method=method).fun
        for method in ("BFGS", "Nelder-Mead", "Powell")
    ]
    assert max(found) <= statistic.moved * (1 + 1e-12)
    if features > 1 or weight**2 >= 2:  # on a line |r| is 1
        assert max(found) >= statistic.moved * (1 - 1e-3)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_sensitivity_is_attained_in_closed_form(weight, monkeypatch):
    monkeypatch.setattr(row_statistic, "WEIGHT", weight)
    cosine = min(weight**2 / 2, 1.0)
    other = np.array([cosine, math.sqrt(1 - cosine**2)])
    reached = moved(RowStatistic(2), np.array([1.0, 0.0, *other, 1.0, -1.0]))
    assert reached == pytest.approx(sensitivity(weight), rel=1e-12)


@given(rows_and_labels(2), st.sampled_from(WEIGHTS))
def test_no_neighbours_are_further_apart(drawn, weight):
    rows, labels = drawn
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(row_statistic, "WEIGHT", weight)
        for second in (True, False):
            statistic = RowStatistic(3, second)
            assert moved(statistic, np.append(rows.ravel(), labels)) <= statistic.moved * (1 + 1e-12)


@given(rows_and_labels(4), rows_and_labels(3))
def test_vectors_add_up_and_give_both_moments_back(some, others):
    statistic = RowStatistic(3)
    rows, labels = (np.concatenate(parts) for parts in zip(some, others, strict=True))
    gram, moment = statistic.moments(statistic.of(*some) + statistic.of(*others))
    np.testing.assert_allclose(gram, rows.T @ rows, atol=1e-12)
    np.testing.assert_allclose(moment, labels @ rows, atol=1e-12)


@given(rows_and_labels(5))
def test_distances_are_those_of_matrices_and_sums(drawn):
    rows, labels = drawn
    expected = np.square(rows.T @ rows).sum() + 2 * np.square(labels @ rows).sum()
    assert np.square(RowStatistic(3).of(rows, labels)).sum() == pytest.approx(expected, abs=1e-12)


@given(rows_and_labels(1))
def test_one_row_is_no_longer_than_is_said(drawn):
    rows, labels = drawn
    for second in (True, False):
        statistic = RowStatistic(3, second)
        assert np.linalg.norm(statistic.of(within_norm(rows), labels)) <= statistic.longest * (1 + 1e-12)


@pytest.mark.parametrize("features", [1, 2, 5])
def test_variances_of_both_moments_are_those_of_independent_noise_in_the_vector(features):
    statistic = RowStatistic(features)
    grams, moments = statistic.moments(np.eye(statistic.dimension))  # one unit of noise in each number by itself
    of_gram, of_moment = statistic.variances(1.0)
    assert np.square(grams).sum(axis=0).mean() == pytest.approx(of_gram)
    np.testing.assert_allclose(np.square(moments).sum(axis=0), of_moment)
    assert RowStatistic(features, second=False).variances(3.0) == (math.inf, 3.0)


def test_without_the_second_moment_the_vector_is_x_y():
    statistic, rows = RowStatistic(2, second=False), np.array([[0.6, 0.8], [0.0, 1.0]])
    total = statistic.of(rows, np.array([1.0, -0.5]))
    np.testing.assert_allclose(total, [0.6, 0.3])
    assert statistic.moments(total)[0] is None
    assert (statistic.dimension, statistic.longest, statistic.moved) == (2, 1.0, 2.0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_x_y_gets_the_same_noise_with_x_x_and_alone(epsilon):
    known = {"epsilon": epsilon, "delta": 1e-6, "rows": 1000}
    both, alone = (RowStatistic(9, second).noise(**known).variance() for second in (True, False))
    assert both / 2 == pytest.approx(alone, rel=2e-3)  # more numbers are rounded
    assert alone == pytest.approx((2 / gaussian.mu(epsilon, 1e-6)) ** 2, rel=2e-3)
    assert RowStatistic(9, second=False).noise(**known) == calibrate("gaussian", dimension=9, **known)


def test_the_rounding_of_every_number_is_charged():
    additive = RowStatistic(9).noise(epsilon=1.0, delta=1e-6, rows=1000).additive
    assert additive.dimension == 54
    assert additive.charged >= math.sqrt(8) + math.sqrt(54) * additive.step


def test_a_sum_of_rows_that_were_not_cut_is_refused():
    noise = RowStatistic(2).noise(epsilon=1.0, delta=1e-6, rows=3)
    with pytest.raises(InputError, match=r"3 rows of norm 1\.73"):
        noise.release(np.array([6.0, 0.0, 0.0, 0.0, 0.0]), None)


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
