"""The privacy loss of Dir(sigma eta) between neighbouring counts: thresholds and deltas (Iyer et al. 2016, Sec. 3).

One record moves from class i, which holds a records, to class j, which holds b. The neighbour holds a - 1 and b + 1.
The loss depends on theta_i / theta_j alone and exceeds epsilon exactly where that ratio exceeds T,

    ln T = (ln G(s a) - ln G(s (a-1)) + ln G(s b) - ln G(s (b+1)) + epsilon) / s,   s = sigma, G the gamma function.

The share v = theta_i / (theta_i + theta_j) is Beta(s a, s b), and Beta(s (a-1), s (b+1)) for the neighbour. So all
deltas are incomplete beta functions.

Arguments broadcast. The counts a >= 1 and b >= 0 may be fractional, by pseudo-counts; sigma > 0 and epsilon >= 0.
"""

import numpy as np
from numpy.typing import ArrayLike

from federation.contract.errors import InputError
from federation.contract.guarantee import require_epsilon
from federation.mechanisms.noise.mechanism import require_delta_above_zero
from federation.numerics.rows import Booleans, Floats

_SHIFT = 12  # gamma functions are compared at arguments at least this large, where few terms of Stirling's series do
_ROUNDING = 1e-14  # of logarithms and their products, generously
_FAR = 600.0  # beyond it exp(-|ln T|) nears the smallest double, and one term of the beta series is exact
# ln G(z) = (z - 1/2) ln z - z + ln(2 pi)/2 + sum of these over z, z^3, z^5, ... (Stirling)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def delta_eq9(epsilon: ArrayLike, a: ArrayLike, b: ArrayLike, sigma: ArrayLike) -> Floats:
    """P[theta_i > T theta_j], the published delta (Eq. 9), elementwise: an upper bound on `delta_exact`.

    (The paper's integral runs over the complement by mistake.) It is monotone neither in sigma nor in a and b.
    Raises `InputError` for arguments out of range.

    Examples:
        >>> float(delta_eq9(1.0, a=30, b=20, sigma=0.1))
        5.044e-09
    """
    epsilon, a, b, sigma = _arguments(epsilon, a, b, sigma)
    tail = beta_tail(log_threshold(epsilon, a, b, sigma), sigma * a, sigma * b)
    return np.where(_disjoint(a, b), 1.0, tail)


def exceeds_eq9(epsilon: ArrayLike, a: ArrayLike, b: ArrayLike, sigma: ArrayLike, level: float) -> Booleans:
    """Where `delta_eq9` is above a level > 0, elementwise, at a fraction of its time where it mostly is not.

    Chernoff's bound spares most of the incomplete beta functions: above its mean m, Beta(p, q) is above x with
    probability at most (x/m)^p ((1-x)/(1-m))^q. Raises `InputError` for arguments out of range.

    Examples:
        >>> exceeds_eq9(1.0, a=[30, 3], b=20, sigma=0.1, level=1e-6)
        array([False,  True])
    """
    epsilon, a, b, sigma = _arguments(epsilon, a, b, sigma)
    log_t = log_threshold(epsilon, a, b, sigma)
    p, q, odds = np.broadcast_arrays(sigma * a, sigma * b, log_t)
    with np.errstate(divide="ignore", invalid="ignore"):  # where a class is empty
        mean = np.log(a) - np.log(b)
        below = p * (np.logaddexp(0, -mean) - np.logaddexp(0, -odds))
        below += q * (np.logaddexp(0, mean) - np.logaddexp(0, odds))
        rounding = _ROUNDING * (1 + (p + q) * (1 + np.abs(mean) + np.abs(odds)))
        above = np.asarray((odds < mean) | ~(below + rounding < np.log(level)))
    above[above] = beta_tail(odds[above], p[above], q[above]) > level
    return np.where(_disjoint(a, b), level < 1, above)


