"""The Gaussian mechanism, exactly: the trade-off between epsilon and delta at mu = L2 sensitivity / sigma.

delta = Φ(mu/2 - epsilon/mu) - e^epsilon Φ(-mu/2 - epsilon/mu)   (Balle, Wang 2018, Theorem 8). Several
releases compose to mu = sqrt(sum mu_i²), adaptively too (Dong, Roth, Su 2022, Corollary 3.3).
"""

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from federation.contract.errors import InputError
from federation.mechanisms.noise.mechanism import require_delta_above_zero, require_epsilon_from_zero, require_positive
from federation.numerics.rows import Floats, numbers

_SMALL_MU = 0.5  # below it the two Mills ratios nearly cancel, and their difference is integrated instead
_SAFE = 1e-12  # relative step to the safe side of a root


def log_delta(epsilon: ArrayLike, mu: ArrayLike) -> Floats:
    """ln delta(epsilon, mu), elementwise, for any real epsilon and mu > 0; relative error below 1e-9.

    With x = epsilon/mu - mu/2 and the Mills ratio R(t) = (1 - Φ(t))/φ(t), delta = φ(x) (R(x) - R(x + mu)),
    and R' = t R - 1. Negative epsilon: delta(epsilon) = 1 - e^epsilon + e^epsilon delta(-epsilon), by
    symmetry. Raises `InputError` unless mu is positive and finite and epsilon finite.

    Examples:
        >>> log_delta([0.5, 1.0, 10.0], mu=0.5).round(3).tolist()
        [-2.948, -4.986, -202.642]
    """
    epsilon, mu = np.broadcast_arrays(numbers(epsilon, "epsilon"), numbers(mu, "mu"))
    if not (np.all(mu > 0) and np.all(np.isfinite(mu)) and np.all(np.isfinite(epsilon))):
        raise InputError("mu must be positive and finite and epsilon finite; check the noise scale")
    positive = np.abs(epsilon)
    with np.errstate(divide="ignore", over="ignore"):
        log = _log_delta_positive(positive, mu)
        mirrored = np.log(-np.expm1(-positive) + np.exp(log - positive))
    return np.where(epsilon < 0, mirrored, log)


def delta(epsilon: ArrayLike, mu: ArrayLike) -> Floats:
    """The smallest delta for which mu-Gaussian noise is (epsilon, delta)-private, elementwise, for any real epsilon.

    Balle, Wang 2018, Theorem 8, at mu = L2 sensitivity / sigma > 0. Raises `InputError` as `log_delta`.

    Examples:
        >>> float(delta(1.0, mu=0.5))
        0.00683
    """
    return np.exp(log_delta(epsilon, mu))


def epsilon(delta: float, mu: float) -> float:
    """The smallest epsilon >= 0 for which mu-Gaussian noise is (epsilon, delta)-private.

    Raises `InputError` unless 0 < delta < 1 and mu > 0.

    Examples:
        >>> epsilon(1e-5, mu=0.5)
        1.993
    """
    from scipy.optimize import brentq

    require_delta_above_zero(delta)
    require_positive("mu", mu)
    target = math.log(delta)
    if log_delta(0.0, mu) <= target:
        return 0.0
    # Φ(-x) <= e^{-x²/2}: at this epsilon even the first term is below delta.
    high = mu * (mu / 2 + math.sqrt(-2 * target))
    if log_delta(high, mu) >= target:  # by the rounding of a huge mu
        return high
    root = float(brentq(lambda e: float(log_delta(e, mu)) - target, 0.0, high, xtol=1e-14 * high, rtol=1e-14))
    return min(high, root + _SAFE * max(root, 0.1 * high))


@lru_cache(maxsize=256)  # parties of one release calibrate the same
def mu(epsilon: float, delta: float) -> float:
    """The largest sensitivity / sigma that is (epsilon, delta)-private; sigma = sensitivity / mu.

    Raises `InputError` unless epsilon >= 0 and 0 < delta < 1.

    Examples:
        >>> 1 / mu(1.0, 1e-5)  # sigma for a sensitivity of 1
        3.731
    """
    from scipy.optimize import brentq

    require_delta_above_zero(delta)
    require_epsilon_from_zero(epsilon)
    target = math.log(delta)

    def excess(log_mu: float) -> float:
        return max(float(log_delta(epsilon, math.exp(log_mu))), -1e6) - target

    low = high = 0.0
    while excess(low) > 0:
        low -= 1.0
    while excess(high) < 0:
        high += 1.0
    return math.exp(brentq(excess, low, high, xtol=1e-15, rtol=1e-14)) * (1 - _SAFE)


def compose(mus: Iterable[float]) -> float:
    """The mu of all releases together: sqrt(sum mu_i²) (Dong, Roth, Su 2022, Corollary 3.3).

    Examples:
        >>> compose([0.3, 0.4])
        0.5
    """
    return math.hypot(*mus)


@lru_cache
def _nodes() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(20)
    return (nodes + 1) / 2, weights / 2


def _log_delta_positive(epsilon: Floats, mu: Floats) -> Floats:
    from scipy.special import erfcx, log_ndtr, ndtr

    def mills(t: Floats) -> Floats:
        scaled: Floats = erfcx(t / math.sqrt(2))
        return math.sqrt(math.pi / 2) * scaled

    x = epsilon / mu - mu / 2
    log_phi = -0.5 * (x * x + math.log(2 * math.pi))
    small = mu < _SMALL_MU
    nodes, weights = _nodes()
    t = np.where(small, x, 0.0)[..., None] + np.minimum(mu, _SMALL_MU)[..., None] * nodes
    # 1 - t R(t) >= 1/(t² + 3) takes over where rounding would leave nothing of the difference.
    integral = mu * (np.maximum(1 - t * mills(t), 1 / (t * t + 3)) @ weights)
    difference = mills(np.maximum(x, 0.0)) - mills(x + mu)
    log_tail = log_phi + np.log(np.where(small, integral, np.maximum(difference, 0.0)))
    # For x <= 0 and mu not small delta is of order one: the theorem's plain difference loses nothing.
    log_bulk = np.log(np.maximum(ndtr(-x) - np.exp(log_phi) * mills(x + mu), 0.0))
    log: Floats = np.minimum(np.where(small | (x > 0), log_tail, log_bulk), log_ndtr(-x))
    return log
