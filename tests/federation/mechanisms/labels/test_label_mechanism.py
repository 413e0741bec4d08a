"""Every mechanism for labels keeps the same promises: a value for each label, moments as stated, premises in order."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels.calibration import LabelNoise, calibrate
from federation.mechanisms.labels.mechanism import PUBLIC_ROWS, LabelRange, LabelReplacement
from federation.mechanisms.noise.mechanism import NOISE_KEY

LABELS = np.linspace(-1.0, 3.0, 9)
OWN = Assumption("values are drawn somehow", Check.ENFORCED)


class Somehow(LabelReplacement):
    """A claim and one premise of its own."""

    name, epsilon, delta, parameters = "somehow", 1.0, 0.0, {}
    labels = LabelRange(0.0, 1.0)
    _own_assumptions = (OWN,)


def test_what_is_particular_stands_between_what_all_share():
    assert Somehow().assumptions == (PUBLIC_ROWS, LabelRange(0.0, 1.0).assumption, OWN, NOISE_KEY)
    assert Somehow().guarantee().assumptions == Somehow().assumptions


@pytest.fixture(params=get_args(LabelNoise))
def mechanism(request):
    return calibrate(request.param, epsilon=1.0, delta=1e-5, label_range=(-1.0, 3.0), points=8)


def test_premises_of_every_mechanism_begin_and_end_alike(mechanism):
    first, second, *own, last = mechanism.guarantee().assumptions
    assert (first, second, last) == (PUBLIC_ROWS, mechanism.labels.assumption, NOISE_KEY)
    assert own


def test_a_release_has_a_value_for_each_label_and_depends_on_the_bits_only(mechanism):
    first, again, other = (mechanism.release(LABELS, NoiseBits(seed, "test")) for seed in (1, 1, 2))
    assert (first.shape, first.dtype) == (LABELS.shape, np.float64)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("noise", get_args(LabelNoise))
def test_without_labels_moments_are_the_largest_of_any_label(noise):
    mechanism = calibrate(noise, epsilon=1.0, delta=1e-5, label_range=(-1.0, 3.0), points=8)
    labels = np.linspace(-1.0, 3.0, 4001)
    for moment in (mechanism.variance, mechanism.bias):
        each = moment(labels)
        assert each.shape == labels.shape
        assert np.abs(each).max() <= moment() * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("labels", [[], [[0.0]], [np.nan], [3.1], ["a"]])
def test_labels_that_are_none_are_refused(mechanism, labels):
    with pytest.raises(InputError, match="labels must"):
        mechanism.release(np.array(labels), NoiseBits(1, "test"))
