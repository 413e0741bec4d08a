"""The bag loss: its definition, its gradient, and that both kinds of weights estimate the loss of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.learners.bag_regression import training as module
from aggregator.learners.bag_regression.perceptron import Perceptron
from aggregator.learners.bag_regression.training import ReleasedBags, bag_loss
from federation.contract.randomness import NoiseBits
from federation.numerics.bag_weights import gaussian_weights, sign_weights


def problem(count, size, columns=3, hidden=(4, 3), seed=0):
    rng = np.random.default_rng(seed)
    network = Perceptron((columns, *hidden, 1))
    bags = ReleasedBags(rng.normal(size=(count, size, columns)), rng.normal(size=(count, size)), rng.normal(size=count))
    return network, rng.normal(size=network.size), bags, rng


def by_definition(network, parameters, bags, chosen):
    size = bags.weights.shape[1]
    predicted = [bags.weights[j] @ network.outputs(parameters, bags.rows[j]) for j in chosen]
    return sum((p - bags.sums[j]) ** 2 for p, j in zip(predicted, chosen, strict=True)) / (len(chosen) * size)


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_the_loss_is_its_definition(count, size, seed):
    network, parameters, bags, rng = problem(count, size, seed=seed)
    chosen = rng.permutation(count)[: rng.integers(1, count + 1)]
    expected = by_definition(network, parameters, bags, chosen)
    assert bag_loss(network, parameters, bags, chosen) == pytest.approx(expected, rel=1e-10)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_the_gradient_is_that_of_finite_differences(count, size, seed):
    network, parameters, bags, rng = problem(count, size, seed=seed)
    chosen, gradient = np.arange(count), np.full(network.size, np.nan)
    bag_loss(network, parameters, bags, chosen, gradient)
    direction = rng.normal(size=network.size)
    ahead, behind = (by_definition(network, parameters + s * direction, bags, chosen) for s in (1e-6, -1e-6))
    assert gradient @ direction == pytest.approx((ahead - behind) / 2e-6, abs=1e-4 * (1 + np.linalg.norm(gradient)))


@pytest.mark.parametrize("size", [1, 3, 50])
def test_tiles_change_nothing_but_rounding(size, monkeypatch):
    network, parameters, bags, _ = problem(40, size)
    whole, parts = np.empty(network.size), np.empty(network.size)
    first = bag_loss(network, parameters, bags, np.arange(40), whole)
    monkeypatch.setattr(module, "_TILE", 7)
    assert bag_loss(network, parameters, bags, np.arange(40), parts) == pytest.approx(first, rel=1e-12)
    np.testing.assert_allclose(parts, whole, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("draw", [gaussian_weights, sign_weights])
def test_the_loss_of_bags_estimates_that_of_rows_without_bias(draw):
    """E_w of the bag loss is the mean of (f(x) - y)^2; noise of variance v on sums adds v / k."""
    size, runs, noise = 5, 40_000, 1.5
    network, parameters, fixed, rng = problem(1, size)
    labels = rng.normal(size=size)
    weights = draw(runs, size, NoiseBits(0, "weights"))
    sums = weights @ labels + noise * rng.normal(size=runs)
    rows = np.broadcast_to(fixed.rows, (runs, size, 3))
    expected = np.mean((network.outputs(parameters, fixed.rows[0]) - labels) ** 2) + noise**2 / size
    misses = weights @ network.outputs(parameters, fixed.rows[0]) - sums
    error = np.std(misses**2 / size) / np.sqrt(runs)
    found = bag_loss(network, parameters, ReleasedBags(rows, weights, sums), np.arange(runs))
    assert found == pytest.approx(expected, abs=4 * error)
    assert error < 0.02 * expected


def test_bags_of_one_row_give_the_loss_of_rows():
    network, parameters, bags, _ = problem(30, 1)
    single = ReleasedBags(bags.rows, np.ones((30, 1)), bags.sums)
    expected = np.mean((network.outputs(parameters, bags.rows[:, 0]) - bags.sums) ** 2)
    assert bag_loss(network, parameters, single, np.arange(30)) == pytest.approx(expected, rel=1e-12)
