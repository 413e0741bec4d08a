"""Squared distances of tiles of rows to a fixed set, by one matrix product."""

from __future__ import annotations

import numpy as np

from federation.contract.errors import InputError


class NegativeSquares:
    """-scale |x - y|^2 to the rows y (N, d) of a fixed set.

    Expanded about the mean of the set: the error is about 1e-16 of the largest squared distance from that mean.
    """

    def __init__(self, rows: np.ndarray, scale: float) -> None:
        self._centre = rows.mean(axis=0)
        self._scale = scale
        centred, squares = self._centred(rows)
        self._right = np.hstack([centred, np.ones((len(rows), 1)), squares[:, None]])

    def left(self, rows: np.ndarray) -> np.ndarray:
        """Rows (n, d) as (n, d + 2), made ready for `between`. Raises `InputError` where their squares overflow."""
        centred, squares = self._centred(rows)
        return self._scale * np.hstack([2 * centred, -squares[:, None], np.full((len(rows), 1), -1.0)])

    def between(self, left: np.ndarray, start: int = 0, stop: int | None = None) -> np.ndarray:
        """-scale |x - y|^2, at most 0, of ready rows x (n, d + 2) and the set's rows from start to stop."""
        found = left @ self._right[start:stop].T
        return np.minimum(found, 0.0, out=found)

    def _centred(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(over="ignore", invalid="ignore"):
            centred = rows - self._centre
            squares = np.einsum("nd,nd->n", centred, centred)
            if not np.isfinite(squares * self._scale).all():
                raise InputError("rows must have finite squared distances; rescale them")
        return centred, squares
