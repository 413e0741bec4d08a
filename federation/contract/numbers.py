"""Single numbers that somebody gives: whether they are numbers at all, and how a refusal tells them."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np

from federation.contract.errors import InputError

_DIGITS = range(6, 18)  # significant ones; 17 tell any two doubles apart


def required(name: str, value: Any, rule: str, holds: Callable[[Any], bool]) -> float:
    """The value. Raises `InputError` ("NAME must RULE, got VALUE") unless it is a finite real number that `holds`.

    Booleans, texts, None, arrays and integers beyond the doubles are no such numbers.

    Examples:
        >>> required("share", 0.5, "lie in (0, 1)", lambda share: 0 < share < 1)
        0.5
        >>> required("share", "0.5", "lie in (0, 1)", lambda share: 0 < share < 1)
        Traceback (most recent call last):
        federation.contract.errors.InputError: share must lie in (0, 1), got '0.5'
    """
    if not (is_number(value) and holds(value)):
        raise InputError(f"{name} must {rule}, got {shown(value)}")
    number: float = value
    return number


def is_number(value: object) -> bool:
    """Whether it is a real number that doubles can hold, and neither NaN nor infinite nor a boolean."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number, or a fraction, beyond them
        return False


def shown(value: object, width: int = 60, digits: int = 30) -> str:
    """In at most about `width` characters, as Python writes it; a number of numpy's like one of Python's.

    Examples:
        >>> shown(10**5000), shown(np.float64(0.5)), shown("ab")
        ('a whole number of more than 30 digits', '0.5', "'ab'")
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, int) and abs(plain) >= 10**digits:
        return f"a whole number of more than {digits} digits"
    if isinstance(plain, Fraction):
        return f"{shown(plain.numerator)}/{shown(plain.denominator)}"
    return f"{plain!r:.{width}}"


def apart(*values: float) -> tuple[str, ...]:
    """The numbers as texts of 6 significant digits, or of as many more as tell those apart that differ.

    Examples:
        >>> apart(1.5, 1)
        ('1.5', '1')
        >>> apart(1.0000000003, 1)
        ('1.0000000003', '1')
    """
    for digits in _DIGITS:
        texts = tuple(f"{value:.{digits}g}" for value in values)
        if len(set(texts)) == len(set(values)):
            break
    return texts
