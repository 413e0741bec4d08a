"""Training on bags: which bags decide when to stop, what is kept, and that nothing else has a say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from aggregator.learners.bag_regression import training as module
from aggregator.learners.bag_regression.network import BagNetwork
from aggregator.learners.bag_regression.perceptron import Perceptron
from aggregator.learners.bag_regression.training import ReleasedBags, averaged, bag_loss, train

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
