"""Discrete Laplace noise of sum zero: closed forms against enumeration of the lattice, the sampler against its law."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.exact_laws import LatticeLaplace, loss_beyond, ratio, sample
from federation.mechanisms.counts.exact_laws import calibrate_lattice_laplace as calibrate
from federation.mechanisms.counts.exact_laws import lattice_laplace_delta as exact_delta

SHAPES = [(2, 3.0), (2, 0.7), (3, 2.0), (3, 0.4), (4, 1.25), (5, 0.6)]


def lattice(classes: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The integer vectors of sum 0 that carry all but e^-17 of the law, and their probabilities."""
    reach = {2: math.ceil(18 * scale), 3: math.ceil(17 * scale)}.get(classes, math.ceil(9 * scale) + 3)
    first = np.array(list(itertools.product(range(-reach, reach + 1), repeat=classes - 1)))
    z = np.column_stack([first, -first.sum(axis=1)])
    mass = np.exp(-np.abs(z).sum(axis=1) / scale)
    return z, mass / mass.sum()


def enumerated(epsilon: float, classes: int, scale: Fraction, reach: int) -> float:
    """sum of (P - e^epsilon Q)+ over the lattice in 30 digits, Q moved by (+1, -1)."""
    with mpmath.workdps(30):
        s, factor = mpmath.mpf(scale.numerator) / scale.denominator, mpmath.exp(mpmath.mpf(epsilon))
        total = excess = mpmath.mpf(0)
        norms: dict[tuple[int, int], int] = {}
        for first in itertools.product(range(-reach, reach + 1), repeat=classes - 1):
            z = (*first, -sum(first))
            norm = sum(map(abs, z))
            moved = norm - abs(z[0]) - abs(z[1]) + abs(z[0] - 1) + abs(z[1] + 1)
            norms[norm, moved] = norms.get((norm, moved), 0) + 1
        for (norm, moved), number in norms.items():
            p = mpmath.exp(-norm / s)
            total += number * p
            excess += number * max(mpmath.mpf(0), p - factor * mpmath.exp(-moved / s))
        return float(excess / total)


@pytest.mark.parametrize(
    ("classes", "scale", "reach"),
    [(2, Fraction(7, 2), 90), (3, Fraction(3, 2), 45), (4, Fraction(1, 2), 15), (5, Fraction(1, 4), 7)],
)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.1])
def test_delta_equals_enumeration_of_the_lattice(classes: int, scale: Fraction, reach: int, share: float) -> None:
    epsilon = share * float(2 / scale)
    ours = exact_delta(epsilon, classes, float(scale))
    assert ours == pytest.approx(enumerated(epsilon, classes, scale, reach), abs=1e-10)
    assert (ours > 0) == (share < 1)


@pytest.mark.parametrize("scale", [0.3, 2.0, 9.05, 400.0])
@pytest.mark.parametrize("classes", [2, 5, 10, 100])
def test_the_recurrence_equals_the_polynomials(classes: int, scale: float) -> None:
    with mpmath.workdps(60):
        x = mpmath.exp(-2 / mpmath.mpf(scale))

        def polynomial(k: int) -> mpmath.mpf:
            return mpmath.fsum(math.comb(k, j) ** 2 * x**j for j in range(k + 1))

        expected = polynomial(classes - 1) / polynomial(classes - 2)
        assert ratio(classes - 1, scale) == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize(("classes", "scale"), [(2, 3.0), (5, 9.05), (10, 2.0), (30, 40.0)])
def test_the_probability_equals_a_convolution(classes: int, scale: float) -> None:
    """P[z_i <= 0 <= z_j | sum 0] with the sum of the other classes by repeated convolution, for any number of them."""
    reach = math.ceil(60 * scale)
    k = np.arange(-reach, reach + 1)
    mass = np.exp(-np.abs(k) / scale)
    size = 2 ** math.ceil(math.log2(2 * classes * (2 * reach + 1)))
    waves = np.fft.rfft(mass, size)

    def at_zero(product: np.ndarray) -> float:
        return float(np.fft.irfft(product, size)[classes * reach % size])

    low, high = (np.fft.rfft(np.where(kept, mass, 0), size) for kept in (k <= 0, k >= 0))
    probability = at_zero(low * high * waves ** (classes - 2)) / at_zero(waves**classes)
    assert 1 / ratio(classes - 1, scale) == pytest.approx(probability, rel=1e-9)


