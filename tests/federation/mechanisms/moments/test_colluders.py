"""What more colluders than were counted on leave of a promise, beside quadrature of the laws and published figures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from federation.contract.errors import InputError
from federation.mechanisms.noise.additive import AdditiveMechanism, calibrate, calibrate_laplace
from federation.mechanisms.noise.gaussian import delta as gaussian_delta
from federation.mechanisms.sums.shares import weakened


def laplace(dimension: int) -> AdditiveMechanism:
    return calibrate_laplace(l1_sensitivity=1.0, dimension=dimension, epsilon=1.0)


@pytest.mark.parametrize(
    ("dimension", "left", "epsilon"),
    [
        (1, 0.95, 1.087), (1, 0.9, 1.188), (1, 0.8, 1.443), (1, 0.7, 1.820), (1, 0.5, math.inf),
        (50, 0.95, 1.458), (50, 0.9, 2.145), (50, 0.8, 4.777), (50, 0.7, 11.2), (50, 0.4, math.inf),
    ],
)  # fmt: skip
def test_laplace_noise(dimension: int, left: float, epsilon: float) -> None:
    assert weakened(laplace(dimension), left) == pytest.approx(epsilon, rel=2e-3)


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
@pytest.mark.parametrize("dimension", [1, 2, 50])
def test_the_whole_noise_keeps_its_promise(noise, dimension: int) -> None:
    whole = calibrate(noise, sensitivity=1.0, dimension=dimension, epsilon=1.0, delta=1e-6)
    assert weakened(whole, 1.0) == pytest.approx(1.0, rel=1e-4)


def test_nothing_pure_is_left_of_l2_gamma_noise_below_d_of_d_plus_1() -> None:
    whole = calibrate("pure", sensitivity=1.0, dimension=5, epsilon=1.0)
    assert weakened(whole, 5 / 6) == math.inf
    assert 2 < weakened(whole, 5 / 6 + 1e-3) < math.inf


def density(x: float, shape: float, scale: float) -> float:
    """Of a normal number whose variance is Gamma(`shape`, 2 scale^2), by quadrature over the variance."""

    def part(log: float) -> float:
        variance = math.exp(log)
        gamma = variance ** (shape - 1) * math.exp(-variance / (2 * scale**2)) / (2 * scale**2) ** shape
        return (
            gamma
            / math.gamma(shape)
            * math.exp(-(x**2) / (2 * variance))
            / math.sqrt(2 * math.pi * variance)
            * variance
        )

    return quad(part, -60, 12, limit=400, epsabs=0)[0]


@pytest.mark.parametrize("left", [0.65, 0.8, 0.95])
def test_the_loss_is_that_of_the_mixture_and_nowhere_larger(left: float) -> None:
    """One coordinate of shares of Laplace noise: a normal number whose variance has the shape r."""
    whole = laplace(1)
    scale, moved = whole.scale, whole.charged
    worst = weakened(whole, left)
    found = [math.log(density(x, left, scale) / density(x - moved, left, scale)) for x in (1e-9, 0.05, -0.3, -2.0)]
    assert found[0] == pytest.approx(worst, rel=1e-3)
    assert max(found[1:]) < worst


def test_gaussian_noise_meets_its_delta_there() -> None:
    whole = calibrate("gaussian", sensitivity=1.0, dimension=3, epsilon=1.0, delta=1e-6)
    mu = whole.charged / whole.scale / math.sqrt(0.7)
    assert gaussian_delta(weakened(whole, 0.7), mu) == pytest.approx(1e-6, rel=1e-6)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(1, 60), st.floats(0.51, 1.0), st.floats(0.01, 0.2))
def test_fewer_shares_promise_less(dimension: int, left: float, fewer: float) -> None:
    for whole in (laplace(dimension), calibrate("pure", sensitivity=1.0, dimension=dimension, epsilon=1.0)):
        assert weakened(whole, left - fewer) >= weakened(whole, left) * (1 - 1e-9)


@pytest.mark.parametrize("left", [0.0, -0.1, 1.1, np.nan])
def test_a_part_of_the_noise_is_from_0_to_1(left: float) -> None:
    with pytest.raises(InputError, match="left must be a part of the noise"):
        weakened(laplace(2), left)
