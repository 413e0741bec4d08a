"""How well scores order rows of two classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def auc(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> float:
    """Probability that a score of `upper` (n,) is above one of `lower` (m,), ties counting half (Mann, Whitney 1947).

    Neither may be empty, nor hold NaN.

    Examples:
        >>> auc(np.array([0.1, 0.4]), np.array([0.4, 0.9]))
        0.875
    """
    # Both sides sorted, and the smaller one looked up in the larger: that keeps the search in the cache.
    sides = np.sort(lower), np.sort(upper)
    few, many = sorted(sides, key=len)
    below = np.searchsorted(many, few, "left").sum() + np.searchsorted(many, few, "right").sum()
    share = float(below) / (2 * len(few) * len(many))
    return 1 - share if few is sides[0] else share
