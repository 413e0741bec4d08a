"""Exact samplers and accounting of the discrete Laplace and the discrete Gaussian law on the integers.

- Discrete Gaussian: P[k] ∝ exp(-k²/(2 sigma²)). Sampler: Canonne, Kamath, Steinke 2020, Algorithm 3. Accounting: their
  Theorem 7 for one coordinate; for D coordinates the comparison with the rounded continuous Gaussian proved in
  `delta_bound`.
- Discrete Laplace: P[k] = (1 - q)/(1 + q) q^|k|, q = exp(-1/t). Added to an integer that moves by at most s, it is
  (s/t)-differentially private (Ghosh, Roughgarden, Sundararajan 2009). The sampler is exact. Its source is Canonne,
  Kamath, Steinke 2020, Algorithm 2, with the geometric variable taken from a lazily known uniform.
"""

import math
from fractions import Fraction

import numpy as np

from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.lazy_uniform import below_exp_square, collect, floor_exponential
from federation.mechanisms.noise.mechanism import (
    MOST_DRAWN,
    first,
    require_epsilon_from_zero,
    require_positive,
    require_scale,
    require_whole,
)
from federation.numerics.rows import Booleans, Integers

_MAX_EPSILON = 1e6  # promises nothing
_TAIL_SHARE = 1e-10  # part of delta that the ball of the proof may leave outside


def sample_discrete_gaussian(bits: NoiseBits, sigma: int | Fraction, size: int) -> Integers:
    """`size` independent exact draws with P[k] ∝ exp(-k²/(2 sigma²)); shape (size,), int64.

    A discrete Laplace y of scale sigma = n/d is kept with probability exp(-(|y| - sigma)²/(2 sigma²)), that is
    exp(-(d |y| - n)²/(2 n²)). Raises `InputError` unless `sigma` is an integer from 1 to 2^40, or a `Fraction`
    of two such integers.

    Examples:
        >>> sample_discrete_gaussian(NoiseBits(1, "example"), sigma=3, size=8).tolist()
        [4, 0, 0, -1, 0, -3, -4, 0]
    """
    require_scale("sigma", sigma)
    require_whole("size", size, 0, MOST_DRAWN)
    n, d = sigma.numerator, sigma.denominator

    def draw(count: int) -> Integers:
        proposal = propose(bits, sigma, count)
        return proposal[below_exp_square(np.abs(proposal) * d - n, 2 * n**2, bits)]

    return collect(draw, size, 0.7)


def delta_bound(epsilon: float, mu: float, dimension: int, sigma: int) -> float:
    """An upper bound on delta for integer vectors in D dimensions that move by at most mu sigma in L2 norm.

    Let Z be the discrete Gaussian, X = round(N(0, sigma² I)), f the normal density. Releasing v + X = round(v
    + N) is post-processing of the Gaussian mechanism, so its delta is at most d(epsilon) =
    `gaussian.delta(epsilon, mu)`.
    1. P[X=k] = f(k) ∫ cosh(k s/sigma²) e^{-s²/2sigma²} ds over |s| <= 1/2, at least f(k) e^{-1/24sigma²}
       (Jensen), and at most f(k) e^{k²/24sigma⁴} because sinh(y)/y <= e^{y²/6}.
    2. P[Z=k] = f(k)/(1+z) with 0 <= z <= 3 e^{-2 pi² sigma²} (Poisson summation).
    3. So in D dimensions P[Z=k] <= e^a P[X=k] with a = D/24sigma², and where |k| <= R sigma also P[X=k] <=
       e^b P[Z=k] with b = R²/24sigma² + D z. With R = sqrt(D) (1 + 1/2sigma) + r, P[|X| > R sigma] <=
       e^{-r²/2} (concentration of |N|, and |X| <= |N| + sqrt(D)/2).
    4. P[v+Z in E] - e^epsilon P[v'+Z in E] <= e^a P[v+X in E] - e^{epsilon-b} (P[v'+X in E] - e^{-r²/2}),
       hence delta <= e^a d(epsilon - a - b) + e^{epsilon - b - r²/2} for every r; r makes the last term 1e-10
       d(epsilon).

    The same holds for several vectors of sensitivities mu_i and scales sigma_i, adaptively chosen, with
    mu = sqrt(sum mu_i²), D the sum of dimensions and sigma the smallest scale: 1.-4. bound their joint law. Raises
    `InputError` for arguments out of range.

    Examples:
        >>> delta_bound(1.0, mu=0.25, dimension=10, sigma=4000)
        2.924e-06
        >>> float(gaussian.delta(1.0, 0.25))
        2.924e-06
    """
    require_scale("sigma", sigma)
    epsilon = min(require_epsilon_from_zero(epsilon), _MAX_EPSILON)
    require_positive("mu", mu)
    require_whole("dimension", dimension, 1)
    radius = math.sqrt(max(0.0, 2 * (epsilon - float(gaussian.log_delta(epsilon, mu)) - math.log(_TAIL_SHARE))))
    reach = math.sqrt(dimension) * (1 + 0.5 / sigma) + radius
    a = dimension / (24 * sigma**2)
    b = reach**2 / (24 * sigma**2) + dimension * 3 * math.exp(-2 * (math.pi * sigma) ** 2)
    shifted = float(gaussian.log_delta(epsilon - a - b, mu))
    return min(1.0, math.exp(min(a + shifted, 1.0)) + math.exp(min(epsilon - b - radius**2 / 2, 1.0)))


