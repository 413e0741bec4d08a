"""Randomised response of every label y = 1 or -1, added up: the sum of z x, where z = ±1/tanh(epsilon/2) has mean y.

Its error grows with the number of rows, and that of noise on the sum does not: few rows are better off with it. There
is no better unbiased randomiser of two labels: an output whose likelihood ratio r lies strictly between e^-epsilon and
e^epsilon is one of these two ratios at random, so that only they remain, and what is unbiased on two outputs is unique.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from federation.contract.guarantee import Adjacency, Assumption, Guarantee, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels import one_bit, response
from federation.mechanisms.labels.label_range import LabelRange
from federation.mechanisms.labels.one_bit import OneBitLabels
from federation.mechanisms.moments.calibrated_moments import SumNoise
from federation.numerics.arrays import Floats

LEAST_EPSILON = response.MIN_EPSILON
ANY = 2**62  # more rows than there are
_GRID_BITS = 26  # sums are whole multiples of a power of two, so that their total is the same in any order
_AT_ONCE = 2**22  # labels


@dataclass(frozen=True)
class SummedResponse:
    """What `labels` makes of single labels from -1 to 1, added up over rows of norm 1 at most."""

    labels: OneBitLabels

    @property
    def reach(self) -> float:
        """The size of every released label, 1/tanh(epsilon/2)."""
        return self.labels.reach

    @property
    def label_variance(self) -> float:
        """Of a released label: reach² - 1 = 1/sinh(epsilon/2)², to full precision."""
        beyond = self.labels.redraw / (response.WORDS - self.labels.redraw)
        return beyond * (2 + beyond)

    def rows_for(self, noise: SumNoise, weight: float = 1.0) -> int:
        """The least number of rows of norm 1 whose summed responses are no better than noise on their sum.

        By expected squared errors: `weight` rows w against d v, w the variance of a label and v that of the noise's
        coordinates. The weight > 0 is how much errors harm that go where the rows are, and not in all directions alike.

        Examples:
            >>> from federation.mechanisms.moments.calibrated_moments import calibrate as calibrate_sum
            >>> noise = calibrate_sum("auto", dimension=31, epsilon=1.0, delta=1e-6, rows=1000)
            >>> calibrate(1.0).rows_for(noise)
            602
        """
        return max(1, math.ceil(min(noise.noise_norm() ** 2 / (weight * self.label_variance), ANY)))

    def release(self, rows: Floats, signs: Floats, bits: NoiseBits, draws: int = 1) -> Floats:
        """Sums (draws, d) float64 over rows (n, d), n >= 1, with the labels `signs` (n,), each 1 or -1.

        Entries are whole multiples of a power of two. Raises `InputError` for other labels.
        """
        some = max(1, _AT_ONCE // len(rows))
        found = np.empty((draws, rows.shape[1]))
        for start in range(0, draws, some):
            several = found[start : start + some]
            released = self.labels.release(np.tile(signs, len(several)), bits)
            several[:] = released.reshape(len(several), len(rows)) @ rows
        return np.rint(found / self.step) * self.step

    @property
    def step(self) -> float:
        """Of the grid: released entries are whole multiples of this power of two."""
        return 2.0 ** (math.ceil(math.log2(self.reach)) - _GRID_BITS)

    def reaches(self, rows: Floats, dimension: int, beyond: float) -> tuple[Floats, Floats]:
        """Which entry, and which L2 norm, sums over `rows` (P,) rows of R^D exceed with probability beyond/2 each.

        An upper bound, for rows of norm 1 at most, in (P,) each. With r the reach and w the variance of a released
        label, a sum of n rows is never longer than n r. Its mean is not longer than n, its norm on average not than
        n + sqrt(n w), and one label moves that by 2 r (McDiarmid 1989): it is r sqrt(2 n ln(2/beyond)) above that
        with probability beyond/2, and an entry as much above n but for the number of entries (Hoeffding 1963).

        Examples:
            >>> [found.round(1) for found in calibrate(1.0).reaches(np.array([17.0, 1000.0]), 31, 1e-6)]
            [array([  36.8, 1417.8]), array([  36.8, 1429.3])]
        """
        root, most = np.sqrt(2 * rows), rows * self.reach
        entry = rows + self.reach * root * math.sqrt(math.log(4 * dimension / beyond))
        norm = rows + np.sqrt(rows * self.label_variance) + self.reach * root * math.sqrt(math.log(2 / beyond))
        return np.minimum(entry, most), np.minimum(norm, most)

    def guarantee(self, unit: Unit, adjacency: Adjacency, further: tuple[Assumption, ...]) -> Guarantee:
        """Of one label, whatever becomes of the released ones. Raises `InputError` for another unit."""
        return self.labels.guarantee(unit, adjacency, further)


def calibrate(epsilon: float) -> SummedResponse:
    """The least noise of this kind that makes every label epsilon-private.

    Raises `InputError` for epsilon below 1e-6.

    Examples:
        >>> noise = calibrate(1.0)
        >>> noise.reach, noise.label_variance
        (2.164, 3.683)
        >>> noise.release(np.eye(2), np.array([1.0, -1.0]), NoiseBits(1, "example"), draws=2).round(3)
        array([[ 2.164, -2.164],
               [ 2.164, -2.164]])
    """
    return SummedResponse(one_bit.calibrate(LabelRange(-1.0, 1.0), epsilon))
