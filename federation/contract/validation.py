"""Checks of single values: numbers from users, and JSON values against the type hints of a class."""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from numbers import Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

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


_WIDTH = 100  # characters of a received value in a message


def typed(hint: Any, value: Any, name: str) -> Any:
    """A plain value as its type hint has it: a whole number where a float is wanted is one, a list may be a tuple.

    Raises `TypeError` for a value of another type or choice, and for numbers that are not finite.

    Examples:
        >>> typed(tuple[float, ...], [1, 2.5], "epsilons")
        (1.0, 2.5)
        >>> typed(int | None, "1", "draws")
        Traceback (most recent call last):
        TypeError: draws must be int | None, got '1'
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin is Literal:
        if any(type(value) is type(allowed) and value == allowed for allowed in arguments):
            return value
    elif origin in (Union, UnionType):
        for alternative in arguments:
            with suppress(TypeError):
                return typed(alternative, value, name)
    elif origin is tuple and isinstance(value, list | tuple):
        kinds = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
        if len(kinds) == len(value):
            return tuple(typed(kind, item, name) for kind, item in zip(kinds, value, strict=True))
    elif hint is float and type(value) in (int, float):
        with suppress(OverflowError):
            if math.isfinite(number := float(value)):
                return number
        raise TypeError(f"{name} must be a finite number, got {quoted_value(value)}")
    elif origin in (dict, Mapping) and isinstance(value, dict):
        key, kind = arguments
        return {typed(key, one, name): typed(kind, held, f"{name}.{one}") for one, held in value.items()}
    elif hint in (bool, int, str, NoneType) and type(value) is hint:
        return value
    wanted = hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")
    raise TypeError(f"{name} must be {wanted}, got {quoted_value(value)}")


def quoted_value(value: Any) -> str:
    """A received value for a message, at most 100 characters, however many digits it has.

    Examples:
        >>> quoted_value(10**5000), quoted_value("ab")
        ('a whole number of more than 100 digits', "'ab'")
    """
    return shown(value, _WIDTH, _WIDTH)
