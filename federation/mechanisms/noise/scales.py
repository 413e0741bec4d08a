"""Scales of exact noise: which ones the samplers take, and the search for the smallest that is enough."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction

from federation.contract.errors import InputError
from federation.contract.numbers import shown

MAX_SCALE = 2**40  # beyond, too many draws need interval arithmetic, and sums could leave the exact doubles


def require_scale(name: str, scale: int | Fraction) -> None:
    """Raises `InputError` for a scale at which the samplers would not be exact and fast."""
    parts = (scale.numerator, scale.denominator) if isinstance(scale, int | Fraction) and scale is not True else (0, 0)
    if not all(1 <= part <= MAX_SCALE for part in parts):
        raise InputError(
            f"{name} must be an integer from 1 to 2^40 grid units, or a Fraction of two such, got {shown(scale)}; "
            "choose another step"
        )


def first(enough: Callable[[int], bool], low: int) -> int:
    """The smallest integer above `low` that is enough, if all larger ones are: by doubling steps, then bisection.

    Examples:
        >>> first(lambda n: n * n > 1000, low=0)
        32
    """
    step = 1
    while not enough(low + step):
        low, step = low + step, 2 * step
    return first_between(enough, low, low + step)


def first_between(enough: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest integer above `low` that is enough, at most `high`, which is taken to be."""
    return bisect_left(range(high), True, low + 1, key=enough)
