"""Independent discrete Laplace counts: delta against enumeration, moments against sums."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.exact_laws import IndependentLaplace
from federation.mechanisms.counts.exact_laws import calibrate_independent_laplace as calibrate
from federation.mechanisms.counts.exact_laws import independent_laplace_delta as exact_delta


def law(scale: float) -> tuple[np.ndarray, np.ndarray]:
    k = np.arange(-math.ceil(45 * scale) - 2, math.ceil(45 * scale) + 3)
    mass = np.exp(-np.abs(k) / scale)
    return k, mass / mass.sum()


@pytest.mark.parametrize("scale", [0.4, 1.0, 2.5, 8.147])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.8, 1.0, 1.5])
def test_delta_equals_enumeration_of_the_pair(scale: float, share: float) -> None:
    epsilon = share * 2 / scale
    _, mass = law(scale)
    up, down = np.append(0, mass[:-1]), np.append(mass[1:], 0)
    gap = np.multiply.outer(mass, mass) - math.exp(epsilon) * np.multiply.outer(up, down)
    # Rounding leaves gaps of about 1e-17 where the loss is exactly epsilon.
    assert exact_delta(epsilon, scale) == pytest.approx(gap[gap > 1e-15].sum(), abs=1e-10)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.9])
def test_centring_can_only_lower_delta(epsilon: float) -> None:
    """Two classes, as released: only the difference is left of the noise."""
    scale = 2.0
    _, mass = law(scale)
    difference = np.convolve(mass, mass[::-1])
    gap = difference[:-2] - math.exp(epsilon) * difference[2:]
    centred, noisy = gap[gap > 0].sum(), exact_delta(epsilon, scale)
    assert centred <= noisy + 1e-12
    assert (centred < 0.99 * noisy) == (epsilon > 0)  # at epsilon 0 the sign of the loss is all that counts


@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 0.05), (1.0, 1e-6), (0.3, 0.0), (4.0, 0.2)])
def test_calibration_is_the_smallest_scale(epsilon: float, delta: float) -> None:
    mechanism = calibrate(3, epsilon, delta)
    assert mechanism.delta_at(epsilon) <= delta
    assert exact_delta(epsilon, float(mechanism.scale) * (1 - 2**-17)) > delta
    assert mechanism.scale * Fraction(epsilon) >= 2 or delta > 0


@pytest.mark.parametrize(("classes", "scale"), [(2, Fraction(1, 3)), (3, Fraction(5, 2)), (6, Fraction(40))])
def test_moments_of_a_release(classes: int, scale: Fraction) -> None:
    mechanism = IndependentLaplace(classes, 1.0, 0.1, scale)
    counts = np.arange(classes) + 5
    noise = mechanism.release(counts, NoiseBits(1, "moments"), 200_000) - counts
    assert np.abs(noise.sum(axis=1)).max() < 1e-9
    np.testing.assert_allclose(np.cov(noise.T), mechanism.covariance(9), atol=0.03 * mechanism.variance())
    l1 = np.abs(noise).sum(axis=1)
    assert mechanism.expected_l1() == pytest.approx(l1.mean(), abs=4 * l1.std() / len(l1) ** 0.5)
    for count in (3.0, 60.0):
        assert (noise[:, 0] < -count).mean() <= mechanism.escape(count) <= 1


@pytest.mark.parametrize(("classes", "count", "reach"), [(2, 30.0, 30), (3, 40.0, 30), (6, 50.0, 30)])
def test_a_count_escapes_where_the_noise_of_some_class_reaches_far(classes: int, count: float, reach: int) -> None:
    k, mass = law(2.5)
    union = classes * mass[np.abs(k) >= reach].sum()
    assert IndependentLaplace(classes, 1.0, 0.1, Fraction(5, 2)).escape(count) == pytest.approx(union, rel=1e-9)


@pytest.mark.parametrize(("classes", "scale"), [(2, 0.4), (3, 2.5), (4, 6.0)])
def test_the_expected_l1_equals_a_plain_convolution(classes: int, scale: float) -> None:
    k, mass = law(scale)
    others = np.ones(1)
    for _ in range(classes - 1):
        others = np.convolve(others, mass)
    total = np.arange(len(others)) - len(others) // 2
    expected = np.abs((classes - 1) * k[:, None] - total) @ others @ mass
    assert IndependentLaplace(classes, 1.0, 0.1, Fraction(scale)).expected_l1() == pytest.approx(expected, rel=1e-9)


def test_wide_noise_is_summed_at_a_smaller_scale() -> None:
    wide, wider = (IndependentLaplace(2, 1.0, 0.1, Fraction(scale)).expected_l1() for scale in (2**11, 2**20))
    assert wider == pytest.approx(2**9 * wide, rel=1e-6)
    assert wide == pytest.approx(1.5 * 2**11, rel=1e-6)  # E|x - y| of two exponentials with random signs
