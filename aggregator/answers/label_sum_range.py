"""What honest sums X'y with a party's own noise reach, in the shape of its rows and of its noise; longer are scaled."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aggregator.answers.honest_range import BEYOND, ROUNDING
from federation.mechanisms.noise.reach import additive_reaches
from federation.numerics.rows import Booleans, Floats
from federation.queries.labels import LabelSumsQuestion

_RIDGE = 1e-9  # of the square of an entry: directions that rows and noise lack have some, or nothing could be in them
_SPLITS = np.geomspace(1e-3, 1e3, 61)  # between what rows and what noise reach

Arrays = Mapping[str, Floats]


class LabelSumRange:
    """Of sums over public rows X (n, d) with labels in the question's range, and noise of the covariance that is sent.

    X'(y - middle) is from an ellipsoid of shape X'X, as |y - middle|² <= n half², and the noise but for its probability
    from one of the shape of its covariance. A sum of two is in every ellipsoid of shape (1 + 1/t) A + (1 + t) B, t > 0.
    Columns are bounded each by itself, too: by Cauchy and Schwarz, and by the law of one entry of the noise.
    """

    def __init__(self, question: LabelSumsQuestion) -> None:
        low, high = question.rows.label_range
        self._middle, self._half = low + (high - low) / 2, (high - low) / 2
        self._question = question
        self._known: dict[int, tuple[float, float]] = {}

    def _reaches(self, rank: int) -> tuple[float, float]:
        """Of an entry and of the norm of noise of this rank, in standard deviations."""
        if rank not in self._known:
            noise = self._question.mechanism(np.eye(rank))
            entry, norm = additive_reaches(noise.additive, BEYOND)
            self._known[rank] = entry / noise.variance() ** 0.5, norm / noise.variance() ** 0.5
        return self._known[rank]

    def bounded(self, arrays: Arrays) -> tuple[Floats, Booleans]:
        """The sums X'y (P, draws, d) within the range, and whose were not, (P,)."""
        moments, changed = arrays["moment"].copy(), np.zeros(len(arrays["moment"]), dtype=bool)
        for party in range(len(moments)):
            known = (arrays[name][party] for name in ("gram", "covariance", "size"))
            surplus = moments[party] - self._middle * arrays["row_sum"][party]
            kept = self._kept(surplus, *known)
            own = (kept != surplus).any(axis=1)
            moments[party, own] = (kept + self._middle * arrays["row_sum"][party])[own]
            changed[party] = own.any()
        return moments, changed

    def _kept(self, surplus: Floats, gram: Floats, covariance: Floats, size: Floats) -> Floats:
        """X'(y - middle) and noise (draws, d), no longer than that of honest parties."""
        entry, norm = self._reaches(int(np.linalg.matrix_rank(covariance, hermitian=True)) or 1)
        exact = self._half * np.sqrt(size)
        own = exact * np.sqrt(np.diagonal(gram).clip(0.0)) + entry * np.sqrt(np.diagonal(covariance).clip(0.0))
        reach = own * (1 + ROUNDING) + ROUNDING * own.max()
        cut: Floats = np.clip(surplus, -reach, reach)
        gauges = _gauges(cut, gram * exact**2, covariance * norm**2)
        return np.where(gauges[:, None] > 1 + ROUNDING, cut / np.maximum(gauges, 1.0)[:, None], cut)


def _gauges(vectors: Floats, *shapes: Floats) -> Floats:
    """How far vectors (draws, d) are out in the sum of two ellipsoids of these shapes (d, d): 1 is at its border.

    Of all ellipsoids around the sum the nearest on a grid, so that nothing in the sum is told to be out.
    """
    from scipy.linalg import eigh

    scale = np.sqrt(sum((np.diagonal(shape).clip(0.0) for shape in shapes), np.zeros(vectors.shape[1])))
    scale[scale == 0] = 1.0
    first, second = (shape / scale[:, None] / scale for shape in shapes)
    both = first + second
    # Whoever sends shapes may leave them indefinite by as much as rounding does.
    lengths, axes = eigh((both + both.T) / 2)
    axes = axes / np.sqrt(lengths.clip(0.0) + _RIDGE)
    inner = axes.T @ first @ axes
    values, turned = eigh((inner + inner.T) / 2)
    # In these coordinates the first shape is diag(values), and the second what is left to one.
    values = values.clip(0.0, 1.0)
    squares = np.square((vectors / scale) @ axes @ turned)
    split = _SPLITS[:, None]
    widths = (1 + 1 / split) * values + (1 + split) * (1 - values)
    return np.asarray(np.sqrt((squares @ (1 / widths.T)).max(axis=1)))
