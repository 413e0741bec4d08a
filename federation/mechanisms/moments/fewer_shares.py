"""Epsilon at a delta where shares of L2-Gamma noise are less than the whole: exact for the law in the reals.

Shares that are r times the whole add up to a normal vector in R^D of a variance that is Gamma((D + 1) r/2, 2 s^2), with
density f proportional to z^v K_v(z), z = |x|/s, v = ((D + 1) r - D)/2 <= 1/2. What follows is in units of s.

The pair. f falls with z. Let the value move by l. The loss at x, ln f(|x|) - ln f(|x - l|), is above epsilon where the
second distance exceeds R(|x|), f(R(z)) = e^-epsilon f(z). Under either law the distance from its own centre has the
density z^(D-1) f(z), and its direction is uniform, so that the event A has, F being the law of a coordinate of a
uniform direction,
    P(A) = integral of z^(D-1) f(z) F((z^2 + l^2 - R(z)^2)/(2 l z)),
    Q(A) = the same of 1 - F((z^2 + l^2 - r(z)^2)/(2 l z)),    R(r(z)) = z,
and delta = P(A) - e^epsilon Q(A): two integrals in one dimension, taken by the trapezoidal rule in ln z, where f has no
singularity that matters: z^D f falls as z^((D+1) r) or z^D towards 0.

A shorter move is no worse: for c < 1 the factor c X of the noise and independent noise have the law of X, as Gamma
variances are self-decomposable, so that a move by c l is what becomes of one by l after more noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.optimize import brentq
from scipy.special import betainc, kve

from federation.numerics.arrays import Floats

_NODES = 8_000
_TAIL = 36.0  # e to the minus of which is left out at either end
_LEAST, _LARGEST = 1e-300, 500.0  # of delta, and of epsilon
_FLAT = 1e-12
_HARDLY = 0.1  # of a Gamma's shape, twice: below it nearly all noise is closer to 0 than doubles can say
_LARGE = 50.0  # orders of a Bessel function from which on an expansion is exact to 9 digits


def delta(epsilon: float, moved: float, dimension: int, left: float) -> float:
    """The delta at `epsilon` where the value moves by `moved` scales, and shares are `left` times the whole, in (0, 1].

    Where hardly any noise is left it is told as 1. Its relative error is about 1e-4, and 1e-2 in one dimension and
    where delta is below 1e-12.

    Examples:
        >>> [round(delta(e, moved=1.0, dimension=10, left=1.0), 4) for e in (0.0, 0.5)]  # as `l2_gamma.delta`
        [0.1287, 0.0078]
        >>> round(delta(0.5, moved=1.0, dimension=10, left=0.8), 4)
        0.0154
    """
    if (dimension + 1) * left < _HARDLY:
        return 1.0
    z, depths, masses, radius = _radii(moved, dimension, left)
    # Where f is e^-epsilon times as high, and e^epsilon times: beyond the ends there is nothing that counts.
    farther = np.nan_to_num(radius(depths + epsilon), nan=math.inf)
    nearer = np.nan_to_num(radius(depths - epsilon), nan=0.0)
    inside = masses @ _below((z**2 + moved**2 - farther**2) / (2 * moved * z), dimension)
    outside = masses @ _below((nearer**2 - z**2 - moved**2) / (2 * moved * z), dimension)
    return max(float(inside - math.exp(epsilon) * outside), 0.0)


@lru_cache(maxsize=256)
def epsilon(delta_: float, moved: float, dimension: int, left: float) -> float:
    """The least epsilon for a delta above 0, infinite beyond 500; the others as of `delta`.

    Examples:
        >>> [round(epsilon(1e-6, moved=1.0, dimension=5, left=left), 3) for left in (1.0, 0.95, 0.9, 0.8)]
        [0.986, 1.052, 1.196, 1.722]
    """

    def beyond(guess: float) -> float:
        return math.log(max(delta(guess, moved, dimension, left), _LEAST) / delta_)

    if beyond(0.0) <= 0:
        return 0.0
    high = 1.0
    while beyond(high) > 0:
        high *= 2
        if high > _LARGEST:
            return math.inf
    return float(brentq(beyond, 0.0, high, xtol=1e-9, rtol=1e-5))


@lru_cache(maxsize=16)
def _radii(moved: float, dimension: int, left: float) -> tuple[Floats, Floats, Floats, Callable[[Floats], Floats]]:
    """Radii z, -ln f there, and their probabilities, which are 0 where only others' distances reach.

    And what gives the radius back, by cubic interpolation of its logarithm; NaN beyond the ends.
    """
    order = ((dimension + 1) * left - dimension) / 2
    falls = dimension + min(order, -order) + order  # the power of z that z^D f is towards 0
    typical = math.sqrt(dimension * (dimension + 1) * left)
    # z^2 is a chi-squared number times twice a Gamma one: neither is farther out than this.
    most = math.sqrt(2 * _far((dimension + 1) * left / 2, 1) * _far(dimension, 2))
    least = math.log(typical) - _TAIL / falls - math.sqrt(2 * _TAIL / falls)
    logs = np.linspace(least, math.log(most + moved), _NODES)
    z = np.exp(logs)
    depths = -order * logs - _log_bessel(abs(order), z)
    weights = dimension * logs - depths
    masses = np.where(z <= most, np.exp(weights - weights.max()), 0.0)
    falling = np.append(np.diff(depths) > _FLAT, True)  # not so near 0, where f may be finite
    slopes = 1 / np.gradient(depths, logs)[falling]
    inverse = CubicHermiteSpline(depths[falling], logs[falling], slopes, extrapolate=False)
    return z, depths, masses / masses.sum(), lambda depth: np.asarray(np.exp(inverse(depth)))


def _far(mean: float, scale: float) -> float:
    """What a Gamma number of this mean and scale exceeds with a probability of e^-36 at most."""
    return mean + math.sqrt(2 * scale * mean * _TAIL) + scale * _TAIL


def _log_bessel(order: float, z: Floats) -> Floats:
    """ln K of this order at z > 0; of large orders by Debye's expansion (DLMF 10.41.4), as K itself is no double."""
    if order < _LARGE:
        known = kve(order, z)
        near = math.lgamma(order) - math.log(2) + order * np.log(2 / z) if order else 0.0  # where it is no double
        return np.asarray(np.where(np.isinf(known), near, np.log(known) - z))
    root = np.hypot(1, z / order)
    t = 1 / root
    first, second = (3 * t - 5 * t**3) / 24, (81 * t**2 - 462 * t**4 + 385 * t**6) / 1152
    series = np.log1p(-first / order + second / order**2) + np.log(math.pi / (2 * order)) / 2 - np.log(root) / 2
    return np.asarray(series - order * (root + np.log(z / order / (1 + root))))


def _below(cosine: Floats, dimension: int) -> Floats:
    """The probability that a coordinate of a uniform direction is below this."""
    if dimension == 1:
        return np.asarray(np.where(cosine > 1, 1.0, np.where(cosine > -1, 0.5, 0.0)))
    known = np.clip(cosine, -1, 1)
    tail = betainc((dimension - 1) / 2, 0.5, 1 - known**2) / 2
    return np.asarray(np.where(known < 0, tail, 1 - tail))
