"""What all additive count mechanisms share: checks of the counts, centring, guarantees.

Every mechanism for label counts keeps the same promises: sums stay public, moments do not move them.

The search for the smallest scale on its dyadic grid.
"""

from __future__ import annotations

import dataclasses
import json
import pickle
from fractions import Fraction
from itertools import product
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.additive import (
    AdditiveCounts,
    CountReplacement,
    centred_l1,
    checked_counts,
    equal_counts,
    exchangeable,
    smallest_scale,
)
from federation.mechanisms.counts.calibration import CountNoise, calibrate

KINDS = ["gaussian", "laplace", "pure", "independent_laplace"]


def mechanism(kind: str) -> AdditiveCounts:
    made = calibrate(kind, classes=3, epsilon=0.5, delta=1e-3)
    assert isinstance(made, AdditiveCounts)
    return made


@pytest.mark.parametrize(
    "counts",
    [[1, 2], [[1, 2, 3]], [1, 2, -1], [1, 2, 0.5], [1, 2, np.nan], [1, 2, np.inf], [1, 2, 2.0**53], ["1", "2", "3"]],
)
def test_what_are_no_counts_is_refused(counts: list) -> None:
    with pytest.raises(InputError, match="counts"):
        checked_counts(np.array(counts), 3)


def test_counts_may_be_as_large_as_doubles_hold_apart() -> None:
    assert checked_counts(np.array([2.0**52, 0, 1]), 3).tolist() == [2**52, 0, 1]


def test_an_empty_bag_is_refused() -> None:
    with pytest.raises(InputError):
        mechanism("pure").release(np.zeros(3), NoiseBits(1, "x"))


@pytest.mark.parametrize("draws", [-1, 1.5, True])
def test_impossible_numbers_of_draws_are_refused(draws: float) -> None:
    with pytest.raises(InputError, match="draws"):
        mechanism("pure").release(np.ones(3), NoiseBits(1, "x"), draws)


