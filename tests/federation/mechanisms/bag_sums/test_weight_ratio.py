"""Mean deltas over the ratio of a label's weight to its bag's noise, against quadrature of their laws."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from federation.mechanisms.bag_sums.design import Exposure, mean_delta, mean_delta_chi
from federation.mechanisms.noise import gaussian


def test_weighted_labels_under_noise_of_a_fixed_scale() -> None:
    for ratio, releases in ((0.1, 1), (1.0, 1), (0.5, 7)):
        law = stats.chi(releases)
        x = np.linspace(1e-6, 20, 400_001)
        expected = float(np.trapezoid(law.pdf(x) * gaussian.delta(1.0, ratio * x), x))
        assert mean_delta_chi(1.0, ratio, releases) == pytest.approx(expected, rel=1e-7)


SURE = Exposure(own=False, others=np.array([4, 9]), probability=np.array([0.25, 0.75]))


@pytest.mark.parametrize("own", [False, True])
def test_signs_are_a_sum_over_the_counts_of_noisy_labels(own: bool) -> None:
    part = replace(SURE, own=own)
    expected = sum(p * gaussian.delta(0.5, 2 / math.sqrt(q + own)) for q, p in ((4, 0.25), (9, 0.75)))
    assert mean_delta(0.5, 2.0, part, "signs") == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("charge", [0.0, 1.0])
@pytest.mark.parametrize("own", [False, True])
def test_normal_weights_are_an_integral_over_the_law_of_the_ratio(own: bool, charge: float) -> None:
    """|u|/sqrt(chi2_q + own u²), by Monte Carlo."""
    rng, runs = np.random.default_rng(0), 400_000
    square = rng.normal(size=runs) ** 2
    others = rng.chisquare(rng.choice(SURE.others, runs, p=SURE.probability))
    values = gaussian.delta(0.5, 2 * np.sqrt(square / (others + own * square)) + charge)
    found = mean_delta(0.5, 2.0, replace(SURE, own=own), "gaussian", charge)
    assert found == pytest.approx(values.mean(), abs=4 * values.std() / math.sqrt(runs))


@pytest.mark.parametrize(("epsilon", "ratio"), [(1.0, 1.0), (20.0, 0.03), (100.0, 0.1), (100.0, 30.0)])
def test_one_other_noise_makes_a_heavy_tail_that_is_integrated_to_its_end(epsilon: float, ratio: float) -> None:
    """|u|/|v| has the half Cauchy law, and delta, flat at first, rises within a small part of its range."""
    x = np.linspace(-40.0, 60.0, 40_001)
    density = 2 / math.pi / (np.exp(x) + np.exp(-x))
    expected = np.trapezoid(density * gaussian.delta(epsilon, ratio * np.exp(x)), x)
    other = Exposure(own=False, others=np.array([1]), probability=np.array([1.0]))
    assert mean_delta(epsilon, ratio, other, "gaussian") == pytest.approx(float(expected), rel=1e-8)


@pytest.mark.parametrize("weights", ["signs", "gaussian"])
def test_a_label_without_any_noise_in_its_bag_is_revealed(weights: str) -> None:
    bare = Exposure(own=False, others=np.array([0]), probability=np.array([0.3]))
    assert mean_delta(5.0, 1e-3, bare, weights) == 0.3
    alone = mean_delta(0.5, 2.0, replace(bare, own=True), weights)
    assert alone == pytest.approx(0.3 * float(gaussian.delta(0.5, 2.0)), rel=1e-12)


def test_a_charge_only_adds() -> None:
    for weights in ("signs", "gaussian"):
        assert mean_delta(0.5, 2.0, SURE, weights) < mean_delta(0.5, 2.0, SURE, weights, charge=1e-3)
    assert mean_delta_chi(0.5, 0.3) < mean_delta_chi(0.5, 0.3, charge=1e-3)


def test_what_doubles_cannot_hold_is_nothing() -> None:
    assert mean_delta_chi(30.0, 1e-3) == 0.0
    assert mean_delta(30.0, 1e-9, replace(SURE, own=True), "gaussian") == 0.0
