"""Intervals hold the ratios of sets as often as they say, and are as wide as what they account for."""

from __future__ import annotations

import numpy as np
import pytest
from support.mixtures import Mixtures, skewed

from aggregator.learners.class_ratios.class_means import ClassMeans, EnergyMeans, WhitenedMeans
from aggregator.learners.class_ratios.drift import intervals
from federation.contract.errors import InputError

SHARES = np.concatenate([skewed(3, 0.1)] * 2)
TARGETS = ([0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.34, 0.33, 0.33])


def released(shares, deviation, random):
    drawn = deviation * random.normal(size=shares.shape)
    covariance = deviation**2 * (np.eye(shares.shape[1]) - 1 / shares.shape[1])
    return shares + drawn - drawn.mean(axis=1, keepdims=True), np.tile(covariance, (len(shares), 1, 1))


def coverage(estimator, deviation, repetitions=50):
    """How often intervals hold the ratios of shifted sets, over classes, sets and fits to fresh noisy bags."""
    world, rng, inside = Mixtures(3, distance=1.2), np.random.default_rng(0), []
    for repetition in range(repetitions):
        bags = world.bags(SHARES, 100, rng)
        shares, noise = released(SHARES, deviation, rng)
        estimator.set_params(seed=repetition).fit(bags, shares, noise if deviation else None)
        for ratios in TARGETS:
            rows = world.rows(ratios, 200, rng)
            low, high = intervals(estimator, rows, draws=100, seed=repetition).T
            inside.append((low <= ratios) & (ratios <= high))
    return np.mean(inside)


@pytest.mark.parametrize("deviation", [0.0, 0.05])
@pytest.mark.parametrize(
    "estimator",
    [ClassMeans(features=32), WhitenedMeans(features=32), WhitenedMeans("linear")],
    ids=lambda one: one.name,
)
def test_nine_of_ten_hold_the_truth(estimator, deviation):
    assert 0.85 <= coverage(estimator, deviation) <= 0.96


def test_released_means_with_known_noise_are_covered_too():
    world, rng, inside = Mixtures(3, distance=1.2), np.random.default_rng(1), []
    for repetition in range(60):
        means = SHARES @ world.means + 0.1 * rng.normal(size=(6, 6))
        estimator = WhitenedMeans("linear").fit_means(
            means, [10_000] * 6, SHARES, covariance=np.eye(6), mean_noise=0.01
        )
        for ratios in TARGETS:
            low, high = intervals(estimator, world.rows(ratios, 400, rng), draws=100, seed=repetition).T
            inside.append((low <= ratios) & (ratios <= high))
    assert 0.85 <= np.mean(inside) <= 0.96


def width(size, target_size, deviation, level=0.9):
    world, rng = Mixtures(3, distance=1.2), np.random.default_rng(2)
    shares, noise = released(SHARES, deviation, rng)
    estimator = WhitenedMeans(features=32).fit(world.bags(SHARES, size, rng), shares, noise if deviation else None)
    low, high = intervals(estimator, world.rows([0.3, 0.3, 0.4], target_size, rng), level).T
    return float(np.mean(high - low))


def test_every_source_of_error_widens_them():
    base = width(2000, 2000, 0.0)
    assert width(100, 2000, 0.0) > 1.5 * base
    assert width(2000, 100, 0.0) > 1.5 * base
    assert width(2000, 2000, 0.1) > 1.5 * base
    assert width(2000, 2000, 0.0, level=0.5) < 0.6 * base
    assert width(20_000, 20_000, 0.0) < 0.5 * base


def test_they_are_inside_the_simplex_hold_the_estimate_and_depend_on_the_seed_alone():
    world, rng = Mixtures(3), np.random.default_rng(3)
    estimator = WhitenedMeans(features=32).fit(world.bags(SHARES, 60, rng), SHARES)
    rows = world.rows([0.0, 0.2, 0.8], 50, rng)
    found = intervals(estimator, rows, seed=1)
    assert found.shape == (3, 2)
    assert found.min() >= 0
    assert found.max() <= 1
    estimate = estimator.predict(rows)
    assert np.all((found[:, 0] <= estimate + 1e-9) & (estimate <= found[:, 1] + 1e-9))
    assert np.array_equal(found, intervals(estimator, rows, seed=1))
    assert not np.array_equal(found, intervals(estimator, rows, seed=2))
    stored = WhitenedMeans.from_arrays(*estimator.to_arrays())
    assert np.array_equal(found, intervals(stored, rows, seed=1))
    assert np.isfinite(intervals(estimator, rows[:1])).all()


def test_they_refuse_what_they_cannot_do():
    world, rng = Mixtures(3), np.random.default_rng(4)
    bags = world.bags(SHARES, 20, rng)
    for estimator in (
        ClassMeans("exact"),
        EnergyMeans(),
        WhitenedMeans(features=32, debiased=False),
        ClassMeans("linear", debiased=False),
    ):
        with pytest.raises(InputError, match="intervals need an estimator"):
            intervals(estimator.fit(bags, SHARES), bags[0])
    fitted = WhitenedMeans(features=32).fit(bags, SHARES)
    for arguments in ({"level": 1.0}, {"level": 0.0}, {"draws": 10}):
        with pytest.raises(InputError, match="level must lie"):
            intervals(fitted, bags[0], **arguments)
    with pytest.raises(InputError, match="6 columns"):
        intervals(fitted, bags[0][:, 1:])
