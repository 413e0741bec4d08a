"""A bounded part of many rows, for what needs no more: a bandwidth, landmarks, a covariance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_ROWS = 20_000
_BAGS = 1_000


def thinned(bags: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Evenly spaced rows of evenly spaced bags, in order: all of them up to 20,000 rows in 1,000 bags.

    Of more bags about 1,000 are kept, and then about every k-th row of each, so that those of at least two rows in
    the original have them here whenever the average bag has.
    """
    kept = bags[:: -(-len(bags) // _BAGS)]
    step = max(1, sum(map(len, kept)) // _ROWS)
    return [bag[::step] for bag in kept]
