"""Bounds on noise that hold but with a given probability: on one entry, on all entries, and on the norm.

A tail is P[|b| > r] of one entry b as a function of r >= 0. It may be an upper bound; then all that follows from it is
an upper bound too. Entries of discrete laws are whole numbers of steps.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.mechanisms.noise.mechanism import require_share, require_whole
from federation.numerics.rows import Floats

Tail: TypeAlias = Callable[[Floats], Floats]

_SMOOTH = 256.0  # from this scale on a step is nothing beside the noise
_TERMS = 40  # standard deviations that the sum of a discrete Gaussian goes to
_CELLS, _MOST_CELLS = 2**18, 2**22  # of the law of a squared norm
_FINE = 2**11  # cells for each entry
_NODES = 4000
_NEVER = 1e-3  # of the probability that is left out


def laplace_tail(scale: float | Fraction) -> Tail:
    """Of P[k] ∝ exp(-|k|/scale): P[|K| > r] = 2 q^(floor(r) + 1) / (1 + q), q = exp(-1/scale).

    Examples:
        >>> laplace_tail(2.0)(np.array([0.0, 0.5, 10.0])).round(4)
        array([0.7551, 0.7551, 0.0051])
    """
    t = float(scale)
    return lambda r: np.minimum(2 * np.exp(-(np.floor(r) + 1) / t) / (1 + math.exp(-1 / t)), 1.0)


def gaussian_tail(scale: float | Fraction) -> Tail:
    """Of P[k] ∝ exp(-k²/(2 scale²)): the sum itself, and of much noise the normal law one step nearer to zero.

    P[K >= m] <= P[N >= m - 1] for the normal N of the same scale (Canonne, Kamath, Steinke 2020, Proposition 25).

    Examples:
        >>> gaussian_tail(2.0)(np.array([0.0, 5.0]))
        array([0.8005, 0.005456])
    """
    from scipy.special import erfc

    s = float(scale)
    if s >= _SMOOTH:
        return lambda r: np.asarray(erfc(np.floor(r) / (s * math.sqrt(2))))
    terms = np.exp(-0.5 * np.square(np.arange(math.ceil(_TERMS * s) + 2) / s))
    beyond = np.append(np.cumsum(terms[:0:-1])[::-1], 0.0)
    beyond *= 2 / (terms[0] + 2 * beyond[0])
    return lambda r: beyond[np.minimum(np.floor(r), len(beyond) - 1).astype(np.int64)]


def laplace_pair_tail(scale: float | Fraction) -> Tail:
    """Of the sum or difference of two such integers: P[m] = ((1 - q)/(1 + q))² q^|m| (|m| + (1 + q²)/(1 - q²)).

    Examples:
        >>> laplace_pair_tail(2.0)(np.array([0.0, 10.0]))
        array([0.8702, 0.01832])
    """
    t = float(scale)
    q = math.exp(-1 / t)
    constant = -1 / math.tanh(-1 / t)

    def tail(r: Floats) -> Floats:
        least = np.floor(r) + 1
        summed = np.exp(-least / t) * ((least + constant) / (1 - q) + q / (1 - q) ** 2)
        return np.minimum(2 * math.tanh(0.5 / t) ** 2 * summed, 1.0)

    return tail


def gaussian_pair_tail(scale: float | Fraction) -> Tail:
    """An upper bound of that of the sum or difference of two such integers, and from scale 2.5 on the tail itself.

    P[m] is e^(-m²/(4 scale²)) times a sum over the integers or over those and a half, which is largest over the former
    (Poisson summation): so it is the tail at scale sqrt 2 but for a factor, which is 1 from there on in doubles.

    Examples:
        >>> gaussian_pair_tail(2.0)(np.array([0.0, 5.0]))
        array([0.859, 0.05061])
    """
    s = float(scale)
    own, wide, narrow = (_theta(s * factor) for factor in (1.0, math.sqrt(2), math.sqrt(0.5)))
    single, factor = gaussian_tail(s * math.sqrt(2)), narrow * wide / own**2
    return lambda r: np.minimum(factor * single(r), 1.0)


def _theta(scale: float) -> float:
    """The sum over integers k of e^(-k²/(2 scale²))."""
    if scale >= _SMOOTH:
        return scale * math.sqrt(2 * math.pi)
    k = np.arange(1, math.ceil(_TERMS * scale) + 2)
    return float(1 + 2 * np.exp(-0.5 * np.square(k / scale)).sum())


def l2_gamma_tail(dimension: int) -> Tail:
    """Of one entry of noise with density ∝ exp(-|b|) in R^D, D = `dimension`.

    Given tau ~ Gamma((D + 1)/2, 2) such noise is normal of variance tau: both have the characteristic function
    (1 + |omega|²)^(-(D + 1)/2).

    Examples:
        >>> l2_gamma_tail(1)(np.array([0.0, 3.0]))  # the Laplace law
        array([1. , 0.04979])
    """
    from scipy.special import erfc, gammainccinv, gammaincinv

    shape = (dimension + 1) / 2
    # Of the root of tau: its density is smooth from 0 on.
    low, high = (math.sqrt(2 * float(edge)) for edge in (gammaincinv(shape, 1e-30), gammainccinv(shape, 1e-30)))
    nodes, weights = np.polynomial.legendre.leggauss(200)
    root = low + (high - low) * (nodes + 1) / 2
    log_density = (2 * shape - 1) * np.log(root) - np.square(root) / 2
    mass = weights * np.exp(log_density - log_density.max())
    mass /= mass.sum()
    return lambda r: np.asarray(erfc(np.divide.outer(r, root * math.sqrt(2))) @ mass)


def entry_reach(tail: Tail, beyond: float) -> float:
    """The least r, within a part of 10^12, with tail(r) <= `beyond`, which is in (0, 1).

    Examples:
        >>> entry_reach(laplace_tail(2.0), 1e-6)
        28.0
    """
    require_share("beyond", beyond)

    def exceeded(r: float) -> bool:
        return bool(tail(np.array([r]))[0] > beyond)

    low, high = 0.0, 1.0
    if not exceeded(low):
        return low
    while exceeded(high):
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if exceeded(middle) else (low, middle)
    return high


def norm_reach(tail: Tail, entries: int, beyond: float) -> float:
    """r such that the L2 norm of `entries` = D independent entries exceeds r with probability `beyond` at most.

    By the law of the sum of their squares, which are rounded up to a 2^-18 part of what that can be or less: r is no
    less than the quantile, and for up to 2000 entries at most .2 % more.

    Examples:
        >>> norm_reach(gaussian_tail(1000.0), 31, 1e-6)  # chi with 31 degrees of freedom gives 9145.6
        9148.6
    """
    require_share("beyond", beyond)
    require_whole("entries", entries, 1)
    single = entry_reach(tail, beyond / 2)
    if single == 0:
        return entry_reach(tail, beyond / entries)
    # Twice a guess of what is all but never exceeded, and again where that is not enough: the law is on a circle.
    most = 2 * (entry_reach(tail, beyond * _NEVER / entries) ** 2 + 2 * entries * _second_moment(tail, single))
    cells = min(max(_CELLS, 2 ** (_FINE * entries).bit_length()), _MOST_CELLS)
    while True:
        width = most / cells
        inside = tail(np.sqrt(width * np.arange(cells)))
        law = np.append(1 - inside[0], inside[:-1] - inside[1:])  # in the cell that ends at k width
        summed = np.fft.irfft(np.fft.rfft(law) ** entries, cells)
        above = np.cumsum(summed[::-1])[::-1] + entries * inside[-1]  # at k width or more
        found = int(np.argmax(above <= beyond))
        if 0 < found <= cells // 2:
            return math.sqrt(width * found)
        most *= 2


def _second_moment(tail: Tail, most: float) -> float:
    """E b² of an entry, nearly: the integral of 2 r P[|b| > r]."""
    r = np.linspace(0.0, most, _NODES)
    return float(np.trapezoid(2 * r * tail(r), r))


@lru_cache  # all collectors of a release have the same
def additive_reaches(noise: AdditiveMechanism, beyond: float) -> tuple[float, float]:
    """How far noise takes an entry, and its L2 norm, each but with probability `beyond` / 2: neither with `beyond`.

    In the value's units. Rounding of the value to the grid and of the noise are in it. L2-Gamma and Gaussian noise have
    the quantiles of Gamma(D) and of chi with D degrees of freedom.

    Examples:
        >>> from federation.mechanisms.noise.additive import calibrate
        >>> noise = calibrate("gaussian", sensitivity=2.0, dimension=31, epsilon=1.0, delta=1e-6)
        >>> [round(reach / noise.scale, 2) for reach in additive_reaches(noise, 2e-6)]
        [5.53, 9.15]
    """
    from scipy.special import chdtri, gammainccinv

    require_share("beyond", beyond)
    half, count = beyond / 2, noise.dimension
    rounding = noise.step  # half a step of the value, and half a step of rounded noise
    if noise.name == "l2_gamma":
        entry = noise.scale * entry_reach(l2_gamma_tail(count), half / count)
        norm = noise.scale * float(gammainccinv(count, half))
    elif noise.name == "discrete_gaussian":
        entry = noise.step * entry_reach(gaussian_tail(noise.grid_scale), half / count)
        # Entries are below the normal ones and a step (Canonne, Kamath, Steinke 2020, Proposition 25).
        norm = noise.scale * math.sqrt(float(chdtri(count, half))) + noise.step * math.sqrt(count)
    else:
        tail = laplace_tail(noise.grid_scale)
        entry, norm = (noise.step * reach for reach in (entry_reach(tail, half / count), norm_reach(tail, count, half)))
    return entry + rounding, norm + rounding * math.sqrt(count)
