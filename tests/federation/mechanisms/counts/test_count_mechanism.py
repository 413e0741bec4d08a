"""Every mechanism for label counts keeps the same promises: sums stay public, moments do not move them."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.additive import CountReplacement
from federation.mechanisms.counts.calibration import CountNoise, calibrate

COUNTS = np.array([50, 40, 60])
EXTRA = {"dirichlet_floor": {"floor": 40}, "dirichlet_shifted": {"pseudo_count": 400}}


class Claim(CountReplacement):
    """A claim and nothing else."""

    name, epsilon, delta, parameters, assumptions = "claim", 1.0, 0.0, {}, ()


@pytest.fixture(params=get_args(CountNoise))
def mechanism(request):
    return calibrate(request.param, classes=3, epsilon=1.0, delta=1e-3, **EXTRA.get(request.param, {}))


def test_counts_protect_a_label_and_a_person_of_one_record():
    assert {Claim().guarantee(unit).unit for unit in (Unit.LABEL, Unit.PERSON)} == {Unit.LABEL, Unit.PERSON}
    for unit, adjacency in ((Unit.ROW, Adjacency.REPLACE), (Unit.PERSON, Adjacency.ADD_REMOVE)):
        with pytest.raises(InputError, match="unit must be label or person for claim"):
            Claim().guarantee(unit, adjacency)


def test_every_release_keeps_the_public_size_of_the_bag(mechanism):
    released = mechanism.release(COUNTS, NoiseBits(1, "test"), draws=20)
    assert (released.shape, released.dtype) == ((20, mechanism.classes), np.float64)
    np.testing.assert_allclose(released.sum(axis=1), COUNTS.sum(), rtol=1e-9)
    np.testing.assert_array_equal(released, mechanism.release(COUNTS, NoiseBits(1, "test"), draws=20))


def test_the_covariance_leaves_the_size_where_it_is(mechanism):
    covariance = mechanism.covariance(int(COUNTS.sum()))
    assert covariance.shape == (3, 3)
    np.testing.assert_allclose(covariance, covariance.T)
    np.testing.assert_allclose(covariance.sum(axis=1), 0, atol=1e-9 * np.trace(covariance))
    assert np.linalg.eigvalsh(covariance).min() >= -1e-9 * np.trace(covariance)


def test_persons_are_promised_what_labels_are(mechanism):
    label, person = mechanism.guarantee(), mechanism.guarantee(Unit.PERSON)
    assert (label.epsilon, label.delta) == (person.epsilon, person.delta)
