"""What rows, bags and sums must be before a regression learns from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from federation.contract.errors import InputError

_TILE = 8192


def checked_rows(rows: np.ndarray, columns: int | None = None) -> np.ndarray:
    """The rows (n, d) as they came, perhaps mapped from a file.

    Raises `InputError` unless they are finite numbers on two axes, none of them empty, with so many `columns` if given.
    """
    rows = rows if isinstance(rows, np.ndarray) else np.asarray(rows)
    if rows.ndim != 2 or 0 in rows.shape or rows.dtype.kind not in "fiub":
        raise InputError(f"rows must be numbers of shape (rows, columns), got shape {rows.shape} of {rows.dtype}")
    if columns is not None and rows.shape[1] != columns:
        raise InputError(f"rows must have {columns} columns, as those of the bags had; got {rows.shape[1]}")
    for start in range(0, len(rows), _TILE):
        finite = np.isfinite(rows[start : start + _TILE]).all(axis=1)
        if not finite.all():
            row = start + int(np.argmin(finite))
            raise InputError(f"rows must be finite, row {row} (counted from 0) is not; remove or replace such values")
    return rows


def checked_bags(
    bags: np.ndarray, weights: np.ndarray, sums: np.ndarray, rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row numbers (m, k), weights (m, k) and sums (m,), the last two as float64.

    Raises `InputError` unless shapes agree, m, k >= 1, row numbers lie in 0..rows-1, and all are finite.
    """
    bags, weights = np.asarray(bags), _numbers("weights", weights)
    if bags.ndim != 2 or 0 in bags.shape or bags.dtype.kind not in "iu":
        raise InputError(f"bags must be row numbers of shape (bags, rows), got shape {bags.shape} of {bags.dtype}")
    if bags.min() < 0 or bags.max() >= rows:
        raise InputError(f"bags must hold row numbers from 0 to {rows - 1}, got {bags.min()} to {bags.max()}")
    if weights.shape != bags.shape:
        raise InputError(f"weights must have the bags' shape {bags.shape}, got {weights.shape}")
    sums = _numbers("sums", sums)
    if sums.shape != (len(bags),):
        raise InputError(f"sums must be one number for each of {len(bags)} bags, got shape {sums.shape}")
    return bags, weights, sums


def checked_labels(labels: np.ndarray, rows: int) -> np.ndarray:
    """Labels (n,) as float64. Raises `InputError` unless there is one finite number per row."""
    labels = _numbers("labels", labels)
    if labels.shape != (rows,):
        raise InputError(f"labels must be one number for each of {rows} rows, got shape {labels.shape}")
    return labels


def checked_range(label_range: Sequence[float]) -> tuple[float, float]:
    """Lowest and highest label. Raises `InputError` unless they are finite and in that order."""
    found = _numbers("label_range", label_range)
    if found.shape != (2,) or not found[0] < found[1]:
        raise InputError(f"label_range must be the lowest and the highest label, as declared; got {label_range!r}")
    return float(found[0]), float(found[1])


def _numbers(name: str, values: np.ndarray | Sequence[float]) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array of numbers: {error}") from error
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite; remove or replace NaN and infinite values")
    return array
