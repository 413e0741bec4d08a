"""Shares of additive noise, for a summation that reveals only the sum of n parties' answers.

All are whole numbers of grid steps, one draw per party, and the sum of n of them is at least as private as the whole
noise. Discrete Laplace: Pólya differences, whose sum is exact. Discrete Gaussian: n of variance sigma²/n each (Kairouz,
Liu, Steinke 2021). L2-Gamma noise of scale s in R^D has the characteristic function (1 + s²|t|²)^{-(D+1)/2}: it is
Gaussian of a variance that is Gamma((D+1)/2, 2s²), and a share is Gaussian of one that is Gamma((D+1)/2n, 2s²).

Why sums of rounded or discrete Gaussians are as private as Gaussians. Let f_a be the normal density of variance a.
1. f_a(i - u) f_c(k - i - v) = f_{a+c}(k - u - v) f_e(i - m) with e = ac/(a + c) and some m, and the sum of f_e(i - m)
   over the integers i is within 1 ± z, z = 3 e^{-2 pi² e} (Poisson summation). For a, c >= 16, z <= 3 e^{-16 pi²}.
2. A rounded Gaussian has P[k] = ∫ f_a(k - u) du over |u| <= 1/2, a discrete one f_a(k) but for a factor within 1 ± z.
   By 1. and induction, P[S = k] of a sum S of n of them is, but for a factor within (1 ± z)^{2n} in each coordinate,
   the density at k of a Gaussian of the sum of their variances, plus n uniform numbers where they are rounded.
3. L2-Gamma shares get 16 steps² of variance more each. So the density in 2., now over the random variances too, is that
   of L2-Gamma noise plus independent noise, and like the former's its logarithm changes by |v|/s at most over v.
For n <= 2^30 and D <= 2^60 all factors together are within 2^-100 of 1, less than the rounding of the scales covers.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check, Keeper
from federation.contract.randomness import NoiseBits
from federation.mechanisms.moments import polya
from federation.mechanisms.noise import discrete_gaussian
from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.mechanisms.noise.checks import require_draws
from federation.mechanisms.noise.l2_gamma import uniform
from federation.numerics.arrays import Floats, Integers

MOST = 2**30  # parties that share one noise
_LEAST_SIGMA = 4  # steps, of every Gaussian: the proof's 16 steps²
_SCALE_BITS = 21  # of a Gaussian share's scale

_HONEST = "at least {} parties add their shares of the noise as drawn, and tell nobody"
_ONLY_THE_SUM = Assumption(
    "the summation over the parties reveals the sum of their answers only", Check.DECLARED, Keeper.COORDINATOR
)
_CLOSE = Assumption(
    f"a share's Gaussians have a standard deviation of {_LEAST_SIGMA} steps or more, so that the sum's law is that of "
    "the whole noise, with some independent noise where that is L2-Gamma, but for a factor within 2^-100 of 1",
    Check.ENFORCED,
)


def draw(whole: AdditiveMechanism, contributors: int, bits: NoiseBits, draws: int) -> Floats | Integers:
    """One party's shares, in steps, (draws, D): independent draws for as many releases.

    `contributors` as `check` allows it.

    Examples:
        >>> from federation.mechanisms.noise.additive import calibrate
        >>> noise = calibrate("gaussian", sensitivity=1.0, dimension=2, epsilon=1.0, delta=1e-5)
        >>> shares = [draw(noise, 10, NoiseBits(1, "example", party), draws=1) for party in range(10)]
        >>> shares[0] * noise.step, sum(shares) * noise.step
        (array([[ 0.1567, -0.529 ]]), array([[2.375, 5.051]]))
    """
    if whole.name == "l2_gamma":
        return _gamma_share(bits, whole.dimension, whole.scale / whole.step, contributors, draws)
    size = draws * whole.dimension
    if whole.name == "discrete_laplace":
        flat = polya.sample(bits, whole.grid_scale, contributors, size)
    else:
        flat = discrete_gaussian.sample(bits, _gaussian_share_scale(whole.grid_scale, contributors), size)
    return flat.reshape(draws, whole.dimension)


def release(whole: AdditiveMechanism, contributors: int, value: Floats, bits: NoiseBits, draws: int) -> Floats:
    """One party's value (D,) with its shares of the noise, (draws, D), in whole multiples of the grid's step.

    Raises `InputError` as `AdditiveMechanism.release`.
    """
    require_draws(draws)
    noisy: Floats = whole.rounded(value) + draw(whole, contributors, bits, draws)
    return noisy * whole.step


def in_mean(whole: AdditiveMechanism, contributors: int, answered: int) -> AdditiveMechanism:
    """The noise in the mean of `answered` parties' values, as one mechanism of the same kind and variance.

    Each added a share of which `contributors` are the whole: more come than are needed, as a rule. That is the law of
    the noise where it is Gaussian or just so many came; further shares bring other kinds nearer to a Gaussian.

    Examples:
        >>> from federation.mechanisms.noise.additive import calibrate
        >>> noise = calibrate("gaussian", sensitivity=1.0, dimension=2, epsilon=1.0, delta=1e-5)
        >>> noise.variance() / in_mean(noise, contributors=8, answered=10).variance()
        80.0
    """
    parts = variance(whole, contributors) / whole.variance() * answered / contributors
    sensitivity, charged, step = (one / answered for one in (whole.sensitivity, whole.charged, whole.step))
    scale = whole.scale * math.sqrt(parts) / answered
    return replace(whole, sensitivity=sensitivity, charged=charged, step=step, scale=scale)


def variance(whole: AdditiveMechanism, contributors: int) -> float:
    """Of each coordinate of the sum of so many shares, in the value's units squared.

    Examples:
        >>> from federation.mechanisms.noise.additive import calibrate
        >>> noise = calibrate("gaussian", sensitivity=1.0, dimension=2, epsilon=1.0, delta=1e-5)
        >>> noise.variance(), variance(noise, contributors=10)
        (13.92, 13.92)
    """
    if whole.name == "discrete_laplace":
        return whole.variance()
    if whole.name == "discrete_gaussian":
        return float(contributors * _gaussian_share_scale(whole.grid_scale, contributors) ** 2) * whole.step**2
    return whole.variance() + contributors * (_LEAST_SIGMA**2 + 1 / 12) * whole.step**2


def check(whole: AdditiveMechanism, contributors: int) -> None:
    """Raises `InputError` when Gaussian shares are so small that the grid is coarse for them."""
    if whole.name == "discrete_gaussian" and whole.grid_scale**2 < _LEAST_SIGMA**2 * contributors:
        most = whole.grid_scale**2 // _LEAST_SIGMA**2
        raise InputError(
            f"contributors must be at most {most} for this Gaussian noise, as its grid "
            f"is too coarse for smaller shares, got {contributors}; choose pure or laplace, or sum in groups"
        )


def assumptions(whole: AdditiveMechanism, contributors: int) -> tuple[Assumption, ...]:
    """What the guarantee of a sum of shares rests on, with that of the whole noise."""
    honest = Assumption(_HONEST.format(contributors), Check.DECLARED, Keeper.COORDINATOR)
    close = () if whole.name == "discrete_laplace" else (_CLOSE,)
    return (*whole.assumptions, honest, _ONLY_THE_SUM, *close)


def _gaussian_share_scale(sigma: int, contributors: int) -> Fraction:
    """The smallest fraction of a fixed power of two whose square is sigma²/n or more."""
    shift = max(0, _SCALE_BITS - math.isqrt(sigma**2 // contributors).bit_length())
    wanted = sigma**2 * 4**shift
    root = math.isqrt(wanted // contributors)
    while root**2 * contributors < wanted:
        root += 1
    return Fraction(root, 2**shift)


def _gamma_share(bits: NoiseBits, dimension: int, scale: float, contributors: int, draws: int) -> Floats:
    """Rounded Gaussians of variance 2 scale² Gamma((D+1)/2n) + 16.

    Gamma(a) is Gamma(a + 1) times U^{1/a}, which keeps its digits where a is small.
    """
    from scipy.special import gammainccinv, ndtri

    shape = (dimension + 1) / (2 * contributors)
    first, second = uniform(bits, 2, draws)
    mixing = gammainccinv(shape + 1, first) * np.exp(np.log(second) / shape)
    deviation = np.sqrt(2 * scale**2 * mixing + _LEAST_SIGMA**2)
    steps: Floats = np.rint(deviation[:, None] * ndtri(uniform(bits, draws, dimension)))
    return steps
