"""A regression from one noisy release of X'X, X'y and y'y of private rows, and from public rows like them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aggregator.learners.shrinkage import shrink
from federation.mechanisms.sums.row_sums import RowStatistic
from federation.numerics.rows import Floats, whitening

PUBLIC_ENOUGH = 0.8  # a share of the public second moment from which on that of private rows is not worth its noise

_LEAST = 0.02  # of the median eigenvalue of public rows: noise may leave nothing, or less
_DEVIATIONS = 2.0  # of the noise in y'y, added to it


@dataclass(frozen=True, eq=False)
class PublicMoment:
    """What public rows (N, d) of norm 1 at most, N >= 2, tell of sums over n private ones."""

    rows: Floats

    def gram(self, rows: float) -> Floats:
        """X'X (d, d) of so many rows like these."""
        whole: Floats = self._mean * rows
        return whole

    def variance(self, rows: float) -> float:
        """Of an entry of `gram`, on average over entries: the public rows are a sample."""
        square = np.square(self.rows)
        spread = (square.T @ square) / len(self.rows) - self._mean**2
        return rows**2 * max(float(spread.mean()), 0.0) / len(self.rows)

    @cached_property
    def constant(self) -> Floats:
        """Weights (d,) by which rows come nearest to the answer 1."""
        whiten, _ = whitening(self._mean)
        found: Floats = whiten @ (whiten.T @ self.rows.mean(axis=0))
        return found

    @cached_property
    def _mean(self) -> Floats:
        whole: Floats = self.rows.T @ self.rows
        return whole / len(self.rows)


def public_share(statistic: RowStatistic, public: PublicMoment, rows: float, variance: float) -> float:
    """The share w of the public rows' second moment in the best mixture with a noisy private one, in [0, 1].

    `variance` is that of the noise in each number of the statistic, over all `rows`.
    """
    private = statistic.gram_variance(variance)
    if variance == 0:
        return 0.0
    known = public.variance(rows)
    return 1.0 if known == 0 else 1 / (1 + known / private)


def estimate(
    statistic: RowStatistic, public: PublicMoment, sums: Floats, rows: float, variance: float, shrunk: bool = True
) -> Floats:
    """Weights (d,) for labels from -1 to 1, from noisy `sums` (D,) over so many private rows.

    X'X is mixed with that of public rows by their variances, and its eigenvalues are kept away from 0. With it come the
    posterior means of `aggregator.learners.shrinkage.shrink`, whose range is as wide as y'y leaves it: neither the mean
    label nor what rows explain of labels is larger than their mean square. Unless `shrunk` it is least squares.

    Examples:
        >>> random = np.random.default_rng(0)
        >>> rows = random.uniform(-0.5, 0.5, size=(1000, 3))
        >>> statistic, labels = RowStatistic(3), rows @ [0.9, 0.0, -0.6]
        >>> noise = statistic.noise(epsilon=3.0, delta=1e-6, rows=1000)
        >>> noisy = statistic.of(rows, labels) + noise.variance() ** 0.5 * random.normal(size=statistic.dimension)
        >>> estimate(statistic, PublicMoment(rows[:50]), noisy, 1000, noise.variance()).round(1)
        array([ 0.9,  0.1, -0.5])
    """
    found = statistic.moments(sums)
    share = public_share(statistic, public, rows, variance)
    known = public.gram(rows)
    mixed = known if found.gram is None else share * known + (1 - share) * found.gram
    if share > 0:
        values, vectors = np.linalg.eigh(mixed)
        least = _LEAST * float(np.median(np.linalg.eigvalsh(known)))
        mixed = (vectors * np.maximum(values, least)) @ vectors.T
    if not shrunk or variance == 0:
        whiten, _ = whitening(mixed)
        weights: Floats = whiten @ (whiten.T @ found.moment)
        return weights
    noise = statistic.moment_variance(variance) * np.eye(statistic.features)
    far = _far(float(found.squares), rows, statistic.squares_variance(variance))
    return shrink(mixed, found.moment, noise, ones=mixed @ public.constant, rows=rows, label_range=(-far, far)).weights


def _far(squares: float, rows: float, variance: float) -> float:
    """The root mean square of labels in [-1, 1], so large that the noise in the sum of squares hardly hides more."""
    return math.sqrt(min((max(squares, 0.0) + _DEVIATIONS * math.sqrt(variance)) / rows, 1.0))