@pytest.mark.parametrize(("classes", "scale"), SHAPES)
def test_moments_equal_sums_over_the_lattice(classes: int, scale: float) -> None:
    z, law = lattice(classes, scale)
    mechanism = LatticeLaplace(classes, 1.0, 0.1, Fraction(scale))
    assert mechanism.expected_l1() == pytest.approx(law @ np.abs(z).sum(axis=1), rel=1e-4)
    covariance = np.einsum("ni,nj,n->ij", z, z, law)
    np.testing.assert_allclose(mechanism.covariance(9), covariance, atol=1e-3 * mechanism.variance() + 1e-9)
    for count in (1, 2, 5):
        assert law[z[:, 0] <= -count].sum() <= mechanism.escape(count) * (1 + 1e-9)


@pytest.mark.parametrize(("classes", "scale"), [(2, Fraction(5, 2)), (3, Fraction(4, 3)), (4, Fraction(2, 3))])
def test_draws_follow_the_law_on_the_lattice(classes: int, scale: Fraction) -> None:
    draws = sample(NoiseBits(1, "lattice"), scale, classes, 200_000)
    assert (draws.sum(axis=1) == 0).all()
    z, law = lattice(classes, float(scale))
    width = 2 * np.abs(z).max() + 1

    def code(rows: np.ndarray) -> np.ndarray:
        return np.ravel_multi_index(tuple((rows[:, :-1] + width // 2).T), (width,) * (classes - 1), mode="clip")

    found = dict(zip(*np.unique(code(draws), return_counts=True), strict=True))
    observed = np.array([found.get(each, 0) for each in code(z)])
    common = law * len(draws) >= 20
    for wrong in (False, True):
        expected = law ** (1 / 1.03) / (law ** (1 / 1.03)).sum() if wrong else law
        expected = expected * len(draws)
        p = stats.chisquare(
            np.append(observed[common], len(draws) - observed[common].sum()),
            np.append(expected[common], len(draws) - expected[common].sum()),
        ).pvalue
        assert (p < 1e-6) if wrong else (p > 1e-3)


@given(st.floats(-4, 3), st.floats(-28, -0.1), st.integers(2, 40))
@settings(derandomize=True, deadline=None, max_examples=80)
def test_calibration_keeps_its_claim_and_a_smaller_scale_does_not(
    log_epsilon: float, log_delta: float, classes: int
) -> None:
    epsilon, delta = math.exp(log_epsilon), math.exp(log_delta)
    mechanism = calibrate(classes, epsilon, delta)
    assert mechanism.delta_at(epsilon) <= delta
    smaller = float(mechanism.scale) * (1 - 2**-16)
    assert exact_delta(epsilon, classes, smaller) > delta
    pure = calibrate(classes, epsilon, 0.0)
    assert pure.scale >= mechanism.scale
    assert pure.scale * Fraction(epsilon) >= 2 > pure.scale * Fraction(epsilon) * (1 - Fraction(1, 2**18))
    assert pure.delta_at(epsilon) == 0


@pytest.mark.parametrize("epsilon", [2 / 7, math.nextafter(2 / 7, 0), math.nextafter(2 / 7, 1)])
def test_a_loss_just_beyond_epsilon_is_not_lost_in_rounding(epsilon: float) -> None:
    with mpmath.workdps(50):
        beyond = -mpmath.expm1(mpmath.mpf(epsilon) - mpmath.mpf(2) / 7)
    assert loss_beyond(epsilon, 7.0) == pytest.approx(max(0.0, float(beyond)), rel=1e-12, abs=0)
    assert float(beyond) != 0


def test_a_release_is_whole_numbers_of_the_right_sum() -> None:
    counts = np.array([0, 7, 993])
    released = calibrate(3, 0.5, 1e-6).release(counts, NoiseBits(1, "r"), 100)
    assert (released == np.rint(released)).all()
    assert (released.sum(axis=1) == 1000).all()
    assert (released < 0).any()