@pytest.mark.parametrize("kind", KINDS)
def test_releases_sum_to_the_size_whatever_the_counts_are(kind: str) -> None:
    for counts in ([0, 0, 1], [5, 0, 95], np.array([2.0, 1.0, 0.0]), np.array([1, 2, 3], dtype=np.uint8)):
        released = mechanism(kind).release(np.asarray(counts), NoiseBits(1, "sum"), 50)
        assert released.shape == (50, 3)
        assert released.dtype == np.float64
        np.testing.assert_allclose(released.sum(axis=1), np.sum(counts), rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_does_not_depend_on_the_counts(kind: str) -> None:
    first, second = (
        mechanism(kind).release(np.array(counts), NoiseBits(2, "same"), 20) - counts
        for counts in ([1, 2, 3], [1000, 0, 7])
    )
    np.testing.assert_allclose(first, second, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_guarantees_say_who_is_protected_and_survive_json(kind: str) -> None:
    further = Assumption("bags are disjoint", Check.CHECKED)
    made = mechanism(kind)
    promised = made.guarantee(further=(further,))
    assert (promised.unit, promised.adjacency) == (Unit.LABEL, Adjacency.REPLACE)
    assert (promised.epsilon, promised.delta) == (made.epsilon, made.delta)
    assert promised.mechanism == made.name
    assert promised.assumptions[0] == further
    assert len(promised.assumptions) == 5
    assert Guarantee.from_dict(json.loads(json.dumps(promised.to_dict()))) == promised
    assert made.guarantee(Unit.PERSON).unit is Unit.PERSON
    with pytest.raises(InputError, match="adjacency"):
        made.guarantee(adjacency=Adjacency.ADD_REMOVE)


@pytest.mark.parametrize("kind", KINDS)
def test_mechanisms_are_frozen_public_numbers(kind: str) -> None:
    made = mechanism(kind)
    assert {field.name for field in dataclasses.fields(made)} == {"classes", "epsilon", "delta", "scale"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.scale = Fraction(1)  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(made)) == made
    assert json.loads(json.dumps(made.parameters)) == made.parameters
    assert Fraction(made.parameters["scale"]) == made.scale


@given(st.integers(1, 50), st.integers(0, 10**9))
@settings(derandomize=True)
def test_equal_counts_are_as_equal_as_whole_numbers_can_be(classes: int, size: int) -> None:
    counts = equal_counts(classes, size)
    assert counts.sum() == size
    assert counts.max() - counts.min() <= 1


def test_exchangeable_covariances_have_no_variance_of_the_sum() -> None:
    covariance = exchangeable(3.0, 4)
    np.testing.assert_allclose(covariance.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_array_equal(np.diag(covariance), 3.0)


@pytest.mark.parametrize("classes", [2, 3, 4, 5])
def test_the_expected_l1_of_three_values_is_enumerated(classes: int) -> None:
    """Where one is 0 the others' sum is not, as it is where all are as far from it."""
    every = np.array([*product((-1, 0, 1), repeat=classes)])
    expected = np.abs(every - every.mean(axis=1, keepdims=True)).sum(axis=1).mean()
    found = centred_l1(lambda t, scale: (1 + 2 * np.cos(t)) / 3, 1.0, classes, tail=4.0)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("classes", "expected"), [(2, 1.0), (3, 2.0)])
def test_the_expected_l1_of_coins_is_enumerated(classes, expected):
    """Of z_i = -1 or 1: two differ by 2 half of the time; of three one differs three times in four, by 8/3 in all."""
    found = centred_l1(lambda t, scale: np.cos(t), 1.0, classes, tail=4.0)
    assert found == pytest.approx(expected, rel=1e-12)


COUNTS = np.array([50, 40, 60])
EXTRA = {"dirichlet_floor": {"floor": 40}, "dirichlet_shifted": {"pseudo_count": 400}}


class Claim(CountReplacement):
    """A claim and nothing else."""

    name, epsilon, delta, parameters, assumptions = "claim", 1.0, 0.0, {}, ()


@pytest.fixture(params=get_args(CountNoise))
def count_mechanism_mechanism(request):
    return calibrate(request.param, classes=3, epsilon=1.0, delta=1e-3, **EXTRA.get(request.param, {}))


def test_counts_protect_a_label_and_a_person_of_one_record():
    assert {Claim().guarantee(unit).unit for unit in (Unit.LABEL, Unit.PERSON)} == {Unit.LABEL, Unit.PERSON}
    for unit, adjacency in ((Unit.ROW, Adjacency.REPLACE), (Unit.PERSON, Adjacency.ADD_REMOVE)):
        with pytest.raises(InputError, match="unit"):
            Claim().guarantee(unit, adjacency)


def test_every_release_keeps_the_public_size_of_the_bag(count_mechanism_mechanism):
    released = count_mechanism_mechanism.release(COUNTS, NoiseBits(1, "test"), draws=20)
    assert (released.shape, released.dtype) == ((20, count_mechanism_mechanism.classes), np.float64)
    np.testing.assert_allclose(released.sum(axis=1), COUNTS.sum(), rtol=1e-9)
    np.testing.assert_array_equal(released, count_mechanism_mechanism.release(COUNTS, NoiseBits(1, "test"), draws=20))


def test_the_covariance_leaves_the_size_where_it_is(count_mechanism_mechanism):
    covariance = count_mechanism_mechanism.covariance(int(COUNTS.sum()))
    assert covariance.shape == (3, 3)
    np.testing.assert_allclose(covariance, covariance.T)
    np.testing.assert_allclose(covariance.sum(axis=1), 0, atol=1e-9 * np.trace(covariance))
    assert np.linalg.eigvalsh(covariance).min() >= -1e-9 * np.trace(covariance)


def test_persons_are_promised_what_labels_are(count_mechanism_mechanism):
    label, person = count_mechanism_mechanism.guarantee(), count_mechanism_mechanism.guarantee(Unit.PERSON)
    assert (label.epsilon, label.delta) == (person.epsilon, person.delta)


@given(st.floats(1e-5, 1e9), st.floats(0.01, 100))
@settings(derandomize=True)
def test_it_is_the_smallest_on_a_fine_grid_wherever_the_search_starts(wanted: float, off: float) -> None:
    near = wanted * off
    scale = smallest_scale(lambda scale: scale >= wanted, near)
    step = max(near * 2**-19, 2**-40, 1.0 if near >= 2**20 else 0.0)
    assert wanted <= scale < wanted + step * (1 + 1e-9)
    assert scale == Fraction(float(scale))  # JSON keeps it


@pytest.mark.parametrize("near", [0.0, 1e-30, 2.0**-39, 0.3, 1.0, 2.0**30])
def test_no_scale_is_zero_and_none_is_tried(near: float) -> None:
    """Where any noise is enough, as where near is 0, the grid is as fine as it may be."""

    def enough(scale: Fraction) -> bool:
        assert scale > 0
        return True

    scale = smallest_scale(enough, near)
    assert scale > 0
    if near < 2.0**-21:
        assert scale == Fraction(1, 2**40)


def test_the_next_smaller_scale_is_not_enough() -> None:
    tried: dict[Fraction, bool] = {}

    def enough(scale: Fraction) -> bool:
        tried[scale] = scale * scale >= 2
        return tried[scale]

    scale = smallest_scale(enough, 1.0)
    assert tried[scale]
    assert max(failed for failed, served in tried.items() if not served) == scale - Fraction(1, 2**19)


def test_integers_and_simple_fractions_are_hit_exactly() -> None:
    assert smallest_scale(lambda scale: scale * Fraction(0.05) >= 2, 39.0) == 40
    assert smallest_scale(lambda scale: scale >= Fraction(3, 8), 0.4) == Fraction(3, 8)


@pytest.mark.parametrize("near", [1e12, float("inf"), float("nan")])
def test_noise_beyond_the_samplers_is_refused(near: float) -> None:
    with pytest.raises(InputError, match="epsilon"):
        smallest_scale(lambda scale: True, near)
