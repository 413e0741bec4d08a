"""Refusals of public numbers that are out of range; each names the parameter, what is allowed and what came."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

import numpy as np

from federation.contract.errors import InputError, nearest_name
from federation.contract.guarantee import require_delta, require_epsilon


def require_positive(name: str, value: float) -> float:
    """The value. Raises `InputError` unless it is positive and finite."""
    if not 0 < value < math.inf:
        raise InputError(f"{name} must be a positive finite number, got {value}")
    return value


def require_whole(name: str, value: object, least: int, most: float = math.inf, every: str = "") -> None:
    """Raises `InputError` unless the value is an integer from `least` to `most`; `every` is put before the latter."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not least <= value <= most:
        allowed = f"of at least {least}" if most == math.inf else f"from {least} to {every}{most}"
        raise InputError(f"{name} must be an integer {allowed}, got {value!r}")


def require_epsilon_from_zero(epsilon: float) -> None:
    """Raises `InputError` unless epsilon is finite and at least 0."""
    if not 0 <= epsilon < math.inf:
        raise InputError(f"epsilon must be a finite number >= 0, got {epsilon}")


def require_delta_above_zero(delta: float) -> None:
    """Raises `InputError` unless 0 < delta < 1: for what no noise gives at delta 0."""
    if not 0 < delta < 1:
        raise InputError(f"delta must lie strictly between 0 and 1, got {delta}")


def require_wanted(
    noise: str, epsilon: float, delta: float, *, known: Sequence[str], with_delta: Container[str], pure: str
) -> None:
    """Raises `InputError` unless `noise` is known, epsilon positive and finite, and delta in [0, 1).

    Kinds of noise `with_delta` need one above 0; `pure` says what to choose in place of them.
    """
    require_known("noise", noise, known)
    require_epsilon(epsilon)
    require_delta(delta)
    if delta == 0 and noise in with_delta:
        raise InputError(f"delta must be above 0 for noise {noise}, got 0; choose {pure} for delta 0")


def require_known(name: str, value: str, known: Sequence[str]) -> None:
    """Raises `InputError` unless the value is one of the known ones, and names the nearest of them."""
    if value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}, got {value!r}{nearest_name(value, known)}")
