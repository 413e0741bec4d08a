"""Products of many rows with one matrix: each row's the same bits, wherever it stands and whatever comes with it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from federation.contract.randomness import generator
from federation.numerics.rows import Floats

_TILE = 8  # rows in one product, which the innermost loop of a matrix product takes together


def row_products(rows: Floats, factor: Floats) -> Floats:
    """`rows` (n, d) @ `factor` (d, D), float64.

    How a product rounds depends on its shape, so every product here has the same: 8 rows, filled up with zeros. That
    it does not depend on the place of a row either is checked once for every shape of the factor; where it does, rows
    are multiplied one by one, which takes about twice as long.

    Examples:
        >>> row_products(np.array([[1.0, 2.0], [0.5, 0.0]]), np.array([[1.0], [10.0]]))
        array([[21. ],
               [ 0.5]])
    """
    count = len(rows)
    if not _same_everywhere(*factor.shape, factor.flags.f_contiguous):
        return np.asarray(np.matmul(rows[:, None, :], factor)[:, 0, :])
    out, whole = np.empty((count, factor.shape[1])), count - count % _TILE
    tiles, filled = (array[:whole].reshape(whole // _TILE, _TILE, array.shape[1]) for array in (rows, out))
    np.matmul(tiles, factor, out=filled)  # tile by tile
    if whole < count:
        last = np.zeros((_TILE, rows.shape[1]))
        last[: count - whole] = rows[whole:]
        out[whole:] = np.matmul(last, factor)[: count - whole]
    return out


@lru_cache(maxsize=256)
def _same_everywhere(width: int, columns: int, by_column: bool) -> bool:
    """Whether a row's product with such a factor has the same bits at each of the 8 places, among whatever rows."""
    random = generator(0, "row products")
    factor = random.standard_normal((width, columns))
    factor = np.asarray(factor, order="F" if by_column else "C")
    rows = random.standard_normal((_TILE, width))
    expected = np.matmul(rows, factor)
    turned = all(
        np.array_equal(np.matmul(np.roll(rows, turn, axis=0), factor), np.roll(expected, turn, axis=0))
        for turn in range(1, _TILE)
    )
    alone = np.zeros_like(rows)
    alone[0] = rows[0]
    return turned and np.array_equal(np.matmul(alone, factor)[0], expected[0])
