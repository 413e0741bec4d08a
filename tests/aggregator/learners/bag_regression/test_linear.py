"""Closed form on bags: against independent solvers, its invariances, and the theory of its error.

Adam on sums of bags: it reaches least squares if there are enough steps, whose number grows with the bags' size.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import lstsq
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from aggregator.learners.bag_regression.linear import BagLeastSquares, trained
from benchmarks.bag_regression import expected_error
from federation.contract.errors import FederationError, InputError
from federation.contract.randomness import NoiseBits, generator
from federation.numerics.bag_weights import disjoint_bags, gaussian_weights, sign_weights
from parties.responses.labels import sketch


@parametrize_with_checks([BagLeastSquares(), BagLeastSquares(regularisation=0.1)])
def test_it_is_a_scikit_learn_regressor(estimator, check):
    check(estimator)


@pytest.mark.parametrize("regularisation", [0.0, 0.3])
def test_a_weight_counts_as_so_many_equal_bags(rng, regularisation):
    sums, labels = drawn(30, 4)
    weights = rng.integers(0, 4, 30)
    weighted = BagLeastSquares(regularisation).fit(sums, labels, sample_weight=weights)
    repeated = BagLeastSquares(regularisation).fit(np.repeat(sums, weights, axis=0), np.repeat(labels, weights))
    np.testing.assert_allclose(weighted.coef_, repeated.weights_, atol=1e-12)
    assert weighted.intercept_ == 0.0
    if not regularisation:
        reference = LinearRegression(fit_intercept=False).fit(sums, labels, weights)
        np.testing.assert_allclose(weighted.coef_, reference.coef_, atol=1e-12)


def drawn(bags, columns, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(bags, columns)), rng.normal(size=bags)


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 2**32))
def test_predictions_are_those_of_lapack(bags, columns, seed):
    """Full rank or not: columns of norm 1 have the solution of least norm."""
    sums, labels = drawn(bags, columns, seed)
    sums /= np.linalg.norm(sums, axis=0)
    found = BagLeastSquares().fit(sums, labels)
    expected, _, rank, _ = lstsq(sums, labels, lapack_driver="gelsy")
    assert found.rank_ == rank == min(bags, columns)
    np.testing.assert_allclose(sums @ found.weights_, sums @ expected, atol=1e-7)
    if np.linalg.cond(sums) < 1e4:
        np.testing.assert_allclose(found.weights_, expected, atol=1e-6)


@pytest.mark.parametrize("regularisation", [1e-6, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("bags", [8, 200])
def test_ridge_is_that_of_scikit_learn_on_columns_of_norm_1(regularisation, bags):
    sums, labels = drawn(bags, 12)
    norms = np.linalg.norm(sums, axis=0)
    expected = Ridge(regularisation, fit_intercept=False, solver="svd").fit(sums / norms, labels).coef_ / norms
    np.testing.assert_allclose(BagLeastSquares(regularisation).fit(sums, labels).weights_, expected, rtol=1e-6)


@given(st.integers(5, 40), st.integers(1, 8), st.integers(0, 2**32))
def test_what_is_kept_satisfies_the_normal_equations(bags, columns, seed):
    sums, labels = drawn(bags, columns, seed)
    for regularisation in (0.0, 0.3):
        weights = BagLeastSquares(regularisation).fit(sums, labels).weights_
        gradient = sums.T @ (sums @ weights - labels) + regularisation * np.square(sums).sum(axis=0) * weights
        np.testing.assert_allclose(gradient, 0, atol=1e-9)


def test_dependent_columns_change_no_prediction():
    sums, labels = drawn(100, 5)
    plain = BagLeastSquares().fit(sums, labels)
    doubled = BagLeastSquares().fit(np.column_stack([sums, sums[:, :2], 0 * labels, sums @ np.ones(5)]), labels)
    assert doubled.rank_ == plain.rank_ == 5
    rows = np.random.default_rng(1).normal(size=(20, 5))
    more = np.column_stack([rows, rows[:, :2], np.zeros(20), rows @ np.ones(5)])
    np.testing.assert_allclose(doubled.predict(more), plain.predict(rows), rtol=1e-9)


@pytest.mark.parametrize("regularisation", [0.0, 0.1])
@given(powers=st.lists(st.integers(-200, 200), min_size=4, max_size=4), bags=st.integers(1, 20))
def test_units_of_columns_change_no_prediction(regularisation, powers, bags):
    sums, labels = drawn(bags, 4, bags)
    units = 2.0 ** np.array(powers)
    plain, scaled = (BagLeastSquares(regularisation).fit(sums * u, labels) for u in (np.ones(4), units))
    np.testing.assert_allclose(scaled.weights_ * units, plain.weights_, rtol=1e-12, atol=1e-12)
    assert scaled.rank_ == plain.rank_


@given(st.integers(2, 30), st.integers(0, 2**32))
def test_the_order_of_bags_and_their_signs_change_nothing(bags, seed):
    rng = np.random.default_rng(seed)
    sums, labels = drawn(bags, 4, seed)
    order, signs = rng.permutation(bags), rng.choice([-1.0, 1.0], bags)
    first = BagLeastSquares(0.05).fit(sums, labels)
    second = BagLeastSquares(0.05).fit((sums * signs[:, None])[order], (labels * signs)[order])
    np.testing.assert_allclose(second.weights_, first.weights_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("draw", [gaussian_weights, sign_weights])
def test_labels_without_error_are_found_again(draw):
    rng, bits = np.random.default_rng(0), NoiseBits(0, "bags")
    rows, truth = rng.normal(size=(500, 6)), rng.normal(size=6)
    sums = sketch(rows, rows @ truth, disjoint_bags(500, 40, 10, bits), draw(40, 10, bits))
    np.testing.assert_allclose(BagLeastSquares().fit(sums.rows, sums.labels).weights_, truth, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("bags", "size"), [(20, 40), (40, 40), (40, 200)])
def test_the_error_on_new_rows_is_the_expected_one_whatever_the_size_of_bags(bags, size):
    """By simulation: s^2 (1 + r / (m - r - 1)) within four standard errors."""
    rng, rank, variance = np.random.default_rng(0), 6, 2.0
    truth, errors = rng.normal(size=rank), []
    for trial in range(300):
        bits = NoiseBits(trial, "bags")
        rows = rng.normal(size=(bags * size, rank))
        labels = rows @ truth + np.sqrt(variance) * rng.normal(size=len(rows))
        found = sketch(rows, labels, disjoint_bags(len(rows), bags, size, bits), gaussian_weights(bags, size, bits))
        missed = BagLeastSquares().fit(found.rows, found.labels).weights_ - truth
        errors.append(variance + missed @ missed)
    error = np.std(errors) / np.sqrt(len(errors))
    assert np.mean(errors) == pytest.approx(expected_error(variance, rank, bags), abs=4 * error)


def test_the_published_setting_is_least_squares_with_enough_steps_and_larger_bags_get_more():
    """Census weeks worked: rank 113, 124.1 by rows."""
    assert expected_error(124.1, 113, 1024) == pytest.approx(139.5, abs=0.05)
    assert expected_error(124.1, 113, 2048) == pytest.approx(131.4, abs=0.05)
    assert expected_error(1.0, 5, 6) == np.inf
    assert expected_error(1.0, 5, 7) == 6.0
    draws = [sums(seed, 4) for seed in range(3)]
    found = reached(draws, 4, batch_rows=32, epochs=400)
    for weights, (rows, labels) in zip(found, draws, strict=True):
        assert weights == pytest.approx(BagLeastSquares().fit(rows, labels).weights_, abs=1e-3)
    np.testing.assert_allclose(reached(draws, 4, epochs=5)[1:2], reached(draws[1:2], 4, epochs=5), rtol=1e-12)
    left = {size: np.abs(reached([sums(1, size)], size, batch_rows=256, epochs=100) - LAW).max() for size in (4, 64)}
    assert left[64] < 0.1 < left[4]
    # (1 - beta1) / sqrt(1 - beta2) times the rate at most in any step (Kingma and Ba 2015, Section 2.1)
    [weights] = reached([sums(1, 4)], 4, batch_rows=64, epochs=2, learning_rate=1e-2)
    steps = 2 * 64 * 4 // 64
    assert 0 < np.abs(weights).max() <= steps * 1e-2 * 0.1 / np.sqrt(0.001)


def test_numbers_without_meaning_and_sums_that_are_not_finite_are_refused():
    for arguments in ((-1.0, 1, 5), (np.nan, 1, 5), (1.0, 0, 5), (1.0, 1, 0)):
        with pytest.raises(InputError, match=r"variance.*0"):
            expected_error(*arguments)
    rows, labels = drawn(5, 2)
    for regularisation in (-1e-9, np.nan, np.inf):
        with pytest.raises(InputError, match="regularisation"):
            BagLeastSquares(regularisation).fit(rows, labels)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        BagLeastSquares().fit(rows, labels[:-1])
    rows, labels = sums(1, 4)
    with pytest.raises(FederationError):  # sums without squares
        reached([(rows * 1e200, labels)], 4, epochs=2)


LAW = [0.3, -0.2, 0.1]


def sums(seed, size):
    rows = generator(seed, "sums to train on").normal(size=(64, 3)) * np.sqrt(size)
    return rows, rows @ LAW


def reached(draws, size, **options):
    rows, labels = (np.stack(part) for part in zip(*draws, strict=True))
    return trained(rows, labels, size, generator(1, "order"), **options)