def delta_exact(epsilon: ArrayLike, a: ArrayLike, b: ArrayLike, sigma: ArrayLike) -> Floats:
    """The smallest delta of the pair at one common sigma, elementwise; 1 where a = 1 or b = 0 (disjoint supports).

    It is P[v > T/(1+T)] - e^epsilon P'[v > T/(1+T)] with v under the counts and under the neighbour's.

    It never grows with a or b. Proof: v times an independent Gamma(s (a+b)) variable gives independent gamma variables.
    Adding Gamma(s t) to one of them and renormalising gives the pair with a + t (or b + t). Post-processing never
    increases delta. Raises `InputError` for arguments out of range.

    Examples:
        >>> float(delta_exact(1.0, a=30, b=20, sigma=0.1))
        2.402e-10
        >>> delta_exact(1.0, a=[30, 31, 30], b=[20, 20, 21], sigma=0.1)  # more records, less delta
        array([2.402e-10, 2.351e-10, 9.703e-11])
    """
    epsilon, a, b, sigma = _arguments(epsilon, a, b, sigma)
    log_t = log_threshold(epsilon, a, b, sigma)
    here = beta_tail(log_t, sigma * a, sigma * b)
    there = beta_tail(log_t, sigma * (a - 1), sigma * (b + 1))
    with np.errstate(divide="ignore"):
        granted = np.exp(epsilon + np.log(there))  # e^epsilon alone may overflow
    return np.where(_disjoint(a, b), 1.0, np.clip(here - granted, 0.0, 1.0))


def delta_eq9_limit(epsilon: ArrayLike, a: ArrayLike, b: ArrayLike) -> Floats:
    """The limit of `delta_eq9` as sigma -> 0, elementwise.

    With C = epsilon + ln((a-1)(b+1)/(ab)) it is a/(a+b) e^{-C b} for C >= 0 and 1 - b/(a+b) e^{C a} otherwise.
    Raises `InputError` for arguments out of range.

    Examples:
        >>> float(delta_eq9_limit(1.0, a=5, b=4))
        0.01018
    """
    epsilon, a, b, _ = _arguments(epsilon, a, b, 1.0)
    slope = _slope(epsilon, a, b)
    up = a / (a + b) * np.exp(-np.maximum(slope, 0.0) * b)
    down = 1 - b / (a + b) * np.exp(np.minimum(slope, 0.0) * a)
    return np.where(_disjoint(a, b), 1.0, np.where(slope >= 0, up, down))


def delta_exact_limit(epsilon: ArrayLike, a: ArrayLike, b: ArrayLike) -> Floats:
    """The limit of `delta_exact` as sigma -> 0, elementwise: no smaller delta is within reach of any sigma.

    With C as in `delta_eq9_limit` it is a/((a+b)(b+1)) e^{-C b} for C >= 0, else 1 - e^epsilon +
    b/((a+b)(a-1)) e^{C a}; for the pair (m0 + 1, m0) that is e^{-epsilon m0} / (2 m0 + 1). Raises `InputError` for
    arguments out of range.

    Examples:
        >>> float(delta_exact_limit(1.0, a=5, b=4)), float(np.exp(-4)) / 9
        (0.002035, 0.002035)
    """
    epsilon, a, b, _ = _arguments(epsilon, a, b, 1.0)
    slope = _slope(epsilon, a, b)
    up = a / ((a + b) * (b + 1)) * np.exp(-np.maximum(slope, 0.0) * b)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        down = b / ((a + b) * (a - 1)) * np.exp(np.minimum(slope, 0.0) * a) - np.expm1(epsilon)
    return np.where(_disjoint(a, b), 1.0, np.where(slope >= 0, up, down))


def beta_tail(log_odds: Floats, p: Floats, q: Floats) -> Floats:
    """P[ln(v / (1 - v)) > log_odds] for v ~ Beta(p, q), elementwise, p, q > 0.

    Examples:
        >>> float(beta_tail(np.log(3.0), p=2.0, q=2.0))  # P[v > 3/4]
        0.1562
    """
    from scipy.special import betainc, betaincc, betaln, expit

    above = log_odds > 0
    first, second = np.where(above, q, p), np.where(above, p, q)
    distance = np.abs(log_odds)
    x = expit(-np.minimum(distance, _FAR))
    near = distance <= _FAR
    tail: Floats = np.zeros(np.broadcast_shapes(first.shape, x.shape))
    with np.errstate(invalid="ignore", over="ignore", under="ignore", divide="ignore"):
        betainc(first, second, x, out=tail, where=near & above)
        betaincc(first, second, x, out=tail, where=near & ~above)
        if not near.all():
            far = np.exp(-first * distance - np.log(first) - betaln(first, second))
            tail = np.where(near, tail, np.where(above, far, 1 - far))
    return tail


