"""Checks of the parameters that estimators have in common."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from federation.contract.errors import InputError


def require_number(name: str, value: Any, usual: float) -> None:
    """Raises `InputError` unless `value` is a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise InputError(f"{name} must be a positive and finite number, got {value!r}; {usual:g} is usual")


def require_integer(name: str, value: Any, least: int, usual: int, most: int | None = None) -> None:
    """Raises `InputError` unless `value` is an integer from `least`, and at most `most` if that is given."""
    small = isinstance(value, bool) or not isinstance(value, Integral) or value < least
    if small or (most is not None and value > most):
        allowed = f"from {least}" if most is None else f"from {least} to {most}"
        raise InputError(f"{name} must be an integer {allowed}, got {value!r}; {usual} is usual")


def require_flag(name: str, value: Any) -> None:
    """Raises `InputError` unless `value` is true or false."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {value!r}")
