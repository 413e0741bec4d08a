"""Who is in which bag: the laws of counts against scipy, probabilities that add up, and designs that are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from federation.contract.errors import InputError
from federation.mechanisms.bag_sums.design import BagDesign, binomial, hypergeometric


@given(st.integers(1, 3000), st.floats(0, 1), st.floats(0, 1))
@settings(derandomize=True, deadline=None, max_examples=60)
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
    "design",
    [
        BagDesign(100, 4, 20, noisy=10),
        BagDesign(80, 4, 20, noisy=80),
        BagDesign(100, 4, 20, per_bag=3),
        BagDesign(100, 4, 20, per_bag=20),
        BagDesign(5, 1, 1, noisy=2),
    ],
)
def test_every_kind_of_record_is_in_a_bag_as_often_as_it_should(design: BagDesign) -> None:
    for parts in design.exposures():
        assert math.fsum(part.probability.sum() for part in parts) == pytest.approx(design.inclusion)
        for part in parts:
            assert part.others.min() >= 0
            assert (part.others + part.own).max() <= design.size


def test_kinds_of_records() -> None:
    assert [part.own for (part,) in BagDesign(100, 4, 20, noisy=10).exposures()] == [False, True]
    assert [part.own for (part,) in BagDesign(100, 4, 20, noisy=100).exposures()] == [True]
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
        ({"records": 99, "noisy": 5}, "5 bags of 20 need 100 records, got 99"),
        ({"size": 0, "noisy": 5}, "size must be an integer from 1 to 1099511627776, got 0"),
        ({"bags": -1, "noisy": 5}, "bags must be an integer from 1"),
        ({"bags": 2.0, "noisy": 5}, "bags must be an integer"),
        ({"bags": True, "noisy": 5}, "bags must be an integer"),
        ({"noisy": 0}, "noisy must be an integer from 1 to all 100, got 0"),
        ({"noisy": 101}, "noisy must be an integer from 1 to all 100"),
        ({"per_bag": 21}, "per_bag must be an integer from 1 to all 20"),
        ({"per_bag": 0}, "per_bag must be an integer"),
        ({}, "give noisy, .* or per_bag"),
        ({"noisy": 5, "per_bag": 5}, "give noisy, .* or per_bag"),
        ({"noisy": 5, "weights": "sign"}, "weights must be one of gaussian, signs, got 'sign'; did you mean 'signs'"),
    ],
)
def test_impossible_designs_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        BagDesign(**({"records": 100, "bags": 5, "size": 20} | arguments))
