"""The delta between any two Dirichlet laws: exact for two classes, by sampling for more.

delta(epsilon) = E max(0, 1 - e^{epsilon - loss}) under the first law, the loss being the log ratio of the densities,
sum_k (p_k - q_k) ln theta_k + const. When the parameters differ in more than two classes, as they do for neighbours
with a sigma of their own each, no closed form is known beyond two classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.dirichlet_loss import beta_tail
from federation.mechanisms.counts.dirichlet_sampler import log_gamma
from federation.numerics.arrays import Floats

MOST_RUNS = 2**30
_BLOCK = 2**16  # draws at a time
_REACH = 1e9  # log odds beyond every root that matters
_LARGE = 700.0  # an epsilon whose exponential is a double; the delta of a larger one is at most its own


@dataclass(frozen=True)
class MeasuredDelta:
    """A delta and the standard error of its measurement; 0 where it is exact."""

    value: float
    standard_error: float


def divergence(epsilon: float, p: Floats, q: Floats, *, runs: int = 2**18, seed: int = 1) -> MeasuredDelta:
    """The smallest delta >= 0 with P[Dir(p) in B] <= e^epsilon P[Dir(q) in B] + delta for all B.

    `p`, `q`: shape (C,), positive, C >= 2. Exact to about 1e-12 for C = 2; otherwise the mean over `runs` draws of
    Dir(p). Raises `InputError` for other shapes or epsilon < 0.

    Examples:
        >>> divergence(0.5, np.array([3.0, 4.0]), np.array([2.0, 5.0])).value
        0.1719
    """
    if p.shape != q.shape or p.ndim != 1 or len(p) < 2 or not ((p > 0).all() and (q > 0).all() and epsilon >= 0):
        raise InputError("Dirichlet parameters must be two equally long lists of positive numbers, and epsilon >= 0")
    if len(p) == 2:
        return MeasuredDelta(_two_classes(epsilon, p, q), 0.0)
    bits = NoiseBits(seed, "Dirichlet divergence")
    parts = [_excesses(epsilon, p, q, bits, min(_BLOCK, runs - start)) for start in range(0, runs, _BLOCK)]
    excess = np.concatenate(parts)
    return MeasuredDelta(float(excess.mean()), float(excess.std() / math.sqrt(runs)))


def _excesses(epsilon: float, p: Floats, q: Floats, bits: NoiseBits, draws: int) -> Floats:
    """max(0, 1 - e^{epsilon - loss}) of independent draws of Dir(p), shape (draws,)."""
    log = log_gamma(bits, p, draws)
    largest = log.max(axis=1, keepdims=True)
    log -= largest + np.log(np.exp(log - largest).sum(axis=1, keepdims=True))
    loss = log @ (p - q) + _log_norm(q) - _log_norm(p)
    return np.maximum(0.0, -np.expm1(epsilon - loss))


def _log_norm(p: Floats) -> float:
    """ln of the multivariate beta function, prod G(p_k) / G(sum p_k)."""
    from scipy.special import gammaln

    return float(gammaln(p).sum() - gammaln(p.sum()))


def _two_classes(epsilon: float, p: Floats, q: Floats) -> float:
    """Sums over the intervals on which the loss exceeds epsilon, in log odds t = ln(theta_1 / theta_2).

    The loss, -(p_1 - q_1) ln(1 + e^-t) - (p_2 - q_2) ln(1 + e^t) + const, turns at most once.
    """
    from scipy.optimize import brentq

    rise, fall = p - q
    constant = _log_norm(q) - _log_norm(p) - epsilon

    def excess(t: float) -> float:
        return float(constant - rise * np.logaddexp(0, -t) - fall * np.logaddexp(0, t))

    turns = [math.log(rise / fall)] if rise * fall > 0 else []
    ends = [-_REACH, *turns, _REACH]
    roots = [
        brentq(excess, low, high, xtol=1e-14, rtol=1e-15)
        for low, high in pairwise(ends)
        if excess(low) * excess(high) < 0
    ]
    edges = [-_REACH, *roots, _REACH]
    total = 0.0
    for low, high in pairwise(edges):
        inside = [t for t in turns if low < t < high]
        if excess(inside[0] if inside else (low + high) / 2) > 0:
            first, second = (beta_tail(np.array([low, high]), *np.full((2, 2), law).T) for law in (p, q))
            factor = math.exp(min(epsilon, _LARGE))
            total += float(first[0] - first[1] - factor * (second[0] - second[1]))
    return min(max(total, 0.0), 1.0)
