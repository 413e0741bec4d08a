"""Plain values, as JSON gives them, against the type hints of the class that is to be made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from federation.contract import numbers

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
        raise TypeError(f"{name} must be a finite number, got {shown(value)}")
    elif origin in (dict, Mapping) and isinstance(value, dict):
        key, kind = arguments
        return {typed(key, one, name): typed(kind, held, f"{name}.{one}") for one, held in value.items()}
    elif hint in (bool, int, str, NoneType) and type(value) is hint:
        return value
    wanted = hint.__name__ if isinstance(hint, type) else str(hint).removeprefix("typing.")
    raise TypeError(f"{name} must be {wanted}, got {shown(value)}")


def shown(value: Any) -> str:
    """A received value for a message, at most 100 characters, however many digits it has.

    Examples:
        >>> shown(10**5000), shown("ab")
        ('a whole number of more than 100 digits', "'ab'")
    """
    return numbers.shown(value, _WIDTH, _WIDTH)
