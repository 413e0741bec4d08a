"""The discrete Laplace law P[k] = (1 - q)/(1 + q) q^|k|, q = exp(-1/t), on integers: sampler and accounting.

Adding it to an integer that moves by at most s is (s/t)-differentially private (Ghosh, Roughgarden,
Sundararajan 2009). The sampler is exact; its source is Canonne, Kamath, Steinke 2020, Algorithm 2, with the
geometric variable taken from a lazily known uniform.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.checks import MOST_DRAWN, require_whole
from federation.mechanisms.noise.lazy_uniform import collect, floor_exponential
from federation.mechanisms.noise.scales import require_scale
from federation.numerics.arrays import Booleans, Integers

_MAX_SINH = 700.0  # its sinh is the largest that a double holds


def propose(bits: NoiseBits, scale: int | Fraction, count: int) -> Integers:
    """Between 0 and `count` independent draws: sign times geometric, without the negative zeros."""
    words = bits.words(count)
    magnitude = floor_exponential(words, scale, bits)
    negative = (words & np.uint64(1)).astype(np.bool_)
    signed: Integers = np.where(negative, -magnitude, magnitude)
    kept: Booleans = (magnitude != 0) | ~negative
    return signed[kept]


def sample(bits: NoiseBits, scale: int | Fraction, size: int) -> Integers:
    """`size` independent exact draws with P[k] ∝ exp(-|k|/scale); shape (size,), int64.

    Raises `InputError` unless `scale` is an integer from 1 to 2^40, or a `Fraction` of two such integers.

    Examples:
        >>> sample(NoiseBits(1, "example"), scale=3, size=8).tolist()
        [4, 0, 0, -5, 0, -1, 0, -9]
    """
    require_scale("scale", scale)
    require_whole("size", size, 0, MOST_DRAWN)
    return collect(lambda count: propose(bits, scale, count), size, 1 + 0.5 * math.expm1(-1 / scale))


def epsilon(sensitivity: int, scale: int | Fraction) -> float:
    """The pure epsilon s/t of an integer that moves by s = `sensitivity` under noise of parameter t = `scale`.

    Ghosh, Roughgarden, Sundararajan 2009. Raises `InputError` for a scale that `sample` refuses.

    Examples:
        >>> epsilon(sensitivity=1, scale=4)
        0.25
    """
    require_scale("scale", scale)
    return float(sensitivity / scale)


def delta(epsilon: float, sensitivity: int, scale: int | Fraction) -> float:
    """The exact delta at `epsilon` >= 0 of one value that moves by `sensitivity` = s.

    The loss is (s - 2k)/t for 0 <= k <= s and s/t below, so with m the largest k whose loss exceeds epsilon,
    delta = P[K <= m] - e^epsilon P[K <= m - s].

    Examples:
        >>> [round(delta(e, sensitivity=4, scale=2), 4) for e in (0.0, 1.0, 2.0)]
        [0.6321, 0.3935, 0.0]
    """
    require_scale("scale", scale)
    t = float(scale)
    if epsilon * t >= sensitivity:
        return 0.0
    q = math.exp(-1 / t)
    m = math.ceil((sensitivity - epsilon * t) / 2) - 1
    return 1 - (q ** (m + 1) + math.exp(epsilon - (sensitivity - m) / t)) / (1 + q)


def mean_magnitude(scale: int | Fraction) -> float:
    """E|K| = 2q/(1 - q²) = 1/sinh(1/t) for t = `scale` > 0, in steps.

    Examples:
        >>> mean_magnitude(4)
        3.959
    """
    return 1 / math.sinh(min(1 / scale, _MAX_SINH))


def variance(scale: int | Fraction) -> float:
    """Var K = 2q/(1 - q)² = 1/(2 sinh(1/2t)²) for t = `scale` > 0, in steps squared.

    Examples:
        >>> variance(4)
        31.83
    """
    return 0.5 / math.sinh(min(0.5 / scale, _MAX_SINH / 2)) ** 2


def mean_norm(dimension: int) -> float:
    """E|b|_2 of D independent Laplace variables of scale 1, the continuous limit; relative error below 1e-9.

    E sqrt(x) = ∫ (1 - E e^{-ux}) u^{-3/2} du / (2 sqrt(pi)) for x = |b|², and E e^{-u b_1²} = sqrt(pi) w erfcx(w) with
    w = 1/(2 sqrt(u)): with u = e^{2v} the integrand is smooth, and the trapezoidal rule converges exponentially.

    Examples:
        >>> [round(mean_norm(d), 4) for d in (1, 2, 100)]
        [1.0, 1.623, 14.06]
    """
    from scipy.special import erfcx

    v = np.arange(-40.0, 30.0, 0.02)
    w = 0.5 * np.exp(-v)
    # For large w, sqrt(pi) w erfcx(w) = 1 - 1/(2w²) + 3/(4w⁴) - ..., whose 1 would cancel.
    inverse = 0.5 / np.square(w)
    gap = np.where(w > 1000, inverse * (1 - 3 * inverse), 1 - math.sqrt(math.pi) * w * erfcx(w))
    integrand = -np.expm1(dimension * np.log1p(-gap)) * np.exp(-v)
    return float(integrand.sum() * 0.02 / math.sqrt(math.pi))


def calibrate(sensitivity: int, epsilon: float) -> int:
    """The smallest integer scale t with s/t <= epsilon > 0, in exact arithmetic; s = `sensitivity` >= 1.

    Examples:
        >>> calibrate(sensitivity=3, epsilon=0.5)
        6
    """
    return math.ceil(Fraction(sensitivity) / Fraction(epsilon))
