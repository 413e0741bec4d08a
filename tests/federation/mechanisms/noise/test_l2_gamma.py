"""L2-Gamma noise against its law; its exact delta against many-digit Bessel functions and Monte Carlo."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.examples import every_third
from support.refusals import refused

from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise import gaussian, l2_gamma


@pytest.mark.parametrize("dimension", [1, 2, 3, 20])
def test_norms_are_gamma_and_directions_uniform(dimension: int) -> None:
    noise = l2_gamma.sample(NoiseBits(1, "l2"), dimension, 2.5, 100_000)
    assert noise.shape == (100_000, dimension)
    norms = np.linalg.norm(noise, axis=1)
    assert stats.kstest(norms, stats.gamma(dimension, scale=2.5).cdf).pvalue > 1e-3
    # The wrong radius laws of the audit are rejected: Gamma(D - 1), and a scale off by two percent.
    assert stats.kstest(norms, stats.gamma(dimension, scale=2.5 * 1.02).cdf).pvalue < 1e-3
    first = noise[:, 0] / norms
    if dimension > 1:
        # (1 + u)/2 of a uniform direction is Beta((D-1)/2, (D-1)/2).
        beta = stats.beta((dimension - 1) / 2, (dimension - 1) / 2)
        assert stats.kstest((1 + first) / 2, beta.cdf).pvalue > 1e-3
        assert np.abs(np.corrcoef(noise.T) - np.eye(dimension)).max() < 0.02
        assert noise.var(axis=0) == pytest.approx((dimension + 1) * 2.5**2, rel=0.04)
    else:
        assert abs(np.mean(first > 0) - 0.5) < 0.01


def precise_delta(epsilon: float, loss: float, dimension: int) -> float:
    """The integral over theta with the density's own constants, nothing normalised numerically (D >= 2)."""
    with mpmath.workdps(30):
        z, nu = mpmath.mpf(loss) / 2, mpmath.mpf(dimension) / 2 - 1
        sphere = 2 * mpmath.pi ** (mpmath.mpf(dimension) / 2) / mpmath.gamma(mpmath.mpf(dimension) / 2)
        ring = 2 * mpmath.pi ** (mpmath.mpf(dimension - 1) / 2) / mpmath.gamma(mpmath.mpf(dimension - 1) / 2)
        constant = ring * z**dimension / (sphere * mpmath.gamma(dimension))

        def radial(order: mpmath.mpf) -> mpmath.mpf:
            """∫_1^∞ (xi² - 1)^(order - 1/2) e^(-z xi) d xi."""
            half = mpmath.gamma(order + mpmath.mpf(1) / 2) / mpmath.sqrt(mpmath.pi)
            return half * (2 / z) ** order * mpmath.besselk(order, z)

        outer, inner = radial(nu + 1), radial(nu)

        def integrand(theta: mpmath.mpf) -> mpmath.mpf:
            sine, cosine = mpmath.sin(theta), mpmath.cos(theta)
            density = constant * sine ** (dimension - 2) * mpmath.exp(z * cosine) * (outer + sine**2 * inner)
            return density * (1 - mpmath.exp(epsilon - loss * cosine))

        end = mpmath.acos(mpmath.mpf(epsilon) / loss)
        return float(mpmath.quad(integrand, mpmath.linspace(0, end, 9)))


@pytest.mark.parametrize("dimension", every_third([2, 3, 4, 5, 10, 51, 400]))
@pytest.mark.parametrize(("epsilon", "loss"), [(0.0, 0.3), (0.1, 1.0), (0.9, 1.0), (2.0, 8.0), (0.5, 30.0)])
def test_delta_equals_the_integral_in_many_digits(epsilon: float, loss: float, dimension: int) -> None:
    ours = l2_gamma.delta(epsilon, 3 * loss, dimension, 3.0)
    assert ours == pytest.approx(precise_delta(epsilon, loss, dimension), rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("dimension", [1, 2, 3, 8, pytest.param(30, marks=pytest.mark.slow)])
def test_delta_equals_monte_carlo(dimension: int) -> None:
    noise = l2_gamma.sample(NoiseBits(2, "monte carlo"), dimension, 1.0, 400_000)
    moved = noise.copy()
    moved[:, 0] -= 1.5
    losses = np.linalg.norm(moved, axis=1) - np.linalg.norm(noise, axis=1)
    for epsilon in (0.0, 0.3, 1.0):
        sampled = np.maximum(0.0, -np.expm1(epsilon - losses))
        error = 4 * sampled.std() / math.sqrt(len(sampled)) + 1e-6
        assert abs(l2_gamma.delta(epsilon, 1.5, dimension, 1.0) - sampled.mean()) < error


def test_one_dimension_is_the_laplace_closed_form() -> None:
    # Laplace: P[X < x] - e^epsilon Q[X < x] at the threshold (l - epsilon)/2.
    for epsilon, loss in ((0.0, 1.0), (0.2, 0.5), (3.0, 4.0)):
        threshold = (loss - epsilon) / 2
        expected = stats.laplace.cdf(threshold) - math.exp(epsilon) * stats.laplace.cdf(threshold - loss)
        assert l2_gamma.delta(epsilon, loss, 1, 1.0) == pytest.approx(expected, rel=1e-12)


@given(st.integers(1, 200), st.floats(0.01, 20), st.floats(0, 0.999))
@settings(derandomize=True)
def test_delta_is_a_trade_off_curve(dimension: int, loss: float, part: float) -> None:
    deltas = [l2_gamma.delta(e, loss, dimension, 1.0) for e in (0.0, part * loss, loss, 2 * loss)]
    assert 1 > deltas[0] >= deltas[1] >= 0
    assert deltas[2] == deltas[3] == 0
    # (loss, 0)-privacy bounds the total variation distance.
    assert deltas[0] <= math.tanh(loss / 2) * (1 + 1e-9)


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_more_dimensions_leak_less_and_very_many_what_gaussian_noise_does(mu: float) -> None:
    """Each coordinate has variance D + 1, and a share of about 1/D is all that tells the two apart."""
    deltas = [l2_gamma.delta(0.5, 1.0, dimension, 1.0) for dimension in (1, 2, 5, 20, 100, 10_000)]
    assert all(a > b for a, b in pairwise(deltas))
    dimension = 100_000
    for epsilon in (0.0, mu):
        ours = l2_gamma.delta(epsilon, mu * math.sqrt(dimension + 1), dimension, 1.0)
        assert ours == pytest.approx(gaussian.delta(epsilon, mu), rel=1e-4)


@pytest.mark.parametrize(
    ("name", "values", "drawn"),
    [
        ("dimension", (0,), (0, 1.5)),
        ("scale", (-1.0,), (0.0, math.nan)),
        ("sensitivity", (0.0, 2e9), ()),
        ("epsilon", (-0.1,), ()),
        ("draws", (), (-1, 1.5)),
    ],
)
def test_impossible_parameters_are_refused(name: str, values: tuple, drawn: tuple) -> None:
    for value in values:
        refused(name, l2_gamma.delta, **{"epsilon": 0.1, "sensitivity": 1.0, "dimension": 2, "scale": 1.0, name: value})
    for value in drawn:
        refused(name, l2_gamma.sample, NoiseBits(1, "x"), **{"dimension": 2, "scale": 1.0, "draws": 3, name: value})
