"""Label mechanisms by name: what each name stands for, and which arguments it refuses."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels.calibration import LabelNoise, calibrate

NAMES = {
    "laplace": "label_laplace",
    "gaussian": "label_gaussian",
    "one_bit": "label_one_bit",
    "unbiased": "label_unbiased",
    "bins": "label_bins",
    "estimated_bins": "label_estimated_bins",
}


def by_name(noise, **others):
    return calibrate(noise, **{"epsilon": 1.0, "delta": 1e-6, "label_range": (0.0, 52.0), **others})


@pytest.mark.parametrize("noise", get_args(LabelNoise))
def test_a_name_gives_a_mechanism_that_keeps_its_claim(noise):
    mechanism = by_name(noise)
    assert mechanism.name == NAMES[noise]
    assert mechanism == by_name(noise)
    assert mechanism.delta_at(mechanism.epsilon) <= mechanism.delta + 1e-12
    assert mechanism.delta == (1e-6 if noise == "gaussian" else 0.0)
    labels = np.array([0, 52, 26, 3])
    released = mechanism.release(labels, NoiseBits(1, noise))
    assert released.shape == (4,)
    np.testing.assert_array_equal(released, mechanism.release(labels, NoiseBits(1, noise)))
    promised = mechanism.guarantee()
    assert (promised.epsilon, promised.delta, promised.mechanism) == (1.0, mechanism.delta, mechanism.name)
    assert len(promised.assumptions) >= 4


@pytest.mark.parametrize("noise", get_args(LabelNoise))
def test_labels_outside_are_refused_or_clipped_as_declared(noise):
    with pytest.raises(InputError, match="some do not"):
        by_name(noise).release(np.array([1.0, 53.0]), NoiseBits(1, "x"))
    with pytest.raises(InputError, match="NaN"):
        by_name(noise).release(np.array([1.0, np.nan]), NoiseBits(1, "x"))
    clipping = by_name(noise, outside="clip")
    bits = (NoiseBits(1, "x"), NoiseBits(1, "x"))
    np.testing.assert_array_equal(
        clipping.release(np.array([1.0, 53.0]), bits[0]), clipping.release(np.array([1.0, 52.0]), bits[1])
    )


@pytest.mark.parametrize(
    ("noise", "arguments", "message"),
    [
        ("lapalce", {}, "did you mean 'laplace'"),
        ("laplace", {"epsilon": 0.0}, "epsilon must be a positive finite number"),
        ("laplace", {"epsilon": float("nan")}, "epsilon"),
        ("gaussian", {"delta": 0.0}, "delta must be above 0 for noise gaussian"),
        ("gaussian", {"delta": 1.0}, r"delta must lie in \[0, 1\)"),
        ("one_bit", {"prior": [0.5, 0.5]}, "prior is for noise bins"),
        ("unbiased", {"epsilon": 12.5}, "from 0.01 to 12, got 12.5; choose noise laplace or auto"),
        ("one_bit", {"label_range": (1.0, 1.0)}, "label_range"),
        ("bins", {"points": 1}, "points"),
        ("bins", {"points": 1000}, "2 to 512, got 1000"),
        ("bins", {"prior": [0.5, 0.6]}, "sum 1"),
        ("estimated_bins", {"share": 0.0}, "share"),
        ("estimated_bins", {"points": 10.5}, "points must be an integer from 2 to 512, got 10.5"),
        ("bins", {"points": True}, "points must be an integer"),
    ],
)
def test_bad_arguments_are_refused(noise, arguments, message):
    with pytest.raises(InputError, match=message):
        by_name(noise, **arguments)


def test_a_public_prior_and_its_correction_reach_the_bins():
    known = by_name("bins", prior=[0.5, 0.0, 0.5])
    assert known.points == 3
    assert np.ptp(by_name("bins", prior=[0.5, 0.0, 0.5], debiased=True).values) > np.ptp(known.values)
