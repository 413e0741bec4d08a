"""What all additive count mechanisms share: checks of the counts, centring, guarantees.

Every mechanism for label counts keeps the same promises: sums stay public, moments do not move them.

The search for the smallest scale on its dyadic grid.
"""

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
    assert checked_counts(np.array([2.0**52, 0, 1]), 3).tolist() == [2**52, 0, 1]  # as doubles hold apart
    with pytest.raises(InputError, match="counts"):
        checked_counts(np.array(counts), 3)


@pytest.mark.parametrize("kind", KINDS)
def test_releases_sum_to_the_size_and_their_noise_does_not_depend_on_the_counts(kind: str) -> None:
    noise = []
    for counts in ([0, 0, 1], [5, 0, 95], np.array([2.0, 1.0, 0.0]), np.array([1, 2, 3], dtype=np.uint8)):
        released = mechanism(kind).release(np.asarray(counts), NoiseBits(1, "sum"), 50)
        assert (released.shape, released.dtype) == ((50, 3), np.float64)
        np.testing.assert_allclose(released.sum(axis=1), np.sum(counts), rtol=0, atol=1e-9)
        noise.append(released - counts)
    for other in noise[1:]:
        np.testing.assert_allclose(other, noise[0], atol=1e-9)
    with pytest.raises(InputError):  # an empty bag
        mechanism(kind).release(np.zeros(3), NoiseBits(1, "x"))


@pytest.mark.parametrize("kind", KINDS)
def test_guarantees_say_who_is_protected_and_survive_json(kind: str) -> None:
    further = Assumption("bags are disjoint", Check.CHECKED)
    made = mechanism(kind)
    promised = made.guarantee(further=(further,))
    assert (promised.unit, promised.adjacency) == (Unit.LABEL, Adjacency.REPLACE)
    assert (promised.epsilon, promised.delta, promised.mechanism) == (made.epsilon, made.delta, made.name)
    assert promised.assumptions[0] == further
    assert len(promised.assumptions) == 5
    assert Guarantee.from_dict(json.loads(json.dumps(promised.to_dict()))) == promised
    assert made.guarantee(Unit.PERSON).unit is Unit.PERSON
    with pytest.raises(InputError, match="adjacency"):
        made.guarantee(adjacency=Adjacency.ADD_REMOVE)
    # Mechanisms are frozen public numbers.
    assert {field.name for field in dataclasses.fields(made)} == {"classes", "epsilon", "delta", "scale"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.scale = Fraction(1)
    assert pickle.loads(pickle.dumps(made)) == made
    assert json.loads(json.dumps(made.parameters)) == made.parameters
    assert Fraction(made.parameters["scale"]) == made.scale


@given(st.integers(1, 50), st.integers(0, 10**9))
@settings(derandomize=True)
def test_equal_counts_are_as_equal_as_whole_numbers_can_be(classes: int, size: int) -> None:
    counts = equal_counts(classes, size)
    assert counts.sum() == size
    assert counts.max() - counts.min() <= 1
    # Exchangeable covariances have no variance of the sum.
    covariance = exchangeable(3.0, max(classes, 2))
    np.testing.assert_allclose(covariance.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_array_equal(np.diag(covariance), 3.0)


@pytest.mark.parametrize("classes", [2, 3, 4, 5])
@pytest.mark.parametrize(
    ("values", "wave"),
    [((-1, 0, 1), lambda t, scale: (1 + 2 * np.cos(t)) / 3), ((-1, 1), lambda t, scale: np.cos(t))],
    ids=["three values", "coins"],
)
def test_the_expected_l1_of_a_few_values_is_enumerated(values, wave, classes: int) -> None:
    every = np.array([*product(values, repeat=classes)])
    expected = np.abs(every - every.mean(axis=1, keepdims=True)).sum(axis=1).mean()
    assert centred_l1(wave, 1.0, classes, tail=4.0) == pytest.approx(expected, rel=1e-12)


COUNTS = np.array([50, 40, 60])
EXTRA = {"dirichlet_floor": {"floor": 40}, "dirichlet_shifted": {"pseudo_count": 400}}


@pytest.fixture(params=get_args(CountNoise))
def any_mechanism(request):
    return calibrate(request.param, classes=3, epsilon=1.0, delta=1e-3, **EXTRA.get(request.param, {}))


def test_every_release_keeps_the_public_size_of_the_bag(any_mechanism):
    released, again = (any_mechanism.release(COUNTS, NoiseBits(1, "test"), draws=20) for _ in range(2))
    assert (released.shape, released.dtype) == ((20, any_mechanism.classes), np.float64)
    np.testing.assert_allclose(released.sum(axis=1), COUNTS.sum(), rtol=1e-9)
    np.testing.assert_array_equal(released, again)
    covariance = any_mechanism.covariance(int(COUNTS.sum()))
    assert covariance.shape == (3, 3)
    np.testing.assert_allclose(covariance, covariance.T)
    np.testing.assert_allclose(covariance.sum(axis=1), 0, atol=1e-9 * np.trace(covariance))
    assert np.linalg.eigvalsh(covariance).min() >= -1e-9 * np.trace(covariance)
    label, person = any_mechanism.guarantee(), any_mechanism.guarantee(Unit.PERSON)
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
    tried: list[Fraction] = []
    scale = smallest_scale(lambda scale: tried.append(scale) is None, near)
    assert min(scale, *tried) > 0
    if near < 2.0**-21:
        assert scale == Fraction(1, 2**40)


def test_the_next_smaller_scale_is_not_enough_and_simple_fractions_are_hit_exactly() -> None:
    tried: dict[Fraction, bool] = {}

    def enough(scale: Fraction) -> bool:
        tried[scale] = scale * scale >= 2
        return tried[scale]

    scale = smallest_scale(enough, 1.0)
    assert tried[scale]
    assert max(failed for failed, served in tried.items() if not served) == scale - Fraction(1, 2**19)
    assert smallest_scale(lambda scale: scale * Fraction(0.05) >= 2, 39.0) == 40
    assert smallest_scale(lambda scale: scale >= Fraction(3, 8), 0.4) == Fraction(3, 8)


@pytest.mark.parametrize("near", [1e12, float("inf"), float("nan")])
def test_noise_beyond_the_samplers_is_refused(near: float) -> None:
    with pytest.raises(InputError, match="epsilon"):
        smallest_scale(lambda scale: True, near)