def require_level(epsilon: float, delta: float) -> None:
    """Raises `InputError` unless epsilon is positive and finite, and 0 < delta < 1: no Dirichlet noise is pure."""
    require_epsilon(epsilon)
    require_delta_above_zero(delta)


def _arguments(
    epsilon: ArrayLike, a: ArrayLike, b: ArrayLike, sigma: ArrayLike
) -> tuple[Floats, Floats, Floats, Floats]:
    """As they are, not broadcast yet: what depends on one of the two counts alone is not computed for each pair."""
    epsilon, a, b, sigma = (np.asarray(x, dtype=np.float64) for x in (epsilon, a, b, sigma))
    in_range = (epsilon >= 0, a >= 1, b >= 0, sigma > 0, *map(np.isfinite, (epsilon, a, b, sigma)))
    if not all(map(np.all, in_range)):
        raise InputError("epsilon must be >= 0, a >= 1, b >= 0 and sigma > 0, all finite; check counts and parameters")
    return epsilon, a, b, sigma


def _disjoint(a: Floats, b: Floats) -> Booleans:
    """Where one neighbour has an empty class and thus a share of exactly 0 that the other never releases."""
    return (a <= 1) | (b <= 0)


def _slope(epsilon: Floats, a: Floats, b: Floats) -> Floats:
    """C, the limit of sigma ln T as sigma -> 0; 0 where a class is empty and there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(_disjoint(a, b), 0.0, epsilon + np.log1p(-1 / a) + np.log1p(1 / b))


def log_threshold(epsilon: ArrayLike, a: ArrayLike, b: ArrayLike, sigma: ArrayLike) -> Floats:
    """ln T, elementwise; exactly epsilon / sigma when b = a - 1, and -inf when a = 1 or b = 0.

    Raises `InputError` for arguments out of range.

    Examples:
        >>> float(log_threshold(1.0, a=30, b=20, sigma=0.1))
        10.45
    """
    epsilon, a, b, sigma = _arguments(epsilon, a, b, sigma)
    # An empty class has no threshold; its place is kept by 1 so that the arithmetic of the others is undisturbed.
    lost, gained = (np.where(count > 0, count, 1.0) for count in (a - 1, b))
    difference = _log_rising(sigma * lost, sigma) - _log_rising(sigma * gained, sigma)
    difference = np.where(lost == gained, 0.0, difference)  # whatever the last bits of both
    return np.where(_disjoint(a, b), -np.inf, (difference + epsilon) / sigma)


def _log_rising(z: Floats, h: Floats) -> Floats:
    """ln G(z + h) - ln G(z) for z, h > 0 without ever forming either: relative error near 1e-16.

    Moved up by G(z + n + h)/G(z + n) = G(z + h)/G(z) prod (1 + h/(z + k)), then Stirling's series subtracted term by
    term. The plain difference loses 6e-6 at z = 1e9.
    """
    down: Floats = np.log1p(h[..., None] / (z[..., None] + np.arange(_SHIFT))).sum(axis=-1)
    z = z + _SHIFT
    u, w = 1 / z, 1 / (z + h)
    # u^n - w^n = (u - w) (u^(n-1) + u^(n-2) w + ... + w^(n-1))
    powers = np.arange(2 * len(_STIRLING) - 1)
    by_total = np.zeros(2 * len(powers))
    by_total[: len(powers) : 2] = _STIRLING
    terms = by_total[np.add.outer(powers, powers)]
    series: Floats = (u[..., None] ** powers @ terms * w[..., None] ** powers).sum(axis=-1)
    log = h * np.log(z) + (z + h - 0.5) * np.log1p(h * u) - h
    return log - h * u * w * series - down
