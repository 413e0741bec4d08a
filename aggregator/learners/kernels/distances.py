"""Rows taken a tile at a time, so that what is computed from them needs no memory of their number, and distances."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.numerics.rows import Floats, keep_freed_memory, require_finite

ROWS = 256  # of 512 features: 1 MiB, which stays in a core's own cache
_SAMPLE = 1000  # rows: half a million pairs, whose median is known to about a thousandth of the distribution


def tiles(rows: Floats, what: str, columns: int | None = None) -> Iterator[Floats]:
    """The rows (n, d) in order as C-contiguous float64 tiles (at most 256, d); a memory map is read tile by tile.

    Raises `InputError` (naming them as `what`) unless they are finite numbers on two axes, at least one row and one
    column, and, when `columns` is given, so many columns.

    Examples:
        >>> [tile.shape for tile in tiles(np.ones((600, 3)), "rows")]
        [(256, 3), (256, 3), (88, 3)]
    """
    keep_freed_memory()
    if not hasattr(rows, "shape"):
        rows = np.asarray(rows)
    if rows.ndim != 2 or 0 in rows.shape:
        raise InputError(f"{what} must have two axes (rows, columns), none of them empty; got shape {rows.shape}")
    if rows.dtype.kind not in "fiub":
        raise InputError(f"{what} must be numbers, got {rows.dtype}")
    if columns is not None and rows.shape[1] != columns:
        raise InputError(f"{what} must have {columns} columns, as those before have; got {rows.shape[1]}")
    for start in range(0, len(rows), ROWS):
        tile = np.ascontiguousarray(rows[start : start + ROWS], dtype=np.float64)
        require_finite(tile, what, start)
        yield tile


class NegativeSquares:
    """-scale |x - y|^2 of rows x in tiles to the rows y (N, d) of a fixed set, by one matrix product a tile.

    Expanded about the mean of the set: the error is about 1e-16 of the largest squared distance from that mean.

    Examples:
        >>> squares = NegativeSquares(np.array([[0.0, 0.0], [3.0, 4.0]]), scale=2.0)
        >>> squares.between(squares.left(np.array([[3.0, 0.0]])))
        array([[-18., -32.]])
    """

    def __init__(self, rows: Floats, scale: float) -> None:
        self._centre = rows.mean(axis=0)
        self._scale = scale
        centred, squares = self._centred(rows)
        self._right = np.hstack([centred, np.ones((len(rows), 1)), squares[:, None]])

    def left(self, rows: Floats) -> Floats:
        """Rows (n, d) as (n, d + 2), made ready for `between`. Raises `InputError` where their squares overflow."""
        centred, squares = self._centred(rows)
        return self._scale * np.hstack([2 * centred, -squares[:, None], np.full((len(rows), 1), -1.0)])

    def between(self, left: Floats, start: int = 0, stop: int | None = None) -> Floats:
        """-scale |x - y|^2, at most 0, of ready rows x (n, d + 2) and the set's rows from start to stop."""
        found = left @ self._right[start:stop].T
        return np.minimum(found, 0.0, out=found)

    def _centred(self, rows: Floats) -> tuple[Floats, Floats]:
        with np.errstate(over="ignore", invalid="ignore"):
            centred = rows - self._centre
            squares = np.einsum("nd,nd->n", centred, centred)
            if not np.isfinite(squares * self._scale).all():
                raise InputError("rows must have finite squared distances; rescale them")
        return centred, squares


def some_rows(rows: Floats, most: int, seed: int, purpose: str) -> Floats:
    """At most `most` of public rows (N, d) in their order, drawn with a public seed where there are more.

    Raises `InputError` as `tiles`.
    """
    rows = np.asanyarray(rows)
    if rows.ndim == 2 and len(rows) > most:
        rows = rows[np.sort(generator(seed, purpose).choice(len(rows), most, replace=False))]
    return np.concatenate(list(tiles(rows, "public rows")))


def median_squared_distance(rows: Floats, seed: int = 0) -> float:
    """Median of |x - y|^2 over the pairs of different rows among at most 1,000 of the public rows (N, d), N >= 2.

    Bandwidths of Gaussian kernels are multiples of its inverse: gamma = 2^k / median |x - y|^2. More rows are sampled
    with the public seed: equal rows and seeds give equal medians. Rows that are equal do not count as a pair, so the
    median is positive. Raises `InputError` unless two rows differ and all are finite numbers.

    Examples:
        >>> median_squared_distance(np.array([[0.0], [1.0], [3.0]]))  # of 1, 4 and 9
        4.0
    """
    rows = some_rows(rows, _SAMPLE, seed, "bandwidth")
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
