"""The Gaussian mechanism, exactly: the trade-off between epsilon and delta at mu = L2 sensitivity / sigma.

delta = Φ(mu/2 - epsilon/mu) - e^epsilon Φ(-mu/2 - epsilon/mu)   (Balle, Wang 2018, Theorem 8). Several
releases compose to mu = sqrt(sum mu_i²), adaptively too (Dong, Roth, Su 2022, Corollary 3.3).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from federation.contract.errors import InputError

_SMALL_MU = 0.5  # below it the two Mills ratios nearly cancel, and their difference is integrated instead
_SAFE = 1e-12  # relative step to the safe side of a root


def log_delta(epsilon: ArrayLike, mu: ArrayLike) -> np.ndarray:
    """ln delta(epsilon, mu), elementwise, for any real epsilon and mu > 0; relative error below 1e-9.

    With x = epsilon/mu - mu/2 and the Mills ratio R(t) = (1 - Φ(t))/φ(t), delta = φ(x) (R(x) - R(x + mu)),
    and R' = t R - 1. Negative epsilon: delta(epsilon) = 1 - e^epsilon + e^epsilon delta(-epsilon), by
    symmetry.
    """
    epsilon, mu = np.broadcast_arrays(np.asarray(epsilon, float), np.asarray(mu, float))
    if not (np.all(mu > 0) and np.all(np.isfinite(mu)) and np.all(np.isfinite(epsilon))):
        raise InputError("mu must be positive and finite and epsilon finite; check the noise scale")
    positive = np.abs(epsilon)
    with np.errstate(divide="ignore"):
        log = _log_delta_positive(positive, mu)
        mirrored = np.log(-np.expm1(-positive) + np.exp(log - positive))
    return np.where(epsilon < 0, mirrored, log)


def delta(epsilon: ArrayLike, mu: ArrayLike) -> np.ndarray:
    """The smallest delta for which mu-Gaussian noise is (epsilon, delta)-private, elementwise."""
    return np.exp(log_delta(epsilon, mu))


def epsilon(delta: float, mu: float) -> float:
    """The smallest epsilon >= 0 for which mu-Gaussian noise is (epsilon, delta)-private.

    Raises `InputError` unless 0 < delta < 1 and mu > 0.
    """
    from scipy.optimize import brentq

    _check_delta(delta)
    target = math.log(delta)
    if log_delta(0.0, mu) <= target:
        return 0.0
    # Φ(-x) <= e^{-x²/2}: at this epsilon even the first term is below delta.
    high = mu * (mu / 2 + math.sqrt(-2 * target))
    root = brentq(lambda e: float(log_delta(e, mu)) - target, 0.0, high, xtol=1e-14 * high, rtol=1e-14)
    return min(high, root + _SAFE * max(root, 0.1 * high))


def mu(epsilon: float, delta: float) -> float:
    """The largest sensitivity / sigma that is (epsilon, delta)-private; sigma = sensitivity / mu.

    Raises `InputError` unless epsilon >= 0 and 0 < delta < 1.
    """
    from scipy.optimize import brentq

    _check_delta(delta)
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError(f"epsilon must be a finite number >= 0, got {epsilon}")
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
    """The mu of all releases together: sqrt(sum mu_i²)."""
    return math.hypot(*mus)


@lru_cache
def _nodes() -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.legendre.leggauss(20)
    return (nodes + 1) / 2, weights / 2


def _log_delta_positive(epsilon: np.ndarray, mu: np.ndarray) -> np.ndarray:
    from scipy.special import erfcx, log_ndtr, ndtr

    def mills(t: np.ndarray) -> np.ndarray:
        return math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2))

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
    return np.minimum(np.where(small | (x > 0), log_tail, log_bulk), log_ndtr(-x))


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InputError(f"delta must lie strictly between 0 and 1, got {delta}")
