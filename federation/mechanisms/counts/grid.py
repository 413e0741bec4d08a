"""Noise scales on a dyadic grid, so that doubles, JSON and the exact samplers all mean the same rational number."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from federation.contract.errors import InputError
from federation.mechanisms.noise.scales import first_between

_RELATIVE_BITS = 20  # the grid's step is between 2^-20 and 2^-19 of the scale
_MAX_BITS = 40  # of a numerator or denominator: the samplers' limit


def smallest_scale(enough: Callable[[Fraction], bool], near: float) -> Fraction:
    """The smallest scale n / 2^k with `enough(scale)`, searched from `near` > 0.

    The step 2^-k is at most 2^-19 of `near`, within 2^-40 and 1. `enough` is false below some scale and true above;
    where it is not, the result is still enough and the next smaller one is not. Raises `InputError` when `near`
    exceeds 2^39.

    Examples:
        >>> float(smallest_scale(lambda scale: scale**2 >= 2, near=1.5))
        1.414
    """
    if not near < 2.0 ** (_MAX_BITS - 1):
        raise InputError(f"the noise would need a scale of {near:g} counts, allowed is 2^39; choose a larger epsilon")
    exponent = _RELATIVE_BITS - math.frexp(near)[1] if near > 0 else _MAX_BITS
    denominator = 2 ** min(max(exponent, 0), _MAX_BITS)

    def reached(numerator: int) -> bool:
        return numerator > 0 and enough(Fraction(numerator, denominator))

    low = high = max(1, round(near * denominator))
    step = 1
    if reached(high):
        while reached(low := max(high - step, 0)):
            high, step = low, 2 * step
    else:
        while not reached(high := low + step):
            low, step = high, 2 * step
    return Fraction(first_between(reached, low, high), denominator)
