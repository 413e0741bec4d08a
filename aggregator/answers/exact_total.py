"""A sum of arrays that is exact until it is read, hence the same bits in whatever order and groups they come."""

from __future__ import annotations

import math

import numpy as np

from federation.numerics.rows import Floats

_BITS = 24  # of a place: 2^(53 - 24) arrays can be added before a place would round
_TOGETHER = 1 << 16  # numbers that are taken apart at once: they stay in cache
_LOWEST = -40  # the last place; what lies below 2^-960 is left out


class ExactTotal:
    """The sum of arrays of one shape, held in a few arrays of whole numbers, whatever the number of arrays.

    Every number is taken apart at fixed places, multiples of 2^24b for whole b, so its parts do not depend on the
    others; whole numbers below 2^53 add without rounding (the bins of Demmel and Nguyen 2013, fixed beforehand). For
    numbers below 2^990 and at most 2^29 arrays.

    Examples:
        >>> total = ExactTotal((2,))
        >>> total.add(np.array([[1e20, 0.5], [1.0, 0.25]]))
        >>> total.add(np.array([[-1e20, 0.125]]))
        >>> total.value
        array([1.   , 0.875])
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._places: dict[int, Floats] = {}

    def add(self, arrays: Floats) -> None:
        """Add arrays (P, *shape), finite."""
        step = max(1, _TOGETHER // max(1, math.prod(self._shape)))
        for start in range(0, len(arrays), step):
            self._add(np.array(arrays[start : start + step], dtype=np.float64))

    def _add(self, rest: Floats) -> None:
        while (place := _place(float(np.abs(rest).max(initial=0.0)))) >= _LOWEST:
            unit = 2.0 ** (_BITS * place)
            whole = np.trunc(rest / unit)
            held = self._places.setdefault(place, np.zeros(self._shape))
            held += whole.sum(axis=0)
            whole *= unit
            rest -= whole

    @property
    def value(self) -> Floats:
        """The sum, rounded where the places are added, the smallest first."""
        found = np.zeros(self._shape)
        for place in sorted(self._places):
            found += self._places[place] * 2.0 ** (_BITS * place)
        return found


def _place(size: float) -> int:
    """The place of the leading bit of a number above 0, one below the last for 0."""
    return int(np.frexp(size)[1] - 1) // _BITS if size else _LOWEST - 1
