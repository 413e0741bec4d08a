"""Rows taken a fixed number at a time, so that what is computed from them needs no memory of their number."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from federation.contract.errors import InputError
from federation.numerics.memory import keep_freed_memory

ROWS = 256  # of 512 features: 1 MiB, which stays in a core's own cache


def tiles(rows: np.ndarray, what: str, columns: int | None = None) -> Iterator[np.ndarray]:
    """The rows (n, d) in order as C-contiguous float64 tiles (at most 256, d); a memory map is read tile by tile.

    Raises `InputError` (naming them as `what`) unless they are finite numbers on two axes, at least one row and one
    column, and, when `columns` is given, so many columns.
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
        if not np.isfinite(tile).all():
            row, column = np.argwhere(~np.isfinite(tile))[0]
            raise InputError(
                f"{what} must be finite: row {start + row}, column {column} (counted from 0) is {tile[row, column]}; "
                "remove or replace such values"
            )
        yield tile
