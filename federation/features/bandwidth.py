"""Bandwidths of Gaussian kernels from public rows: gamma = 2^k / median |x - y|^2."""

from __future__ import annotations

import numpy as np

from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.numerics.tiles import tiles

_SAMPLE = 1000  # rows: half a million pairs, whose median is known to about a thousandth of the distribution


def median_squared_distance(rows: np.ndarray, seed: int = 0) -> float:
    """Median of |x - y|^2 over the pairs of different rows among at most 1,000 of the public rows (N, d), N >= 2.

    More rows are sampled with the public seed: equal rows and seeds give equal medians. Rows that are equal do not
    count as a pair, so the median is positive. Raises `InputError` unless two rows differ and all are finite numbers.
    """
    rows = np.asanyarray(rows)
    if rows.ndim == 2 and len(rows) > _SAMPLE:
        chosen = generator(seed, "bandwidth").choice(len(rows), _SAMPLE, replace=False)
        rows = rows[np.sort(chosen)]
    rows = np.concatenate(list(tiles(rows, "public rows")))
    largest = np.abs(rows).max()
    if largest > 0:
        rows = rows / largest  # squares of extreme numbers would overflow or vanish
    # imported here because scipy's distances load slowly
    from scipy.spatial.distance import pdist

    squares = pdist(rows, "sqeuclidean")
    squares = squares[squares > 0]
    with np.errstate(over="ignore"):
        median = float(np.median(squares) * largest**2) if len(squares) else 0.0
    if not np.finfo(float).tiny < median < np.inf:
        raise InputError(
            f"a bandwidth needs two different public rows at a distance that can be squared, got {len(rows)} rows with "
            f"median {median}; rescale them or raise data.auxiliary"
        )
    return median
