"""Ridge regression of bags' proportions on their means: left-out errors against brute force, and what is learned."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge
from support.mixtures import Mixtures

from aggregator.learners.class_ratios.kernel_means import DistributionRegression, ridge_regression
from federation.contract.errors import InputError


@given(st.integers(0, 2**32 - 1), st.integers(3, 9), st.integers(1, 6))
def test_left_out_errors_are_those_of_fits_without_the_example(seed, examples, columns):
    random = np.random.default_rng(seed)
    rows, targets = random.normal(size=(examples, columns)), random.normal(size=(examples, 2))
    centred = rows - rows.mean(axis=0)
    found = ridge_regression(centred, targets)
    for out in range(examples):
        kept = np.arange(examples) != out
        centre, mean = rows[kept].mean(axis=0), targets[kept].mean(axis=0)
        gram = (rows[kept] - centre).T @ (rows[kept] - centre) + found.ridge * np.eye(columns)
        slope = np.linalg.solve(gram, (rows[kept] - centre).T @ (targets[kept] - mean))
        residual = targets[out] - mean - (rows[out] - centre) @ slope
        np.testing.assert_allclose(found.left_out[out], residual, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("columns", [3, 20])
def test_the_slope_is_that_of_an_independent_solver(columns):
    random = np.random.default_rng(0)
    rows, targets = random.normal(size=(8, columns)), random.normal(size=(8, 2))
    centred = rows - rows.mean(axis=0)
    found = ridge_regression(centred, targets)
    other = KernelRidge(alpha=found.ridge).fit(centred, targets - targets.mean(axis=0))
    np.testing.assert_allclose(found.slope, centred.T @ other.dual_coef_, rtol=1e-6)


def test_the_ridge_follows_the_noise():
    random = np.random.default_rng(1)
    rows = random.normal(size=(30, 4))
    rows -= rows.mean(axis=0)
    slope = random.normal(size=(4, 1))
    exact, noise = ridge_regression(rows, rows @ slope), random.normal(size=(30, 1))
    assert exact.ridge == pytest.approx(1e-4 * np.linalg.eigvalsh(rows @ rows.T)[-1])
    assert ridge_regression(rows, noise).ridge > 100 * exact.ridge


def test_equal_examples_say_nothing():
    found = ridge_regression(np.zeros((4, 2)), np.arange(4.0)[:, None])
    np.testing.assert_array_equal(found.slope, 0.0)
    np.testing.assert_allclose(found.left_out[0], 0.0 - np.mean([1, 2, 3]))


def test_many_examples_take_memory_in_proportion():
    rows = np.random.default_rng(2).normal(size=(8000, 3))
    tracemalloc.start()
    found = ridge_regression(rows - rows.mean(axis=0), rows[:, :2])
    assert tracemalloc.get_traced_memory()[1] < 2**23  # a number for each pair of examples would take 2^29
    tracemalloc.stop()
    np.testing.assert_allclose(found.slope, np.eye(3)[:, :2], atol=1e-3)


WORLD, RANDOM = Mixtures(3), np.random.default_rng(2)
SHARES = RANDOM.dirichlet(np.ones(3), 30)
BAGS = [WORLD.rows(shares, 80, RANDOM) for shares in SHARES]


@pytest.mark.parametrize("kernel", DistributionRegression.kernels)
def test_ratios_of_a_set_are_found_from_many_bags(kernel):
    estimator = DistributionRegression(kernel).fit(BAGS, SHARES)
    truth = np.array([0.6, 0.3, 0.1])
    found = estimator.predict(WORLD.rows(truth, 400, np.random.default_rng(3)))
    assert np.abs(found - truth).sum() < 0.15
    assert found.sum() == pytest.approx(1)
    again = DistributionRegression.from_arrays(*estimator.to_arrays())
    np.testing.assert_array_equal(again.predict(BAGS[0]), estimator.predict(BAGS[0]))


def test_what_drifts_with_every_bag_is_learned_to_be_looked_past():
    """Bags are moved along a direction of their own, further than classes are apart; a linear map can ignore it."""
    random = np.random.default_rng(4)
    away = np.linalg.svd(WORLD.means)[2][-1]  # at right angles to all class means
    moved = [bag + 20 * random.normal() * away for bag in BAGS]
    estimator = DistributionRegression("linear").fit(moved, SHARES)
    truth = np.array([0.1, 0.2, 0.7])
    rows = WORLD.rows(truth, 400, random) + 30 * away
    assert np.abs(estimator.predict(rows) - truth).sum() < 0.2


def test_means_teach_what_their_rows_do():
    whole = DistributionRegression("linear").fit(BAGS, SHARES)
    means = np.stack([bag.mean(axis=0) for bag in BAGS])
    known = DistributionRegression("linear").fit_means(means, np.full(30, 80), SHARES, covariance=np.eye(6))
    np.testing.assert_allclose(known.predict(BAGS[3]), whole.predict(BAGS[3]), rtol=1e-9)
    some = whole.learned_from(means[:10], SHARES[:10])
    fresh = DistributionRegression("linear").fit(BAGS[:10], SHARES[:10])
    np.testing.assert_allclose(some.predict(BAGS[20]), fresh.predict(BAGS[20]), rtol=1e-9)
    assert whole.predict(BAGS[20]) != pytest.approx(some.predict(BAGS[20]))  # the whole one is as it was


def test_means_need_the_linear_kernel():
    with pytest.raises(InputError, match="fit_means needs kernel 'linear'"):
        DistributionRegression().fit_means(np.eye(3), np.ones(3), np.eye(3))
    with pytest.raises(InputError, match="kernel must be one of fourier, nystrom, linear for regression, got 'exact'"):
        DistributionRegression("exact").fit(BAGS, SHARES)