def epsilon_bound(delta: float, mu: float, dimension: int, sigma: int) -> float:
    """An epsilon for which `delta_bound` is at most `delta`, within 1e-9 of the smallest; infinite if there is none.

    There is one unless the grid is as coarse as a few sigma. Raises `InputError` as `delta_bound`.

    Examples:
        >>> epsilon_bound(1e-5, mu=0.25, dimension=10, sigma=4000)
        0.9263
    """
    epsilon = gaussian.epsilon(delta, mu)
    step = 1e-10 * max(epsilon, 1e-10)
    low = epsilon
    while delta_bound(epsilon, mu, dimension, sigma) > delta:
        low, epsilon, step = epsilon, epsilon + step, 2 * step
        if epsilon > _MAX_EPSILON:
            return math.inf
    while epsilon - low > 1e-10 * epsilon:
        middle = (low + epsilon) / 2
        low, epsilon = (middle, epsilon) if delta_bound(middle, mu, dimension, sigma) > delta else (low, middle)
    return epsilon


def calibrate_discrete_gaussian(sensitivity: float, dimension: int, epsilon: float, delta: float) -> int:
    """The smallest integer sigma with `delta_bound` <= delta, for an L2 sensitivity in grid units.

    Raises `InputError` when sigma would leave 1..2^40: choose a coarser or finer grid.

    Examples:
        >>> calibrate_discrete_gaussian(1000.0, dimension=10, epsilon=1.0, delta=1e-5)
        3731
    """
    low = math.floor(sensitivity / gaussian.mu(epsilon, delta))
    require_scale("sigma", max(low, 1))

    def enough(sigma: int) -> bool:
        return delta_bound(epsilon, sensitivity / sigma, dimension, sigma) <= delta

    sigma = first(enough, low)
    require_scale("sigma", sigma)
    return sigma


_MAX_SINH = 700.0  # its sinh is the largest that a double holds


def propose(bits: NoiseBits, scale: int | Fraction, count: int) -> Integers:
    """Between 0 and `count` independent draws: sign times geometric, without the negative zeros."""
    words = bits.words(count)
    magnitude = floor_exponential(words, scale, bits)
    negative = (words & np.uint64(1)).astype(np.bool_)
    signed: Integers = np.where(negative, -magnitude, magnitude)
    kept: Booleans = (magnitude != 0) | ~negative
    return signed[kept]


def sample_discrete_laplace(bits: NoiseBits, scale: int | Fraction, size: int) -> Integers:
    """`size` independent exact draws with P[k] ∝ exp(-|k|/scale); shape (size,), int64.

    Raises `InputError` unless `scale` is an integer from 1 to 2^40, or a `Fraction` of two such integers.

    Examples:
        >>> sample_discrete_laplace(NoiseBits(1, "example"), scale=3, size=8).tolist()
        [4, 0, 0, -5, 0, -1, 0, -9]
    """
    require_scale("scale", scale)
    require_whole("size", size, 0, MOST_DRAWN)
    return collect(lambda count: propose(bits, scale, count), size, 1 + 0.5 * math.expm1(-1 / scale))


def epsilon(sensitivity: int, scale: int | Fraction) -> float:
    """The pure epsilon s/t of an integer that moves by s = `sensitivity` under noise of parameter t = `scale`.

    Ghosh, Roughgarden, Sundararajan 2009. Raises `InputError` for a scale that the sampler refuses.

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


def calibrate_discrete_laplace(sensitivity: int, epsilon: float) -> int:
    """The smallest integer scale t with s/t <= epsilon > 0, in exact arithmetic; s = `sensitivity` >= 1.

    Examples:
        >>> calibrate_discrete_laplace(sensitivity=3, epsilon=0.5)
        6
    """
    return math.ceil(Fraction(sensitivity) / Fraction(epsilon))
