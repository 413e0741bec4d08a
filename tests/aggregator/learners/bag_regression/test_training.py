"""Training on bags: the loss and its gradient, the steps, which bags decide when to stop, and what is kept."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.learners.bag_regression import network as module
from aggregator.learners.bag_regression.network import (
    Adam,
    BagNetwork,
    Perceptron,
    ReleasedBags,
    averaged,
    bag_loss,
    cosine_decay,
    train,
)
from federation.contract.randomness import NoiseBits
from federation.numerics.bag_weights import gaussian_weights, sign_weights

OPTIONS = {"epochs": 30, "learning_rate": 3e-3, "patience": None, "average": False}
NETWORK = Perceptron((3, 8, 1))


def released(count=60, size=4, seed=0):
    rng = np.random.default_rng(seed)
    rows, weights = rng.normal(size=(count, size, 3)).astype(np.float32), rng.normal(size=(count, size))
    labels = np.tanh(rows[..., 0]) + 0.3 * rng.normal(size=(count, size))
    return ReleasedBags(rows, weights.astype(np.float32), (weights * labels).sum(axis=1).astype(np.float32))


def trained(bags, validation=12, seed=1, batch=4, **changes):
    options = BagNetwork((-1, 1), **{**OPTIONS, **changes})
    return train(NETWORK, bags, validation, batch, options, np.random.default_rng(seed))


def held_out(count, validation, seed=1):
    """The bags that are held out: the first ones of the permutation drawn after the initial parameters."""
    rng = np.random.default_rng(seed)
    NETWORK.initial(rng)
    return rng.permutation(count)[:validation]


def test_the_loss_of_training_bags_falls():
    losses = trained(released(), patience=None).losses
    assert losses.shape == (30, 2)
    assert losses[-1, 0] < 0.5 * losses[0, 0]


def test_the_best_parameters_are_those_of_the_smallest_validation_loss():
    bags = released()
    found, chosen = trained(bags), held_out(60, 12)
    assert bag_loss(NETWORK, found.parameters, bags, chosen) == found.losses[:, 1].min()
    last = trained(bags, restore_best=False)
    assert bag_loss(NETWORK, last.parameters, bags, chosen) == last.losses[-1, 1]
    np.testing.assert_array_equal(last.losses, found.losses)


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_training_stops_when_patience_ends(patience):
    without = trained(released(), epochs=100, learning_rate=0.03).losses[:, 1]
    losses = trained(released(), epochs=100, learning_rate=0.03, patience=patience).losses[:, 1]
    np.testing.assert_array_equal(losses, without[: len(losses)])
    lower = np.minimum.accumulate(np.append(np.inf, losses))
    waited = [0]
    for loss, least in zip(losses, lower, strict=False):
        waited.append(0 if loss < least else waited[-1] + 1)
    assert max(waited) == waited[-1] == patience


def test_validation_bags_decide_when_to_stop_and_are_not_learned_from():
    """Other sums of held out bags change their losses, and so where training stops, but no training loss before."""
    bags, chosen = released(), held_out(60, 12)
    sums = bags.sums.copy()
    sums[chosen] = sums[chosen][::-1] * 30
    other = replace(bags, sums=sums)
    first, second = trained(bags), trained(other)
    np.testing.assert_array_equal(first.losses[:, 0], second.losses[:, 0])
    assert (first.losses[:, 1] != second.losses[:, 1]).all()
    assert len(trained(bags, patience=3).losses) != len(trained(other, patience=3).losses)


def test_training_bags_are_learned_from():
    bags = released()
    used = np.setdiff1d(np.arange(60), held_out(60, 12))
    sums = bags.sums.copy()
    sums[used[0]] += 1
    assert (trained(replace(bags, sums=sums)).parameters != trained(bags).parameters).any()


def test_nothing_is_computed_from_other_bags_than_these(monkeypatch):
    """Every loss is of training bags with a gradient, or of validation bags without."""
    chosen, seen = set(held_out(60, 12).tolist()), []

    def watched(network, parameters, bags, part, gradient=None):
        seen.append((set(part.tolist()) <= chosen, chosen.isdisjoint(part.tolist()), gradient is None))
        return bag_loss(network, parameters, bags, part, gradient)

    monkeypatch.setattr(module, "bag_loss", watched)
    trained(released(), epochs=3)
    assert set(seen) == {(True, False, True), (False, True, False)}
    assert len(seen) == 3 * (12 + 1)


def test_without_validation_all_bags_are_learned_from_to_the_end():
    found = trained(released(), validation=0, patience=1)
    assert len(found.losses) == 30
    assert np.isnan(found.losses[:, 1]).all()
    assert (trained(released(), validation=0, restore_best=False).parameters == found.parameters).all()


def test_averages_weigh_steps_by_rising_factorials():
    values = np.random.default_rng(0).normal(size=(20, 3))
    average = np.full(3, 99.0)
    for step, value in enumerate(values, start=1):
        averaged(average, value, step)
        weights = np.array([math.prod(range(s, s + 8)) for s in range(1, step + 1)], dtype=float)
        np.testing.assert_allclose(average, weights @ values[:step] / weights.sum(), rtol=1e-12)


def test_averages_are_judged_and_kept_and_do_not_change_the_path(monkeypatch):
    seen = []

    def watched(average, parameters, step):
        seen.append((step, parameters.copy()))
        averaged(average, parameters, step)

    monkeypatch.setattr(module, "averaged", watched)
    bags = released()
    plain, found = trained(bags, restore_best=False), trained(bags, restore_best=False, average=True)
    np.testing.assert_array_equal(found.losses[:, 0], plain.losses[:, 0])
    np.testing.assert_array_equal(seen[-1][1], plain.parameters)
    assert [step for step, _ in seen] == list(range(1, 30 * 12 + 1))
    expected = np.zeros(NETWORK.size, np.float32)
    for step, parameters in seen:
        averaged(expected, parameters, step)
    np.testing.assert_allclose(found.parameters, expected, rtol=1e-5, atol=1e-6)
    assert bag_loss(NETWORK, found.parameters, bags, held_out(60, 12)) == found.losses[-1, 1]


def test_averages_have_less_of_the_noise_of_steps():
    jumps = [
        np.abs(np.diff(trained(released(), learning_rate=0.03, alpha=1.0, average=average).losses[:, 1], 2)).mean()
        for average in (False, True)
    ]
    assert jumps[1] < 0.6 * jumps[0]


def test_every_bag_is_seen_once_an_epoch(monkeypatch):
    seen = []

    def watched(network, parameters, bags, chosen, gradient=None):
        seen.extend(chosen.tolist())
        return bag_loss(network, parameters, bags, chosen, gradient)

    monkeypatch.setattr(module, "bag_loss", watched)
    trained(released(), validation=0, epochs=2, batch=7)
    assert sorted(seen[:60]) == sorted(seen[60:]) == list(range(60))
    assert seen[:60] != seen[60:]


def test_equal_generators_give_equal_bits_and_others_do_not():
    bags = released()
    np.testing.assert_array_equal(trained(bags).parameters, trained(bags).parameters)
    assert (trained(bags, seed=2).parameters != trained(bags).parameters).any()


def test_steps_are_the_weighted_means_of_the_algorithm():
    """The moments as explicit sums: m_t = sum (1 - b1) b1^(t-s) g_s, corrected by 1 - b1^t; likewise v_t."""
    rng = np.random.default_rng(0)
    start, gradients = rng.normal(size=5), rng.normal(size=(30, 5))
    parameters = start.copy()
    adam, expected = Adam(parameters), start.copy()
    for t, gradient in enumerate(gradients, start=1):
        adam.step(gradient, 1e-2)
        ages = np.arange(t - 1, -1, -1.0)
        first, second = 0.1 * 0.9**ages, 0.001 * 0.999**ages
        mean, square = first @ gradients[:t] / first.sum(), second @ gradients[:t] ** 2 / second.sum()
        expected -= 1e-2 * mean / (np.sqrt(square) + 1e-7)
        np.testing.assert_allclose(parameters, expected, rtol=1e-10)


def test_the_first_step_has_the_size_of_the_rate():
    parameters = np.zeros(3)
    Adam(parameters).step(np.array([5.0, -1e-3, 0.0]), 0.1)
    np.testing.assert_allclose(parameters, [-0.1, 0.1, 0.0], rtol=1e-3)


def test_it_finds_the_minimum_of_a_quadratic():
    parameters = np.array([3.0, -2.0])
    adam, centre = Adam(parameters), np.array([1.0, 0.5])
    for step in range(3000):
        adam.step(np.array([1.0, 100.0]) * (parameters - centre), cosine_decay(step, 3000, 1e-2, 1e-3))
    np.testing.assert_allclose(parameters, centre, atol=1e-4)


def test_the_rate_decays_from_initial_to_alpha_of_it():
    rates = [cosine_decay(step, 100, 1e-3, 1e-3) for step in range(101)]
    assert rates[0] == 1e-3
    assert rates[-1] == pytest.approx(1e-6)
    assert rates[50] == pytest.approx(1e-3 * (1 + 1e-3) / 2)
    assert all(later < earlier for earlier, later in pairwise(rates))
    assert rates[25] == pytest.approx(1e-6 + (1e-3 - 1e-6) * (1 + math.sqrt(0.5)) / 2)


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
    monkeypatch.setattr(module, "_TRAINING_TILE", 7)
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
