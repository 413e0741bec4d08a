"""Shares of noise: their sum has the law of the whole, on grids that are fine enough for so many parties.

What more colluders than were counted on leave of a promise, beside quadrature of the laws and published figures.

Epsilon at a delta of fewer shares of L2-Gamma noise: beside the whole noise, other quadrature, and their order.

Pólya shares: their exact law, their sum, and decisions in many digits that agree with those in double precision.
"""

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.special import kv
from support.refusals import refused
from support.scripted_words import WordsThenBits

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise import gaussian, l2_gamma
from federation.mechanisms.noise.additive import AdditiveMechanism, calibrate, calibrate_laplace
from federation.mechanisms.sums import shares
from federation.mechanisms.sums.shares import delta, epsilon, weakened

WHOLE = {
    "l2_gamma": calibrate("pure", sensitivity=2.0, dimension=3, epsilon=1.0),
    "discrete_gaussian": calibrate("gaussian", sensitivity=2.0, dimension=3, epsilon=1.0, delta=1e-6),
    "discrete_laplace": calibrate_laplace(l1_sensitivity=3.0, dimension=3, epsilon=1.0),
}
LAWS = {
    "l2_gamma": lambda noise: (np.linalg.norm(noise, axis=1), stats.gamma(3).cdf),
    "discrete_gaussian": lambda noise: (noise[:, 1], stats.norm.cdf),
    "discrete_laplace": lambda noise: (noise[:, 2], stats.laplace.cdf),
}


