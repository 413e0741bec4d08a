"""Labels from shares of errors: the identity they rest on, and recovery where they are determined."""

from __future__ import annotations

import numpy as np
import pytest

from aggregator.learners.error_marginals.estimation import estimate_labels
from federation.numerics.binning import Bins

BOTH = pytest.mark.parametrize("estimate", ["entropy", "least_squares"])


def errors_in_bins(indicators, weights, labels, predictions):
    wrong = (predictions != labels).astype(float)
    return (indicators @ (weights * wrong)) / (indicators @ weights)


@BOTH
def test_labels_of_rows_with_a_bin_of_their_own_are_recovered(estimate):
    rng = np.random.default_rng(0)
    rows = np.arange(12.0)[:, None]
    indicators = Bins.fit(rows, 12).indicators(rows)
    weights = rng.dirichlet(np.ones(12))
    labels, predictions = rng.integers(0, 2, (2, 12))
    shares = errors_in_bins(indicators, weights, labels, predictions)
    found = estimate_labels(indicators, weights, [predictions], [shares], estimate, 1e-9)
    np.testing.assert_allclose(found, labels, atol=1e-3)


@BOTH
def test_a_second_hypothesis_determines_what_one_does_not(estimate):
    """Exclusive or of two halves: no marginal tells it, that of a hypothesis that splits one feature does."""
    rows = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    labels = np.array([0, 1, 1, 0])
    indicators, weights = Bins.fit(rows, 2).indicators(rows), np.full(4, 0.25)
    asked = [np.ones(4, dtype=int), (rows[:, 0] > 0.5).astype(int)]
    shares = [errors_in_bins(indicators, weights, labels, predictions) for predictions in asked]
    one = estimate_labels(indicators, weights, asked[:1], shares[:1], estimate, 1e-9)
    np.testing.assert_allclose(one, 0.5, atol=1e-6)
    both = estimate_labels(indicators, weights, asked, shares, estimate, 1e-9)
    np.testing.assert_allclose(both, labels, atol=1e-3)


@BOTH
def test_a_hypothesis_and_its_opposite_tell_the_same(estimate):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(40, 3))
    indicators, weights = Bins.fit(rows, 4).indicators(rows), rng.dirichlet(np.ones(40))
    predictions, shares = rng.integers(0, 2, 40), rng.uniform(size=12)
    found = estimate_labels(indicators, weights, [predictions], [shares], estimate, 0.01)
    opposite = estimate_labels(indicators, weights, [1 - predictions], [1 - shares], estimate, 0.01)
    np.testing.assert_allclose(found, opposite, atol=1e-9)


@BOTH
def test_estimates_fit_every_answer_that_labels_can_explain(estimate):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(60, 2))
    indicators, weights = Bins.fit(rows, 5).indicators(rows), rng.dirichlet(np.ones(60))
    labels = rng.integers(0, 2, 60)
    asked = [np.ones(60, dtype=int), rng.integers(0, 2, 60)]
    shares = [errors_in_bins(indicators, weights, labels, predictions) for predictions in asked]
    found = estimate_labels(indicators, weights, asked, shares, estimate, 1e-7)
    for predictions, answered in zip(asked, shares, strict=True):
        wrong = indicators @ (weights * np.abs(predictions - found))
        np.testing.assert_allclose(wrong, answered * (indicators @ weights), atol=1e-5)
