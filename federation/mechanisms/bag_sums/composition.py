"""What T releases of the same labels cost, each with fresh bags, fresh weights and fresh noise.

Given all bags and weights they are one Gaussian mechanism at R = sqrt(sum r_t²), so the law of R² is the T-fold
convolution of that of r². Renyi divergences are infinite here, whatever the order: r has too heavy a tail. Reusing
the noise of an earlier release is another mechanism, to which nothing of this applies.
"""

from __future__ import annotations

import math

import numpy as np

from federation.mechanisms.bag_sums.accounting import delta, width
from federation.mechanisms.bag_sums.design import BagDesign, Exposure, Weights
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.checks import require_whole
from federation.numerics.arrays import Floats

_COARSE, _FINE = 2**11, 2**16  # grid points of R²
_SATURATED = 4.0  # at R/2 - epsilon/R = 4 a Gaussian mechanism's delta is above 0.9999: larger R count as infinite
_STRIDE = 2.0  # between the upper ends of the grids that are tried
_UNLIKELY = 1e-16  # counts of noisy labels beyond these tails are replaced by worse ones
_ROUNDING = 1e-12  # added to delta for the rounding of the convolutions


def composed_delta(
    epsilon: float,
    design: BagDesign,
    *,
    sigma: float,
    label_range: tuple[float, float],
    releases: int,
    charge: float = 0.0,
) -> float:
    """An upper bound on the delta of `releases` releases together, also when chosen adaptively.

    Usually within 1 % of the smallest. The noisy set is the same in all of them (or drawn anew in every bag, when
    stratified). Values of r² are rounded up to a grid and sums beyond its end count as infinite; of several grids the
    best is taken. Nothing below 1e-12 is resolved. Raises `InputError` as `accounting.delta`, and unless `releases` is
    an integer of at least 1.

    Examples:
        >>> design = BagDesign(records=12_800, bags=100, size=128, noisy=6400)
        >>> [f"{composed_delta(1.0, design, sigma=1.0, label_range=(0, 1), releases=t):.1e}" for t in (1, 5)]
        ['1.4e-05', '4.5e-04']
    """
    single = delta(epsilon, design, sigma=sigma, label_range=label_range, charge=charge)
    require_whole("releases", releases, 1)
    if releases == 1:
        return single
    ratio = width(label_range) / sigma
    if design.weights == "signs" and design.per_bag is not None and design.inclusion == 1:
        return float(gaussian.delta(epsilon, math.sqrt(releases) * (ratio / math.sqrt(design.per_bag) + charge)))
    return min(1.0, max(_best_grid(epsilon, ratio, design, releases, charge), single))


def _best_grid(epsilon: float, ratio: float, design: BagDesign, releases: int, charge: float) -> float:
    def bound(top: float, points: int) -> float:
        squares = np.linspace(0.0, top, points)
        reached = np.maximum(np.sqrt(squares) - charge, 0.0) / ratio
        seen = np.concatenate([[0.0], gaussian.delta(epsilon, np.sqrt(squares[1:]))])
        worst = 0.0
        for parts in design.exposures():
            below = np.sum([_distribution(reached, part, design.weights) for part in parts], axis=0)
            in_no_bag = 1 - math.fsum(float(part.probability.sum()) for part in parts)
            mass = np.diff(below, prepend=0.0)
            mass[0] += max(0.0, in_no_bag)
            total = _convolution_power(mass, releases)
            worst = max(worst, float(total @ seen) + max(0.0, 1 - float(total.sum())))
        return worst + _ROUNDING

    top = (_SATURATED + math.sqrt(_SATURATED**2 + 2 * epsilon)) ** 2
    found = bound(top, _COARSE)
    while (lower := bound(top / _STRIDE, _COARSE)) < found:
        top, found = top / _STRIDE, lower
    return min(found, bound(_STRIDE * top, _FINE))  # a finer grid has less to gain from a low end


def _convolution_power(mass: Floats, exponent: int) -> Floats:
    """The law of a sum of independent copies on the same grid; what lies beyond its end is dropped."""

    def convolve(a: Floats, b: Floats) -> Floats:
        transformed = np.fft.rfft(a, 2 * len(a)) * np.fft.rfft(b, 2 * len(b))
        return np.maximum(np.fft.irfft(transformed)[: len(a)], 0.0)

    result = mass if exponent % 2 else None
    while exponent := exponent // 2:
        mass = convolve(mass, mass)
        if exponent % 2:
            result = mass if result is None else convolve(result, mass)
    assert result is not None
    return result


def _distribution(reached: Floats, part: Exposure, weights: Weights) -> Floats:
    """P[the label is in a bag, with |w|/sqrt(Q) <= reached], as in `weight_ratio`, for each of increasing values."""
    below = np.zeros(len(reached))
    alone = part.others == 0
    if part.own:
        below += part.probability[alone].sum() * (reached >= 1)
    q, p = part.others[~alone].astype(float), part.probability[~alone]
    if not len(q):
        return below
    if weights == "signs":
        met = np.searchsorted(reached, 1 / np.sqrt(q + part.own), side="left")
        return below + np.cumsum(np.bincount(met, p, minlength=len(reached) + 1))[: len(reached)]
    square = reached**2
    return below + _mixed_beta(np.minimum(square, 1.0) if part.own else square / (1 + square), q, p)


def _mixed_beta(s: Floats, q: Floats, p: Floats) -> Floats:
    """sum_q p_q P[Beta(1/2, q/2) <= s] or slightly less, for s = sin² t in [0, 1].

    With F_q(s) the distribution function, F_{q+2} - F_q = sqrt(s) (1 - s)^{q/2} Γ((q+1)/2)/(sqrt(pi) Γ(q/2 + 1)): one
    polynomial in sqrt(1 - s) sums them all.
    """
    from scipy.special import betainc, gammaln

    first = int(np.searchsorted(np.cumsum(p), _UNLIKELY))  # smaller counts are left out, as if infinitely bad
    last = len(p) - 1 - int(np.searchsorted(np.cumsum(p[::-1]), _UNLIKELY))  # larger ones are taken for this one
    p = np.append(p[first:last], p[last:].sum())
    q = q[first : last + 1]
    result: Floats = p[0::2].sum() * betainc(0.5, q[0] / 2, s)
    if len(q) > 1:
        result += p[1::2].sum() * betainc(0.5, q[1] / 2, s)
    above = np.zeros(len(p))  # of the same parity
    for parity in (0, 1):
        above[parity::2] = np.cumsum(p[parity::2][::-1])[::-1] - p[parity::2]
    terms = above * np.exp(gammaln((q + 1) / 2) - gammaln(q / 2 + 1)) / math.sqrt(math.pi)
    cosine = np.sqrt(1 - s)
    summed = np.zeros(len(s))
    for term in terms[::-1]:
        summed *= cosine
        summed += term
    lowest: Floats = cosine ** q[0]
    return result + np.sqrt(s) * lowest * summed
