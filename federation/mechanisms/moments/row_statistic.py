"""What a linear regression needs of private rows: the sum over rows x with labels y of (x x', sqrt(2) y x, 2 y^2).

Rows have norm 1 at most and labels lie in [-1, 1]. Distances are Euclidean, those of x x' in the Frobenius norm. With
r = x'z, a row (x, y) that is replaced by (z, u) moves the sum by

    |x x' - z z'|^2 + 2 |y x - u z|^2 + 4 (y^2 - u^2)^2
        = |x|^4 + |z|^4 - 2 r^2 - 4 r y u + 2 |x|^2 y^2 + 2 |z|^2 u^2 + 4 (y^2 - u^2)^2
       <= 2 + 2 p + 2 q + 2 p q + 4 (p - q)^2,    p = y^2, q = u^2,

as -2 r^2 - 4 r y u is 2 p q at most, at r = -y u. The bound is convex in p and in q, so that it is largest where both
are 0 or 1: it is 8 where one of them is 1, and is attained by opposite labels of one unit row. The sum of y x alone has
the squared sensitivity 4 = 8/2, so it gets the noise here that it needs by itself: the sums of x x' and y^2 come for
nothing. Another weight c of y x would give it more: without y^2 the squared sensitivity is 2 + 2 c^2 + c^4/2 for
c^2 <= 2 and 4 c^2 above, and in units of y x, over c^2, that is least at c^2 = 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from federation.mechanisms.moments.calibrated_moments import SumNoise, calibrate_gaussian
from federation.numerics.arrays import Floats

SENSITIVITY = math.sqrt(8)  # to one replaced row

_OF_MOMENT, _OF_SQUARES = math.sqrt(2), 2.0  # weights beside x x'


@dataclass(frozen=True)
class RowMoments:
    """X'X (..., d, d), None where it is not part of the statistic, X'y (..., d) and y'y (...), noisy or not."""

    gram: Floats | None
    moment: Floats
    squares: Floats


@dataclass(frozen=True)
class RowStatistic:
    """The sum of (x x', sqrt(2) y x, 2 y^2) over rows of d = `features`; without `second` of the last two.

    As one vector: the upper triangle of X'X row by row, entries off its diagonal times sqrt(2), then sqrt(2) X'y, then
    2 y'y. Vectors are as far from each other as what they stand for. One replaced row moves them by `SENSITIVITY`.

    Examples:
        >>> statistic = RowStatistic(features=2)
        >>> total = statistic.of(np.array([[0.6, 0.8], [0.0, 1.0]]), np.array([1.0, -0.5]))
        >>> total.round(3)
        array([0.36 , 0.679, 1.64 , 0.849, 0.424, 2.5  ])
        >>> found = statistic.moments(total)
        >>> found.gram, found.moment, float(found.squares)
        (array([[0.36, 0.48], [0.48, 1.64]]), array([0.6, 0.3]), 1.25)
    """

    features: int
    second: bool = True

    @property
    def dimension(self) -> int:
        """Numbers of the vector: d + 1, and d(d + 1)/2 for X'X."""
        return (self.features * (self.features + 1) // 2 if self.second else 0) + self.features + 1

    @property
    def longest(self) -> float:
        """The norm that one row's part has at most."""
        return math.sqrt(self.second + _OF_MOMENT**2 + _OF_SQUARES**2)

    def of(self, rows: Floats, labels: Floats) -> Floats:
        """The vector (D,) of rows (n, d) of norm 1 at most with labels (n,) in [-1, 1]."""
        sums: list[Floats] = [_OF_MOMENT * (labels @ rows), np.atleast_1d(_OF_SQUARES * (labels @ labels))]
        if self.second:
            above, scale = self._triangle
            sums.insert(0, (rows.T @ rows)[above] * scale)
        return np.concatenate(sums)

    def moments(self, sums: Floats) -> RowMoments:
        """What vectors (..., D) stand for."""
        moment, squares = sums[..., -self.features - 1 : -1] / _OF_MOMENT, sums[..., -1] / _OF_SQUARES
        if not self.second:
            return RowMoments(None, moment, squares)
        above, scale = self._triangle
        gram = np.empty((*sums.shape[:-1], self.features, self.features))
        gram[..., above[0], above[1]] = gram[..., above[1], above[0]] = sums[..., : len(scale)] / scale
        return RowMoments(gram, moment, squares)

    def gram_variance(self, variance: float) -> float:
        """Of noise of this variance in each number of the vector: in an entry of X'X, on average over entries."""
        return variance * (self.features + 1) / (2 * self.features) if self.second else math.inf

    def moment_variance(self, variance: float) -> float:
        """The same in each entry of X'y."""
        return variance / _OF_MOMENT**2

    def squares_variance(self, variance: float) -> float:
        """The same in y'y."""
        return variance / _OF_SQUARES**2

    def noise(self, *, epsilon: float, delta: float, rows: int, contributors: int = 0) -> SumNoise:
        """The least Gaussian noise that hides any of at most `rows` rows of a party.

        Arguments and errors are those of `federation.mechanisms.moments.calibrated_moments.calibrate`.

        Examples:
            >>> RowStatistic(features=2).noise(epsilon=1.0, delta=1e-6, rows=100).noise_norm()
            29.3
        """
        return calibrate_gaussian(
            longest=self.longest,
            moved=SENSITIVITY,
            dimension=self.dimension,
            epsilon=epsilon,
            delta=delta,
            rows=rows,
            contributors=contributors,
        )

    @property
    def _triangle(self) -> tuple[tuple[np.ndarray, np.ndarray], Floats]:
        """Where the upper triangle lies, and by what its entries are multiplied."""
        above = np.triu_indices(self.features)
        return above, np.where(above[0] == above[1], 1.0, math.sqrt(2))
