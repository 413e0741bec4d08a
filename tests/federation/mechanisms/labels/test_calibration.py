"""Noise on single labels: the pair's delta against sums over its law, moments, and where the grid's ends lie.

Label mechanisms by name: what each name stands for, and which arguments it refuses.
"""

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels.calibration import STEPS, LabelNoise, calibrate, gaussian, laplace
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.noise import gaussian as continuous

RANGE = LabelRange(0.15, 5.0)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_laplace_attains_epsilon_and_no_more(epsilon):
    mechanism = laplace(RANGE, epsilon)
    attained = STEPS / mechanism.scale  # the log likelihood ratio of the two ends beyond them
    assert epsilon * (1 - 1e-4) <= attained <= epsilon
    assert mechanism.delta_at(epsilon) == 0.0
    assert mechanism.delta_at(0.9 * epsilon) > 0.0


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_laplace_delta_equals_the_integral_of_the_pair(share):
    """At 2^20 steps the continuous law is as good: delta = 1 - exp((epsilon - 1)/2) for a pair one scale apart."""
    mechanism = laplace(RANGE, 1.0)
    assert mechanism.delta_at(share) == pytest.approx(-math.expm1((share - 1) / 2), abs=1e-5)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 1e-3), (1.0, 1e-6), (4.0, 1e-9)])
def test_gaussian_noise_is_what_the_exact_formula_asks_for(epsilon, delta):
    mechanism = gaussian(RANGE, epsilon, delta)
    assert mechanism.delta_at(epsilon) <= delta
    needed = RANGE.width / continuous.mu(epsilon, delta)
    assert needed <= math.sqrt(mechanism.variance()) <= needed * (1 + 1e-5)


@pytest.mark.parametrize("mechanism", [laplace(RANGE, 1.0), gaussian(RANGE, 1.0, 1e-3)], ids=["laplace", "gaussian"])
def test_released_labels_are_unbiased_and_have_the_stated_variance(mechanism):
    labels = np.repeat([0.15, 2.0, 5.0], 60_000)
    noise = (mechanism.release(labels, NoiseBits(3, mechanism.name)) - labels).reshape(3, -1)
    spread = math.sqrt(mechanism.variance())
    assert np.abs(noise.mean(axis=1)).max() < 4.5 * spread / 60_000**0.5
    np.testing.assert_allclose(noise.var(axis=1), mechanism.variance(), rtol=0.05)
    np.testing.assert_array_equal(mechanism.variance(labels[:2]), [mechanism.variance()] * 2)
    # Two labels move a release by exactly as many steps as are charged: the same noise on the two ends.
    low, high = (mechanism.release(np.array([end]), NoiseBits(1, "same")) for end in (RANGE.low, RANGE.high))
    assert (high - low)[0] == pytest.approx(RANGE.width, rel=1e-12)
    grid = (low - RANGE.low) / (RANGE.width / STEPS)
    assert grid == pytest.approx(np.rint(grid), abs=1e-6)


@given(label=st.floats(0.15, 5.0))
def test_the_bias_is_the_rounding_and_nothing_else(label):
    mechanism = laplace(RANGE, 1.0)
    assert abs(mechanism.bias(np.array([label]))[0]) <= mechanism.bias() * (1 + 1e-6) + 1e-15
    assert mechanism.bias() == RANGE.width / STEPS / 2


def test_guarantees_are_per_label_and_read_by_composition():
    pure, with_delta = (mechanism.guarantee() for mechanism in (laplace(RANGE, 1.0), gaussian(RANGE, 1.0, 1e-6)))
    assert (pure.epsilon, pure.delta, pure.unit, pure.adjacency) == (1.0, 0.0, Unit.LABEL, Adjacency.REPLACE)
    assert with_delta.delta == 1e-6
    assert with_delta.gaussian_mu == pytest.approx(RANGE.width / with_delta.parameters["scale"])
    assert with_delta.parameters["dimension"] == 1
    assert Guarantee.from_dict(with_delta.to_dict()) == with_delta
    assert (laplace(RANGE, 1.0).name, gaussian(RANGE, 1.0, 0.1).name) == ("label_laplace", "label_gaussian")


def by_name(noise, **others):
    return calibrate(noise, **{"epsilon": 1.0, "delta": 1e-6, "label_range": (0.0, 52.0), **others})


@pytest.mark.parametrize("noise", get_args(LabelNoise))
def test_a_name_gives_a_mechanism_that_keeps_its_claim(noise):
    mechanism = by_name(noise)
    assert mechanism.name == f"label_{noise}"
    assert mechanism.delta_at(mechanism.epsilon) <= mechanism.delta + 1e-12
    assert mechanism.delta == (1e-6 if noise == "gaussian" else 0.0)
    promised = mechanism.guarantee()
    assert (promised.epsilon, promised.delta, promised.mechanism) == (1.0, mechanism.delta, mechanism.name)


@pytest.mark.parametrize("noise", get_args(LabelNoise))
def test_labels_outside_are_refused_or_clipped_as_declared(noise):
    for wrong, told in ((53.0, None), (np.nan, "NaN")):
        refused(told, by_name(noise).release, np.array([1.0, wrong]), NoiseBits(1, "x"))
    clipping = by_name(noise, outside="clip")
    released = [clipping.release(np.array([1.0, end]), NoiseBits(1, "x")) for end in (53.0, 52.0)]
    np.testing.assert_array_equal(*released)


@pytest.mark.parametrize(
    ("noise", "arguments", "message"),
    [
        ("lapalce", {}, "laplace"),
        *(("laplace", {"epsilon": epsilon}, "epsilon") for epsilon in (0.0, float("nan"))),
        ("gaussian", {"delta": 0.0}, r"delta.*0"),
        ("gaussian", {"delta": 1.0}, r"delta.*0.*1"),
        ("one_bit", {"prior": [0.5, 0.5]}, "prior"),
        ("unbiased", {"epsilon": 12.5}, r"0\.01.*12.*12\.5"),
        ("one_bit", {"label_range": (1.0, 1.0)}, "label_range"),
        *(("bins", {"points": points}, "points") for points in (1, True)),
        ("bins", {"points": 1000}, r"2.*512.*1000"),
        ("bins", {"prior": [0.5, 0.6]}, "1"),
        ("estimated_bins", {"share": 0.0}, "share"),
        ("estimated_bins", {"points": 10.5}, r"points.*2.*512.*10\.5"),
    ],
)
def test_bad_arguments_are_refused(noise, arguments, message):
    with pytest.raises(InputError, match=message):
        by_name(noise, **arguments)


def test_a_public_prior_and_its_correction_reach_the_bins():
    known = by_name("bins", prior=[0.5, 0.0, 0.5])
    assert known.points == 3
    assert np.ptp(by_name("bins", prior=[0.5, 0.0, 0.5], debiased=True).values) > np.ptp(known.values)
