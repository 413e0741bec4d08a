"""Refusals of public numbers that are out of range; each names the parameter, what is allowed and what came."""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np

from federation.contract.errors import InputError, nearest_name
from federation.contract.guarantee import require_delta, require_epsilon
from federation.contract.numbers import required, shown

MOST_WHOLE = 2**63 - 1  # of arrays and of the accountants
MOST_DRAWN = 2**40  # numbers in one array of noise


def require_positive(name: str, value: float) -> float:
    """The value. Raises `InputError` unless it is positive and finite."""
    return required(name, value, "be a positive finite number", lambda number: number > 0)


def require_whole(name: str, value: object, least: int, most: int = MOST_WHOLE, every: str = "") -> None:
    """Raises `InputError` unless the value is an integer from `least` to `most`; `every` is put before the latter."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (isinstance(value, int | np.integer) and whole and least <= value <= most):
        endless = most == MOST_WHOLE and not (whole and value > most)  # type: ignore[operator]
        allowed = f"of at least {least}" if endless else f"from {least} to {every}{most}"
        raise InputError(f"{name} must be an integer {allowed}, got {shown(value)}")


def require_epsilon_from_zero(epsilon: float) -> float:
    """As a double. Raises `InputError` unless epsilon is finite and at least 0."""
    return float(require_from_zero("epsilon", epsilon))


def require_draws(draws: object) -> None:
    """Raises `InputError` unless it is a number of independent releases, which may be 0."""
    require_whole("draws", draws, 0, MOST_DRAWN)


def require_from_zero(name: str, value: float) -> float:
    """The value. Raises `InputError` unless it is finite and at least 0."""
    return required(name, value, "be a finite number >= 0", lambda number: number >= 0)


def require_delta_above_zero(delta: float) -> None:
    """Raises `InputError` unless 0 < delta < 1: for what no noise gives at delta 0."""
    require_share("delta", delta)


def require_share(name: str, value: float) -> float:
    """The value. Raises `InputError` unless 0 < value < 1."""
    return required(name, value, "lie strictly between 0 and 1", lambda number: 0 < number < 1)


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