@pytest.mark.parametrize("contributors", [1, 2, 9])
@pytest.mark.parametrize("name", WHOLE)
def test_shares_add_up_to_the_whole_and_fewer_do_not(name: str, contributors: int) -> None:
    whole = WHOLE[name]
    drawn = np.array([shares.draw(whole, contributors, NoiseBits(1, "shares", k), 20_000) for k in range(contributors)])
    assert np.array_equal(drawn, np.rint(drawn))
    scale = whole.parameters["scale"] / whole.step
    assert stats.kstest(*LAWS[name](drawn.sum(axis=0) / scale)).pvalue > 1e-3
    if contributors > 1:
        assert stats.kstest(*LAWS[name](drawn[1:].sum(axis=0) / scale)).pvalue < 1e-3
    for colluders in range(contributors // 3 + 1):  # whose shares are taken off the sum
        seen = drawn[colluders:].sum(axis=0).var() * whole.step**2
        expected = shares.variance(whole, contributors) * (1 - colluders / contributors)
        assert seen == pytest.approx(expected, rel=0.04)


def test_l2_gamma_shares_point_everywhere_alike() -> None:
    total = sum(shares.draw(WHOLE["l2_gamma"], 4, NoiseBits(2, "sphere", k), 30_000) for k in range(4))
    heights = total[:, 0] / np.linalg.norm(total, axis=1)
    assert stats.kstest(heights, stats.uniform(-1, 2).cdf).pvalue > 1e-3  # Archimedes


def normal(at: np.ndarray, variance: float) -> np.ndarray:
    return np.exp(-np.square(at) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


@given(st.integers(2**16, 2**38), st.integers(1, 2**28))
@settings(derandomize=True)
def test_gaussian_shares_have_no_less_than_their_part_and_hardly_more(sigma: int, contributors: int) -> None:
    scale = shares._gaussian_share_scale(sigma, contributors)
    assert 1 <= scale.numerator <= 2**40
    assert 1 <= contributors * scale**2 / sigma**2 < 1 + 2**-18


def test_so_many_parties_that_the_grid_is_coarse_are_refused_for_gaussian_shares_only() -> None:
    most = WHOLE["discrete_gaussian"].grid_scale ** 2 // 16
    shares.check(WHOLE["discrete_gaussian"], most)
    with pytest.raises(InputError, match=rf"contributors.*{most}"):
        shares.check(WHOLE["discrete_gaussian"], most + 1)
    for name in ("l2_gamma", "discrete_laplace"):
        shares.check(WHOLE[name], shares.MOST)
        drawn = shares.draw(WHOLE[name], shares.MOST, NoiseBits(1, "tiny"), 300)
        assert drawn.shape == (300, 3)
        assert np.abs(drawn).max() < 40  # of 2^30 shares hardly any has more than the 16 steps² of variance
        assert name == "discrete_laplace" or drawn.std() == pytest.approx(math.sqrt(16 + 1 / 12), rel=0.1)


def test_shares_of_a_whole_scale_are_exact_and_all_added_variance_is_counted() -> None:
    whole = WHOLE["l2_gamma"]
    added = shares.variance(whole, 2**20) - whole.variance()
    assert added == pytest.approx(2**20 * (16 + 1 / 12) * whole.step**2, rel=1e-6)
    assert shares.variance(whole, 1024) / whole.variance() < 1 + 1e-5
    whole = WHOLE["discrete_gaussian"]
    coarse = replace(whole, scale=16 * whole.step)
    assert [shares.variance(coarse, contributors) for contributors in (1, 4, 16)] == [coarse.variance()] * 3
    shares.check(coarse, 16)  # each may be as small as four steps
    with pytest.raises(InputError, match=r"contributors.*16"):
        shares.check(coarse, 17)


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
    if noise == "gaussian":
        mu = whole.charged / whole.scale / math.sqrt(0.7)
        assert gaussian.delta(weakened(whole, 0.7), mu) == pytest.approx(1e-6, rel=1e-6)


def test_nothing_pure_is_left_of_l2_gamma_noise_below_d_of_d_plus_1() -> None:
    whole = calibrate("pure", sensitivity=1.0, dimension=5, epsilon=1.0)
    assert weakened(whole, 5 / 6) == math.inf
    assert 2 < weakened(whole, 5 / 6 + 1e-3) < math.inf
    for left in (0.0, -0.1, 1.1, np.nan):
        refused("left", weakened, whole, left)


def density(x: float, shape: float, scale: float) -> float:
    """Of a normal number whose variance is Gamma(`shape`, 2 scale^2), by quadrature over the variance."""

    def part(log: float) -> float:
        variance = math.exp(log)
        return stats.gamma.pdf(variance, shape, scale=2 * scale**2) * normal(x, variance) * variance

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


@settings(derandomize=True)
@given(st.integers(1, 60), st.floats(0.51, 1.0), st.floats(0.01, 0.2))
def test_fewer_shares_promise_less(dimension: int, left: float, fewer: float) -> None:
    for whole in (laplace(dimension), calibrate("pure", sensitivity=1.0, dimension=dimension, epsilon=1.0)):
        assert weakened(whole, left - fewer) >= weakened(whole, left) * (1 - 1e-9)


@pytest.mark.parametrize("dimension", [1, 2, 5, 50])
def test_all_shares_are_the_whole_noise(dimension: int) -> None:
    for at in (0.1, 0.5):
        known = l2_gamma.delta(at, sensitivity=1.0, dimension=dimension, scale=1.0)
        assert delta(at, 1.0, dimension, 1.0) == pytest.approx(known, rel=2e-3)
    assert epsilon(1e-9, 1.0, dimension, 1.0) <= 1.0 + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("left", [0.45, 0.7, 0.9])
def test_two_dimensions_beside_sums_over_the_plane(left: float) -> None:
    order, step, moved = (3 * left - 2) / 2, 0.03, 1.0
    x, y = np.meshgrid(np.arange(-12, 13, step), np.arange(step / 2, 12, step))  # nowhere at a centre; one half

    def density(first: np.ndarray) -> np.ndarray:
        z = np.hypot(first, y)
        return z**order * kv(order, z)

    here, there = density(x), density(x - moved)
    for at in (0.3, 1.2):
        found = np.maximum(here - math.exp(at) * there, 0).sum() / here.sum()
        assert delta(at, moved, 2, left) == pytest.approx(found, rel=0.03)


@pytest.mark.parametrize(
    ("dimension", "expected"), [(5, [0.986, 1.052, 1.196, 1.722, 7.34]), (50, [0.530, 0.545, 0.562, 0.601, 0.819])]
)
def test_known_figures(dimension: int, expected: list[float]) -> None:
    found = [epsilon(1e-6, 1.0, dimension, left) for left in (1.0, 0.95, 0.9, 0.8, 0.5)]
    assert found == pytest.approx(expected, abs=6e-4, rel=3e-4)


def test_many_dimensions_are_nearly_gaussian() -> None:
    """Of the deviation sqrt((D + 1) r) in each, as the length of the noise hardly varies."""
    for left in (0.9, 0.3):  # orders of either kind of expansion
        near = gaussian.epsilon(1e-6, 1 / math.sqrt(20_001 * left))
        assert epsilon(1e-6, 1.0, 20_000, left) == pytest.approx(near, rel=3e-3)
    # More shares, longer moves and larger deltas:
    assert epsilon(1e-6, 1.0, 3, 0.8) > epsilon(1e-6, 1.0, 3, 0.9) > epsilon(1e-6, 0.8, 3, 0.9)
    assert epsilon(1e-6, 1.0, 3, 0.9) > epsilon(1e-5, 1.0, 3, 0.9)
    assert epsilon(0.5, 0.1, 3, 0.9) == 0.0


def fits(values: np.ndarray, law: np.ndarray) -> float:
    """p-value of a chi-squared test; `law` holds the probabilities of 0, 1, ..., and the rest is its last cell."""
    expected = np.append(law, 1 - law.sum()) * len(values)
    seen = np.bincount(np.minimum(values, len(law)), minlength=len(law) + 1)
    return float(stats.chisquare(seen, expected).pvalue)


@pytest.mark.parametrize(("scale", "contributors"), [(1, 1), (1, 3), (6, 2), (8, 1), (13, 7), (300, 40)])
def test_one_side_is_negative_binomial(scale: int, contributors: int) -> None:
    values = shares._one_sided(NoiseBits(1, "polya"), scale, contributors, 100_000)
    exact = stats.nbinom(1 / contributors, -np.expm1(-1 / scale))
    law = exact.pmf(np.arange(min(3 * scale, 40)))
    assert fits(values, law) > 1e-3
    assert fits(values, stats.nbinom(1.1 / contributors, -np.expm1(-1 / scale)).pmf(np.arange(len(law)))) < 1e-3


@pytest.mark.parametrize(("scale", "contributors"), [(1, 2), (7, 3), (70_000, 5)])
def test_as_many_shares_as_declared_sum_to_discrete_laplace(scale: int, contributors: int) -> None:
    drawn = [shares.sample(NoiseBits(2, "share", party), scale, contributors, 50_000) for party in range(contributors)]
    total = np.sum(drawn, axis=0)
    assert total.dtype == np.int64
    if scale < 100:
        q = np.exp(-1 / scale)
        law = (1 - q) / (1 + q) * q ** np.arange(2 * scale) * np.where(np.arange(2 * scale) > 0, 2, 1)
        assert fits(np.abs(total), law) > 1e-3
    else:
        assert stats.kstest(total / scale, "laplace").pvalue > 1e-3
        assert stats.kstest((total - drawn[0]) / scale, "laplace").pvalue < 1e-3


@given(st.integers(1, 2**40), st.integers(1, 2**30))
@settings(derandomize=True)
def test_the_staircase_lies_above_the_law(scale: int, contributors: int) -> None:
    """At the left ends of the steps, where w_k q^k is largest; in many digits."""
    buckets = shares._buckets(scale, contributors)
    rest = len(buckets.starts) - 1
    assert int(buckets.starts[-1]) >= scale
    for i in {0, 1, rest // 2, rest - 1, rest}:
        start = int(buckets.starts[i])
        height = Fraction(buckets.unit) * int(buckets.weights[i]) / max(start, 1) / (2 if i == rest else 1)
        with mpmath.workdps(60):
            shape = mpmath.mpf(1) / contributors
            weight = (
                mpmath.rf(shape, start) / mpmath.factorial(start)
                if start < 1000
                else mpmath.exp(mpmath.loggamma(start + shape) - mpmath.loggamma(shape) - mpmath.loggamma(start + 1))
            )
            share = weight * mpmath.exp(-mpmath.mpf(start) / scale) * height.denominator / height.numerator
        assert share <= 1
        assert share > 0.2 or buckets.weights[i] == 1


@pytest.mark.parametrize(("scale", "contributors"), [(5, 1), (5, 3), (90_000, 12)])
def test_many_digits_decide_as_double_precision(monkeypatch: pytest.MonkeyPatch, scale: int, contributors: int) -> None:
    quick = shares.sample(NoiseBits(3, "digits"), scale, contributors, 150)
    monkeypatch.setattr(shares, "_RELATIVE_ERROR", 2.0)
    assert np.array_equal(shares.sample(NoiseBits(3, "digits"), scale, contributors, 150), quick)
    # Coins are counted beyond one word.
    assert shares._coins_until_heads(WordsThenBits([0, 1, 8, 0, 4]), 3).tolist() == [64 + 64 + 2, 0, 3]


def leading_words(share: mpmath.mpf) -> tuple[int, int]:
    """The first 64 bits of a share, and the next."""
    prefix = int(mpmath.floor(share * 2**64))
    return prefix, int(mpmath.floor((share * 2**64 - prefix) * 2**64))


def test_what_64_bits_leave_open_is_settled_by_more() -> None:
    """k = 1, t = 2, n = 2: w_1 q = e^{-1/2}/2, and the first bits of U are those of the number to compare it with."""
    buckets = shares._buckets(2, 2)
    with mpmath.workdps(60):
        prefix, following = leading_words(mpmath.exp(-mpmath.mpf(1) / 2) / 2)
    one = Fraction(1)
    assert buckets._settled(prefix, 1, one, WordsThenBits([following - 1]))
    assert not buckets._settled(prefix, 1, one, WordsThenBits([following + 1]))
    assert buckets._settled(prefix - 1, 1, one, WordsThenBits([2**64 - 1]))


@pytest.mark.parametrize("beyond", [-1, 1])
def test_an_unlikely_value_is_settled_by_more_bits_too(beyond: int) -> None:
    """k = 60, t = 2, n = 2: about 2^-47 under a staircase of height 1 or so, which 64 bits tell to 17 bits only."""
    buckets = shares._buckets(2, 2)
    weight = int(1 / buckets.unit)
    with mpmath.workdps(60):
        half = mpmath.mpf(1) / 2
        law = mpmath.gamma(60 + half) / mpmath.gamma(half) / mpmath.factorial(60) * mpmath.exp(-30)
        prefix, following = leading_words(law / (weight * mpmath.mpf(buckets.unit)))
    value, one, none = np.array([60]), np.array([1]), np.array([0])
    bits = WordsThenBits([prefix, following + beyond])
    assert buckets._under(value, one, none, np.array([weight]), bits).tolist() == [beyond < 0]


@pytest.mark.parametrize("rounded", [True, False])
def test_sums_on_the_grid_have_the_density_of_the_sum_which_coarse_grids_break(rounded: bool) -> None:
    """The proof's 16 steps^2: shares on the grid, of values rounded at random or not, sum to a normal number."""

    def gap(first: float, second: float) -> float:
        nodes, weights = np.array(np.polynomial.legendre.leggauss(12)) / 2 if rounded else np.array([[0.0], [1.0]])
        laws = [normal(np.arange(-400, 401)[:, None] - nodes, one) @ weights for one in (first, second)]
        reach = round(12 * math.sqrt(first + second))
        at = np.arange(-reach, reach + 1)
        both = np.add.outer(nodes, nodes).ravel()
        density = normal(at[:, None] - both, first + second) @ np.outer(weights, weights).ravel()
        return float(np.abs(np.convolve(*laws)[800 + at] / density - 1).max())

    assert max(gap(shares._LEAST_SIGMA**2, other) for other in (16.0, 400.0)) < 1e-12
    assert gap(0.2, 16.0) > 1e-3
