"""What a linear regression needs of private rows: the sum over rows x with labels y of (x x', sqrt(2) y x).

Rows have norm 1 at most and labels lie in [-1, 1]. Distances are Euclidean, those of x x' in the Frobenius norm. With a
weight c in place of sqrt(2), and r = x'z, a row (x, y) that is replaced by (z, u) moves the sum by

    |x x' - z z'|^2 + c^2 |y x - u z|^2 = |x|^4 + |z|^4 - 2 r^2 + c^2 (|x|^2 y^2 + |z|^2 u^2 - 2 r y u)
                                       <= 2 + 2 c^2 - 2 r^2 + 2 c^2 |r|,

which over |r| <= 1 is largest at |r| = min(c^2/2, 1), and is attained there by rows of norm 1 with y = 1, u = -sign(r):
the squared sensitivity is 2 + 2 c^2 + c^4/2 for c^2 <= 2, and 4 c^2 above. At c^2 = 2 it is 8, and noise for it in the
sum of y x is that which the sum of y x needs alone (8/2 = 2^2): there the sum of x x' comes for nothing, and no other
weight spends as little on y x. Both together cost less than two releases that split the budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from federation.mechanisms.moments.calibrated_moments import SumNoise, calibrate_gaussian
from federation.numerics.arrays import Floats

WEIGHT = math.sqrt(2)  # of y x beside x x'


def sensitivity(weight: float) -> float:
    """How far one replaced row moves the sum of (x x', weight y x) at most, for weight > 0.

    Examples:
        >>> sensitivity(2**0.5)**2, sensitivity(1.0)**2, sensitivity(2.0)**2
        (8.0, 4.5, 16.0)
    """
    square = weight**2
    return math.sqrt(2 + 2 * square + square**2 / 2 if square <= 2 else 4 * square)


@dataclass(frozen=True)
class RowStatistic:
    """The sum of (x x', sqrt(2) y x) over rows of d = `features`, or without `second` that of y x alone.

    As one vector: the upper triangle of X'X row by row, entries off its diagonal times sqrt(2), and sqrt(2) X'y; or X'y
    alone. Vectors are as far from each other as what they stand for.

    Examples:
        >>> statistic = RowStatistic(features=2)
        >>> total = statistic.of(np.array([[0.6, 0.8], [0.0, 1.0]]), np.array([1.0, -0.5]))
        >>> total.round(3)
        array([0.36 , 0.679, 1.64 , 0.849, 0.424])
        >>> gram, moment = statistic.moments(total)
        >>> gram, moment
        (array([[0.36, 0.48], [0.48, 1.64]]), array([0.6, 0.3]))
    """

    features: int
    second: bool = True

    @property
    def dimension(self) -> int:
        """Numbers of the vector: d(d + 1)/2 + d, or d."""
        return self.features * (self.features + 1) // 2 + self.features if self.second else self.features

    @property
    def longest(self) -> float:
        """The norm that one row's part has at most."""
        return math.sqrt(1 + WEIGHT**2) if self.second else 1.0

    @property
    def moved(self) -> float:
        """How far one replaced row moves the sum at most: sqrt(8), or 2."""
        return sensitivity(WEIGHT) if self.second else 2.0

    def of(self, rows: Floats, labels: Floats) -> Floats:
        """The vector (D,) of rows (n, d) of norm 1 at most with labels (n,) in [-1, 1]."""
        moment: Floats = labels @ rows
        if not self.second:
            return moment
        above, scale = self._triangle
        return np.concatenate([(rows.T @ rows)[above] * scale, WEIGHT * moment])

    def moments(self, sums: Floats) -> tuple[Floats | None, Floats]:
        """X'X (..., d, d), None where it is not part, and X'y (..., d) of vectors (..., D), noisy or not."""
        if not self.second:
            return None, sums
        above, scale = self._triangle
        gram = np.empty((*sums.shape[:-1], self.features, self.features))
        gram[..., above[0], above[1]] = gram[..., above[1], above[0]] = sums[..., : len(scale)] / scale
        return gram, sums[..., len(scale) :] / WEIGHT

    def variances(self, variance: float) -> tuple[float, float]:
        """Of noise of this variance in each of the D numbers: the mean over entries of X'X, and in each of X'y."""
        mean = variance * (self.features + 1) / (2 * self.features)
        return (mean, variance / WEIGHT**2) if self.second else (math.inf, variance)

    def noise(self, *, epsilon: float, delta: float, rows: int, contributors: int = 0) -> SumNoise:
        """The least Gaussian noise that hides any of at most `rows` rows of a party.

        Arguments and errors are those of `federation.mechanisms.moments.calibrated_moments.calibrate`.

        Examples:
            >>> RowStatistic(features=2).noise(epsilon=1.0, delta=1e-6, rows=100).noise_norm()
            26.7
        """
        return calibrate_gaussian(
            longest=self.longest,
            moved=self.moved,
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
