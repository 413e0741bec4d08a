"""Laplace noise on signed label sums: its law, its delta in closed form, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from support.weighted_bags import RANGE, K, M

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.bag_sums import noisy_labels as laplace


def test_laplace_noise(drawn) -> None:
    labels, weights, _ = drawn
    mechanism = laplace.laplace_bag_sums(2 * M * K, M, K, label_range=RANGE, epsilon=0.5)
    error = mechanism.release(labels, np.sign(weights), NoiseBits(1, "test")) - (np.sign(weights) * labels).sum(axis=1)
    assert mechanism.scale == pytest.approx(8.0)
    assert stats.kstest(error / 8, "laplace").pvalue > 1e-3


def test_laplace_is_pure() -> None:
    mechanism = laplace.laplace_bag_sums(640, 5, 64, label_range=RANGE, epsilon=0.7)
    assert (mechanism.delta_at(0.7), mechanism.guarantee().delta) == (0, 0)
    # P[loss > e] for the Laplace law: delta = 1 - exp((e - epsilon)/2), for the half of the records in bags.
    assert mechanism.delta_at(0.2) == pytest.approx(0.5 * -math.expm1(-0.25), rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a positive"),
        ({"epsilon": 1e-9}, "scale must be an integer from 1 to 2\\^40"),
        ({"label_range": (1.0, 0.0)}, "label_range must be"),
        ({"size": 65}, "5 bags of 65 need 325 records"),
    ],
)
def test_impossible_laplace_mechanisms_are_refused(arguments: dict, message: str) -> None:
    wanted = {"records": 320, "bags": 5, "size": 64, "label_range": RANGE, "epsilon": 1.0} | arguments
    with pytest.raises(InputError, match=message):
        laplace.laplace_bag_sums(**wanted)


def test_other_weights_and_shapes_are_refused(drawn) -> None:
    labels, weights, _ = drawn
    bits = NoiseBits(1, "x")
    pure = laplace.laplace_bag_sums(2 * M * K, M, K, label_range=RANGE, epsilon=1.0)
    with pytest.raises(InputError, match="weights must be -1 or 1"):
        pure.release(labels, weights, bits)
    with pytest.raises(InputError, match="bags by size"):
        pure.release(labels[:5], weights[:5], bits)
