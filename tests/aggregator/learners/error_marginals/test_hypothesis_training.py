"""Hypotheses from weighted rows with soft or hard labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from aggregator.learners.error_marginals.estimation import ExchangeSettings, train_hypothesis

LINEAR = ExchangeSettings(learner="linear")
NETWORK = ExchangeSettings(hidden=(16,), epochs=150)


def world(n=300, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal([5.0, -2.0], [10.0, 0.1], (n, 2))
    truth = (rows[:, 0] - 5) / 10 + (rows[:, 1] + 2) / 0.1 > 0.3
    return rows, truth.astype(float), rng.uniform(0.5, 2, n)


def trained(rows, shares, weights, settings, seed=0):
    return train_hypothesis(rows, shares, weights, settings, np.random.default_rng(seed))


@pytest.mark.parametrize("settings", [LINEAR, NETWORK])
def test_a_line_is_learned_in_units_of_each_feature(settings):
    rows, labels, weights = world()
    hypothesis = trained(rows, labels, weights, settings)
    assert (hypothesis.predict(rows) == labels).mean() > 0.97


def test_the_network_learns_what_no_line_tells():
    rows = np.random.default_rng(1).uniform(-1, 1, (600, 2))
    labels = (rows[:, 0] * rows[:, 1] > 0).astype(float)
    hypothesis = trained(rows, labels, np.ones(600), NETWORK)
    assert (hypothesis.predict(rows) == labels).mean() > 0.95


def test_soft_labels_minimise_the_weighted_cross_entropy():
    rows, labels, weights = world()
    shares = 0.15 + 0.7 * labels
    hypothesis = trained(rows, shares, weights, LINEAR)
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    inputs = np.column_stack([scaled, np.ones(len(rows))])

    def risk(theta):
        scores = inputs @ theta
        return (weights / weights.mean() * (np.logaddexp(0, scores) - shares * scores)).mean() + 5e-4 * theta[
            :2
        ] @ theta[:2]

    best = minimize(risk, np.zeros(3)).x
    np.testing.assert_allclose(hypothesis.scores(rows), inputs @ best, atol=0.01)


def test_only_hard_labels_are_of_the_nearest_class():
    rows, labels, weights = world()
    shares = 0.6 + 0.3 * labels  # class 1 is the likelier of every row
    hard = ExchangeSettings(learner="linear", rounding="hard")
    assert np.all(trained(rows, shares, weights, hard).predict(rows) == 1)
    assert trained(rows, shares, weights, LINEAR).scores(rows).std() > 0.1
    assert trained(rows, shares, weights, hard).sizes.tolist() == [2, 1]


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("settings", [LINEAR, NETWORK])
def test_one_class_is_a_constant(settings, label):
    rows, _, weights = world(20)
    hypothesis = trained(rows, np.full(20, float(label)), weights, settings)
    assert np.all(hypothesis.predict(np.array([[1e6, -1e6], [-1e6, 1e6]])) == label)


@pytest.mark.parametrize("settings", [LINEAR, NETWORK])
def test_rows_without_weight_do_not_count(settings):
    rows, labels, weights = world(50)
    strange = np.vstack([rows, [[1e9, 1e9]]])
    with_it = trained(strange, np.append(labels, 1.0), np.append(weights, 0.0), settings)
    assert np.array_equal(with_it.parameters, trained(rows, labels, weights, settings).parameters)


def test_equal_seeds_give_equal_bits():
    rows, labels, weights = world(80)
    one, two, other = (trained(rows, labels, weights, NETWORK, seed).parameters for seed in (3, 3, 4))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
