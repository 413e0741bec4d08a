"""Means of hostile vectors: clipped to a public norm, summed exactly in any order, missing ones zero."""

from __future__ import annotations

import math

import numpy as np

from aggregator.answers.average_sensitivity import clipped_mean
from federation.features.steps import UnitNorm

_UNIT_ROUNDOFF = 2.0**-53
_FINEST = 52  # fractional bits; more would say nothing about a double
_LARGEST_SUM = 62  # bits of a sum's magnitude, within int64


class ClippedMean:
    """(1/M) times the sum of one vector of R^D per party, each of norm at most `norm`, over M declared parties.

    A vector that is longer is shortened to that norm, and with `normalised` every vector but zero takes it. A vector
    becomes integer multiples of a public step, truncated towards zero, which never lengthens it; integers make the
    sum the same whoever answers first. Memory: D integers, whatever M.
    """

    def __init__(self, dimension: int, norm: float, parties: int, *, normalised: bool = False) -> None:
        self.dimension, self.norm, self.parties = dimension, norm, parties
        self._normalised = normalised
        self._bits = min(_FINEST, _LARGEST_SUM - parties.bit_length())
        self._sum = np.zeros(dimension, dtype=np.int64)

    def add(self, vectors: np.ndarray) -> None:
        """Add the vectors (P, D), finite; each is scaled alone, whoever comes with it."""
        self._sum += np.trunc(self._in_unit_ball(vectors) * 2.0**self._bits).astype(np.int64).sum(axis=0)

    def _in_unit_ball(self, vectors: np.ndarray) -> np.ndarray:
        scaled = UnitNorm().apply(vectors)
        if not self._normalised:
            with np.errstate(over="ignore"):  # beyond the range of doubles is beyond the ball
                whole = vectors / self.norm
                inside = np.linalg.norm(whole, axis=1) <= 1
            scaled[inside] = whole[inside]
        return scaled

    def value(self) -> np.ndarray:
        """The mean (D,), in the vectors' own units."""
        return np.ldexp(self._sum.astype(np.float64), -self._bits) * (self.norm / self.parties)

    @property
    def rounding(self) -> float:
        """What double precision adds to the distance 2 norm/M of two means that differ in one vector.

        A vector scaled in double precision exceeds its norm by at most (D + 8) u of it. Turning the integer sum into
        the mean errs by at most 4 u of the mean's norm, twice.
        """
        longer = (self.dimension + 8) * _UNIT_ROUNDOFF * 2 / self.parties
        return self.norm * (longer + 8 * _UNIT_ROUNDOFF)

    @property
    def sensitivity(self) -> float:
        """How far the mean moves when one party sends another vector, any at all, or none; L2, with its rounding."""
        return math.nextafter(clipped_mean(self.norm, self.parties) + self.rounding, math.inf)
