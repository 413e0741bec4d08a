"""The discrete Laplace sampler against its law, and its accounting against brute-force sums."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise import discrete as discrete_laplace

DRAWS = 1_000_000


def goodness_of_fit(draws: np.ndarray, scale: float) -> float:
    """Chi-square p-value of integer draws against the law, tails pooled below 20 expected counts."""
    k = np.arange(-int(40 * scale) - 40, int(40 * scale) + 41)
    law = np.exp(-np.abs(k) / scale)
    law /= law.sum()
    reach = np.abs(k[law * len(draws) >= 20]).max()
    inside = np.abs(k) <= reach
    expected = np.append(law[inside], law[~inside].sum()) * len(draws)
    observed = np.bincount(draws[np.abs(draws) <= reach] + reach, minlength=2 * reach + 1)
    return float(stats.chisquare(np.append(observed, len(draws) - observed.sum()), expected).pvalue)


@pytest.mark.parametrize("scale", [1, 2, 5, 50, Fraction(2, 5), Fraction(22, 7), Fraction(593155, 2**16)])
def test_draws_follow_the_law_and_a_scale_off_by_two_percent_is_rejected(scale: int | Fraction) -> None:
    draws = discrete_laplace.sample_discrete_laplace(NoiseBits(1, f"laplace{scale}"), scale, DRAWS)
    assert goodness_of_fit(draws, float(scale)) > 1e-3
    assert goodness_of_fit(draws, 1.02 * float(scale)) < 1e-6


def test_draws_of_a_seed_never_change() -> None:
    bits = NoiseBits(1, "golden")
    draws = np.concatenate([discrete_laplace.sample_discrete_laplace(bits, scale, 1000) for scale in (1, 50, 2**40)])
    assert hashlib.sha256(draws.astype("<i8").tobytes()).hexdigest()[:16] == "ae2e80286d91e38e"


def test_a_fraction_that_is_an_integer_is_the_integer() -> None:
    draws = [discrete_laplace.sample_discrete_laplace(NoiseBits(1, "x"), scale, 1000) for scale in (9, Fraction(9))]
    assert np.array_equal(*draws)


@pytest.mark.parametrize("scale", [2**16, 2**26])
def test_fine_grids_have_the_moments_and_the_continuous_limit(scale: int) -> None:
    draws = discrete_laplace.sample_discrete_laplace(NoiseBits(2, "fine"), scale, 200_000)
    assert stats.kstest(draws / scale, "laplace").pvalue > 1e-3
    assert np.abs(draws).mean() == pytest.approx(discrete_laplace.mean_magnitude(scale), rel=0.01)


def test_draws_depend_on_the_key_only() -> None:
    same = [discrete_laplace.sample_discrete_laplace(NoiseBits(7, "a", party=3), 9, 100) for _ in range(2)]
    other = discrete_laplace.sample_discrete_laplace(NoiseBits(7, "a", party=4), 9, 100)
    assert np.array_equal(*same)
    assert not np.array_equal(same[0], other)


def brute_force_delta(epsilon: float, sensitivity: int, scale: float) -> float:
    """sum of (P(k) - e^epsilon Q(k))+ over k, in 50 digits."""
    with mpmath.workdps(50):
        q = mpmath.exp(-mpmath.mpf(1) / scale)
        weight = (1 - q) / (1 + q)
        factor = mpmath.exp(mpmath.mpf(epsilon))
        reach = range(-60 * math.ceil(scale) - sensitivity, 60 * math.ceil(scale) + sensitivity)
        gaps = (weight * (q ** abs(k) - factor * q ** abs(k - sensitivity)) for k in reach)
        return float(mpmath.fsum(gap for gap in gaps if gap > 0))


@pytest.mark.parametrize(("sensitivity", "scale"), [(1, 1), (1, 4), (3, 2), (7, 5), (12, 20)])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3, 0.7, 2.0])
def test_delta_equals_the_brute_force_sum(epsilon: float, sensitivity: int, scale: int) -> None:
    expected = brute_force_delta(epsilon, sensitivity, scale)
    assert discrete_laplace.delta(epsilon, sensitivity, scale) == pytest.approx(expected, abs=1e-12)


def test_delta_agrees_with_dp_accounting() -> None:
    oracle = pld.from_discrete_laplace_mechanism(1 / 20, sensitivity=9, value_discretization_interval=1e-5)
    for epsilon in (0.1, 0.25, 0.4):
        ours = discrete_laplace.delta(epsilon, 9, 20)
        # The oracle rounds each loss up by at most its interval, so it is above ours by at most that.
        assert -1e-9 <= oracle.get_delta_for_epsilon(epsilon) - ours <= 1e-5


@given(st.integers(1, 10**6), st.floats(1e-5, 100))
@settings(derandomize=True, deadline=None, max_examples=200)
def test_calibration_is_the_smallest_scale(sensitivity: int, epsilon: float) -> None:
    scale = discrete_laplace.calibrate_discrete_laplace(sensitivity, epsilon)
    assert Fraction(sensitivity, scale) <= Fraction(epsilon)
    assert scale == 1 or Fraction(sensitivity, scale - 1) > Fraction(epsilon)
    assert discrete_laplace.epsilon(sensitivity, scale) <= epsilon * (1 + 1e-15)
    assert discrete_laplace.delta(epsilon, sensitivity, scale) == 0


def test_epsilon_is_the_largest_log_ratio_of_the_law() -> None:
    q, k = math.exp(-1 / 6), np.arange(-50, 50)
    ratio = np.log(q ** np.abs(k)) - np.log(q ** np.abs(k - 4))
    assert discrete_laplace.epsilon(4, 6) == pytest.approx(ratio.max(), rel=1e-12)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 2)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.1])
def test_accounting_takes_rational_scales(scale: Fraction, epsilon: float) -> None:
    expected = brute_force_delta(epsilon, 3, mpmath.mpf(scale.numerator) / scale.denominator)
    assert discrete_laplace.delta(epsilon, 3, scale) == pytest.approx(expected, abs=1e-12)
    k = np.arange(-300, 301)
    law = np.exp(-np.abs(k) / float(scale))
    assert discrete_laplace.mean_magnitude(scale) == pytest.approx(np.abs(k) @ law / law.sum(), rel=1e-12)
    assert discrete_laplace.epsilon(3, scale) == float(3 / scale)


def test_the_mean_magnitude_of_hardly_any_noise_is_hardly_anything() -> None:
    assert 0 <= discrete_laplace.mean_magnitude(Fraction(1, 2**40)) < 1e-300


@pytest.mark.parametrize("size", [-1, 1.5, 2**40 + 1])
def test_impossible_numbers_of_draws_are_refused(size: float) -> None:
    with pytest.raises(InputError, match="size must be an integer"):
        discrete_laplace.sample_discrete_laplace(NoiseBits(1, "x"), 3, size)


@pytest.mark.parametrize("scale", [0, -1, 2**40 + 1, 1.5, Fraction(-1, 2), Fraction(1, 2**40 + 1), Fraction(2**41, 3)])
def test_impossible_scales_are_refused(scale: int | Fraction) -> None:
    with pytest.raises(InputError, match="scale must be an integer"):
        discrete_laplace.sample_discrete_laplace(NoiseBits(1, "x"), scale, 1)
    with pytest.raises(InputError, match="scale must be an integer"):
        discrete_laplace.epsilon(1, scale)


@pytest.mark.parametrize("scale", [1, Fraction(5, 2), 9])
def test_variance_is_that_of_the_law(scale: int | Fraction) -> None:
    at = np.arange(-60 * 9, 60 * 9 + 1)
    law = np.exp(-np.abs(at) / float(scale))
    assert discrete_laplace.variance(scale) == pytest.approx(at**2 @ law / law.sum(), rel=1e-12)


@pytest.mark.parametrize("dimension", [1, 2, 3, 30, 5000])
def test_the_mean_norm_of_continuous_laplace_vectors(dimension: int) -> None:
    """One dimension: 1. Two: the integral in polar coordinates. More: simulation."""
    found = discrete_laplace.mean_norm(dimension)
    if dimension == 1:
        assert found == pytest.approx(1, rel=1e-9)
    elif dimension == 2:
        angle = (np.arange(100_000) + 0.5) * np.pi / 200_000
        assert found == pytest.approx(np.mean(np.pi / (np.cos(angle) + np.sin(angle)) ** 3), rel=1e-8)
    else:
        norms = np.linalg.norm(np.random.default_rng(1).laplace(size=(1_000_000 // dimension, dimension)), axis=1)
        assert abs(norms.mean() - found) < 4 * norms.std() / len(norms) ** 0.5
