"""Who is in which bag: the laws of counts against scipy, probabilities that add up, and designs that are refused.

Mean deltas over the ratio of a label's weight to its bag's noise, against quadrature of their laws.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.examples import examples

from federation.contract.errors import InputError
from federation.mechanisms.bag_sums.design import (
    BagDesign,
    Exposure,
    binomial,
    hypergeometric,
    mean_delta,
    mean_delta_chi,
)
from federation.mechanisms.noise import gaussian


@given(st.integers(1, 3000), st.floats(0, 1), st.floats(0, 1))
@settings(derandomize=True, max_examples=examples(10))
def test_hypergeometric_counts_agree_with_scipy(population: int, marked: float, drawn: float) -> None:
    marked, drawn = round(marked * population), round(drawn * population)
    counts, probability = hypergeometric(population, marked, drawn)
    expected = stats.hypergeom(population, marked, drawn).pmf(counts)
    np.testing.assert_allclose(probability, expected, rtol=1e-8, atol=1e-290)
    assert probability.sum() == pytest.approx(1, abs=1e-12)


def test_a_population_of_billions_costs_no_digits() -> None:
    counts, probability = hypergeometric(10**10, 10**9, 200)
    np.testing.assert_allclose(probability[:80], stats.binom(200, 0.1).pmf(counts[:80]), rtol=1e-4)


@pytest.mark.parametrize(("trials", "chance"), [(1, 1.0), (7, 1.0), (7, 0.3), (200, 0.99), (50, 1e-6)])
def test_binomial_counts_agree_with_scipy(trials: int, chance: float) -> None:
    counts, probability = binomial(trials, chance)
    np.testing.assert_allclose(probability, stats.binom(trials, chance).pmf(counts), rtol=1e-9)


@pytest.mark.parametrize(
    ("design", "own"),
    [
        (BagDesign(100, 4, 20, noisy=10), [[False], [True]]),
        (BagDesign(80, 4, 20, noisy=80), [[True]]),
        (BagDesign(100, 4, 20, per_bag=3), [[True, False]]),
        (BagDesign(100, 4, 20, per_bag=20), [[True]]),
        (BagDesign(5, 1, 1, noisy=2), [[False], [True]]),
    ],
)
def test_every_kind_of_record_is_in_a_bag_as_often_as_it_should(design: BagDesign, own: list[list[bool]]) -> None:
    assert [[part.own for part in parts] for parts in design.exposures()] == own
    for parts in design.exposures():
        assert math.fsum(part.probability.sum() for part in parts) == pytest.approx(design.inclusion)
        for part in parts:
            assert part.others.min() >= 0
            assert (part.others + part.own).max() <= design.size


def test_kinds_of_records() -> None:
    ((noisy, plain),) = BagDesign(100, 4, 20, per_bag=5).exposures()
    assert (noisy.own, noisy.others[0], plain.own, plain.others[0]) == (True, 4, False, 5)
    assert noisy.probability[0] == pytest.approx(0.8 * 5 / 20)


def test_how_often_a_bag_is_without_noise() -> None:
    design = BagDesign(640_000, 10_000, 64, noisy=64_000)
    assert design.noise_free == pytest.approx(stats.hypergeom(639_999, 64_000, 63).pmf(0), rel=1e-9)
    assert design.noise_free == pytest.approx(1.3e-3, rel=0.03)
    assert BagDesign(640, 10, 64, per_bag=1).noise_free == 0
    assert BagDesign(640, 10, 64, noisy=640).noise_free == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"records": 99, "noisy": 5}, r"5.*20.*100.*99"),
        ({"size": 0, "noisy": 5}, r"size.*1.*1099511627776.*0"),
        ({"bags": -1, "noisy": 5}, r"bags.*1"),
        ({"bags": 2.0, "noisy": 5}, "bags"),
        ({"bags": True, "noisy": 5}, "bags"),
        ({"noisy": 0}, r"noisy.*1.*100.*0"),
        ({"noisy": 101}, r"noisy.*1.*100"),
        ({"per_bag": 21}, r"per_bag.*1.*20"),
        ({"per_bag": 0}, "per_bag"),
        ({}, "per_bag"),
        ({"noisy": 5, "per_bag": 5}, "per_bag"),
        ({"noisy": 5, "weights": "sign"}, r"weights.*sign.*signs"),
    ],
)
def test_impossible_designs_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        BagDesign(**({"records": 100, "bags": 5, "size": 20} | arguments))


@pytest.mark.parametrize(("ratio", "releases"), [(0.1, 1), (1.0, 1), (0.5, 7)])
def test_weighted_labels_under_noise_of_a_fixed_scale(ratio: float, releases: int) -> None:
    nodes, weights = np.polynomial.legendre.leggauss(200)
    x = 10 * (nodes + 1)
    expected = float(10 * weights @ (stats.chi(releases).pdf(x) * gaussian.delta(1.0, ratio * x)))
    assert mean_delta_chi(1.0, ratio, releases) == pytest.approx(expected, rel=1e-7)


SURE = Exposure(own=False, others=np.array([4, 9]), probability=np.array([0.25, 0.75]))


@pytest.mark.parametrize("own", [False, True])
def test_signs_are_a_sum_over_the_counts_of_noisy_labels(own: bool) -> None:
    part = replace(SURE, own=own)
    expected = sum(p * gaussian.delta(0.5, 2 / math.sqrt(q + own)) for q, p in ((4, 0.25), (9, 0.75)))
    assert mean_delta(0.5, 2.0, part, "signs") == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("charge", [0.0, 1.0])
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


def test_a_charge_only_adds_and_what_doubles_cannot_hold_is_nothing() -> None:
    for weights in ("signs", "gaussian"):
        assert mean_delta(0.5, 2.0, SURE, weights) < mean_delta(0.5, 2.0, SURE, weights, charge=1e-3)
    assert mean_delta_chi(0.5, 0.3) < mean_delta_chi(0.5, 0.3, charge=1e-3)
    assert mean_delta_chi(30.0, 1e-3) == mean_delta(30.0, 1e-9, replace(SURE, own=True), "gaussian") == 0.0
