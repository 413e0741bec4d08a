"""The discrepancy minimiser against a general-purpose solver, its optimality condition and its monotonicity."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from aggregator.protocols.soft_vote.decoders import SMALLEST_RIDGE, discrepancy_minimiser
from federation.contract.errors import InputError
from federation.numerics.label_losses import label_loss


def problem(seed, classes, rows=40, width=3, noise=0.05):
    """Rows and a noisy statistic, binary (d,) for two classes, (C, d) otherwise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, width)) * np.exp(rng.normal(size=width))
    shares = rng.dirichlet(np.ones(classes), rows)
    error = rng.normal(size=(classes, width))
    mu = shares.T @ x / rows + noise * (error - error.mean(axis=0))  # a statistic's classes sum to the mean row
    return x, mu[1] if classes == 2 else mu


def gradient(x, mu, w):
    """Of the risk without regularisation."""
    return label_loss(x, mu, 1e-300).gradient(np.ravel(w))[0]


def farthest(x, mu):
    return float(np.linalg.norm(gradient(x, mu, np.zeros(np.size(mu)))))


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.95])
def test_it_agrees_with_a_general_purpose_solver(classes, share):
    x, mu = problem(classes, classes)
    threshold = share * farthest(x, mu)

    def objective(flat):
        w = flat.reshape(mu.shape)
        if classes == 2:
            risk = np.logaddexp(0, x @ w).mean() - mu @ w
        else:
            risk = np.logaddexp.reduce(x @ w.T, axis=1).mean() - (mu * w).sum()
        return risk + threshold * np.linalg.norm(w)

    ours = discrepancy_minimiser(x, mu, threshold)
    assert ours.shape == mu.shape
    start = np.random.default_rng(1).normal(size=mu.size)
    other = minimize(objective, start, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    assert objective(ours.ravel()) <= other.fun + 1e-8
    np.testing.assert_allclose(ours, other.x.reshape(mu.shape), atol=2e-3 * max(1e-3, np.abs(ours).max()))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4), share=st.floats(0.05, 0.999))
def test_the_gradient_has_the_length_of_the_threshold_and_points_back(seed, classes, share):
    x, mu = problem(seed, classes, noise=0.01)
    threshold = share * farthest(x, mu)
    w = discrepancy_minimiser(x, mu, threshold)
    pull = gradient(x, mu, w)
    ridge = np.linalg.norm(pull) / np.linalg.norm(w)
    if ridge > 1.01 * SMALLEST_RIDGE:
        assert np.linalg.norm(pull) == pytest.approx(threshold, rel=2e-4)
    else:  # no model is so near to the noisy statistic
        assert np.linalg.norm(pull) >= threshold * (1 - 2e-4)
    assert pull @ w.ravel() == pytest.approx(-np.linalg.norm(pull) * np.linalg.norm(w), rel=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_larger_thresholds_give_shorter_weights_and_more_entropy(classes):
    x, mu = problem(7, classes)
    whole = farthest(x, mu)
    found = [discrepancy_minimiser(x, mu, share * whole) for share in np.linspace(0.1, 1.0, 12)]
    norms = [np.linalg.norm(w) for w in found]
    assert all(a > b for a, b in itertools.pairwise(norms))
    entropies = [entropy(x, w) for w in found]
    assert all(a < b for a, b in itertools.pairwise(entropies))
    assert entropies[-1] == pytest.approx(math.log(classes), rel=1e-6)


def entropy(x, w):
    scores = np.stack([np.zeros(len(x)), x @ w]) if w.ndim == 1 else w @ x.T
    p = np.exp(scores - np.logaddexp.reduce(scores, axis=0))
    return float(-(p * np.log(p)).sum(axis=0).mean())


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_zero_exactly_from_the_distance_of_the_uniform_model_on(classes):
    x, mu = problem(3, classes)
    whole = farthest(x, mu)
    assert not discrepancy_minimiser(x, mu, whole).any()
    assert not discrepancy_minimiser(x, mu, 2 * whole).any()
    assert discrepancy_minimiser(x, mu, whole * (1 - 1e-3)).any()


@pytest.mark.parametrize("classes", [2, 3])
def test_a_statistic_that_no_model_comes_near_is_fitted_with_the_least_ridge(classes):
    x, mu = problem(3, classes)
    far = mu + 10.0
    for threshold in (0.0, 0.3):
        w = discrepancy_minimiser(x, far, threshold)
        pull = gradient(x, far, w)
        assert np.linalg.norm(pull) == pytest.approx(SMALLEST_RIDGE * np.linalg.norm(w), rel=1e-3)


def test_without_a_threshold_a_clean_statistic_is_met():
    x, mu = problem(5, 3, noise=0.0)
    assert np.linalg.norm(gradient(x, mu, discrepancy_minimiser(x, mu, 0.0))) < 1e-4


@pytest.mark.parametrize("threshold", [-1.0, math.nan, math.inf])
def test_impossible_thresholds_are_refused(threshold):
    with pytest.raises(InputError, match="threshold"):
        discrepancy_minimiser(*problem(0, 2), threshold)
