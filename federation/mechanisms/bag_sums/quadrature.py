"""Integrals over the real line of positive functions that fall to zero on both sides, given by their logarithm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from federation.contract.errors import FederationError

_NEGLIGIBLE = 50.0  # nats below the largest value: what lies beyond adds less than e^-45 of the integral
_FIRST, _LAST = 64, 2**15  # intervals of the trapezoidal rule
_TOLERANCE = 1e-9


def scan(low: float, high: float) -> np.ndarray:
    """Points at which to look for where an integrand matters: closer than the narrowest peaks of those used here."""
    return np.linspace(low, high, 2 + int((high - low) / 0.04))


def window(points: np.ndarray, logs: np.ndarray) -> tuple[float, float]:
    """The part of `points` within which `logs` matter, with one more point at each end."""
    kept = np.flatnonzero(logs >= logs.max() - _NEGLIGIBLE)
    return float(points[max(kept[0] - 1, 0)]), float(points[min(kept[-1] + 1, len(points) - 1)])


def integral(log_integrand: Callable[[np.ndarray], np.ndarray], low: float, high: float) -> float:
    """The integral of exp(log_integrand) from `low` to `high`, at whose ends it must be negligible.

    The trapezoidal rule with its step halved until nothing changes: for analytic functions the error falls
    exponentially in 1/step (Trefethen, Weideman 2014).
    """
    step = (high - low) / _FIRST
    values = np.exp(log_integrand(np.linspace(low, high, _FIRST + 1)))
    total = float(values.sum() - (values[0] + values[-1]) / 2)
    intervals = _FIRST
    while intervals < _LAST:
        middles = low + step * (np.arange(intervals) + 0.5)
        added = float(np.exp(log_integrand(middles)).sum())
        change = abs(added - total)
        total, intervals, step = total + added, 2 * intervals, step / 2
        if change <= _TOLERANCE * total:
            return total * step
    raise FederationError(
        f"an integral from {low:g} to {high:g} did not settle at {_LAST} points; report these numbers"
    )
