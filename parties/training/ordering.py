"""How well scores order rows of two classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Copies = NDArray[np.int64]


def auc(lower: NDArray[np.float64], upper: NDArray[np.float64], copies: tuple[Copies, Copies] | None = None) -> float:
    """Probability that a score of `upper` (n,) is above one of `lower` (m,), ties counting half (Mann, Whitney 1947).

    Neither may be empty, nor hold NaN. `copies` (m,) and (n,) say how often each score is there, by default once.

    Examples:
        >>> auc(np.array([0.1, 0.4]), np.array([0.4, 0.9]))
        0.875
        >>> auc(np.array([0.1, 0.4]), np.array([0.4, 0.9]), (np.array([1, 1]), np.array([1, 3])))
        0.9375
    """
    # Both sides sorted, and the smaller one looked up in the larger: that keeps the search in the cache.
    sides = [_sorted(*side) for side in zip((lower, upper), copies or (None, None), strict=True)]
    (few, often, counts), (many, _, before) = sorted(sides, key=lambda side: int(side[2][-1]))
    below = (often * (before[np.searchsorted(many, few, "left")] + before[np.searchsorted(many, few, "right")])).sum()
    share = float(below) / (2 * int(counts[-1]) * int(before[-1]))
    return 1 - share if few is sides[0][0] else share


def _sorted(
    scores: NDArray[np.float64], copies: Copies | None
) -> tuple[NDArray[np.float64], Copies | int, NDArray[np.int64]]:
    """Scores (n,) in order, how often each is there, and how many stand before each and at the end, (n + 1,)."""
    if copies is None:
        return np.sort(scores), 1, np.arange(len(scores) + 1)
    order = np.argsort(scores)
    return scores[order], copies[order], np.concatenate([[0], np.cumsum(copies[order])])
