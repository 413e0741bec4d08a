"""What rows, bags and sums must be before a regression learns from them, and on which scale rows are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aggregator.learners.inputs.validation import finite, shaped
from federation.contract.errors import InputError

_TILE = 8192  # rows looked at together
_SAMPLE = 1 << 14  # rows that a scale is taken from


def checked_rows(rows: np.ndarray, columns: int | None = None) -> np.ndarray:
    """The rows (n, d) as they came, perhaps mapped from a file.

    Raises `InputError` unless they are finite numbers on two axes, none of them empty, with so many `columns` if given.

    Examples:
        >>> checked_rows([[1, 2], [3, 4]], columns=2).shape
        (2, 2)
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
    bags = np.asarray(bags)
    if bags.ndim != 2 or 0 in bags.shape or bags.dtype.kind not in "iu":
        raise InputError(f"bags must be row numbers of shape (bags, rows), got shape {bags.shape} of {bags.dtype}")
    if bags.min() < 0 or bags.max() >= rows:
        raise InputError(f"bags must hold row numbers from 0 to {rows - 1}, got {bags.min()} to {bags.max()}")
    weights = shaped(weights, "weights", bags.shape, "one number for each row of a bag")
    return bags, weights, shaped(sums, "sums", (len(bags),), "one number for each bag")


def checked_range(label_range: Sequence[float]) -> tuple[float, float]:
    """Lowest and highest label. Raises `InputError` unless they are finite and in that order.

    Examples:
        >>> checked_range([0, 10])
        (0.0, 10.0)
    """
    found = finite(label_range, "label_range")
    if found.shape != (2,) or not found[0] < found[1]:
        raise InputError(f"label_range must be the lowest and the highest label, as declared; got {label_range!r}")
    return float(found[0]), float(found[1])


def column_scaling(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre (d,) and scale (d,) > 0 of rows (n, d): the median, and the root mean square of what differs from it.

    An indicator of 0 and 1 so keeps its values, up to a sign, however rare it is: dividing it by its standard deviation
    would make the rarest column the largest. Other columns are standardised, about the median. Of many rows at most
    16,384 are looked at, evenly spaced. A column that does not vary there has scale 1.

    Examples:
        >>> centre, scale = column_scaling(np.array([[0.0, 5.0], [0.0, 7.0], [0.0, 9.0], [1.0, 11.0]]))
        >>> centre.tolist(), scale.round(2).tolist()  # an indicator keeps its values
        ([0.0, 7.0], [1.0, 2.83])
    """
    sample = np.asarray(rows[:: -(-len(rows) // _SAMPLE)], dtype=np.float64)
    # The lower median is a value of the column, which that of two halves is not.
    centre = np.partition(sample, (len(sample) - 1) // 2, axis=0)[(len(sample) - 1) // 2]
    apart = sample - centre
    largest = np.abs(apart).max(axis=0)  # keeps squares within range
    apart /= np.where(largest > 0, largest, 1.0)
    count = np.count_nonzero(apart, axis=0)
    scale = largest * np.sqrt(np.square(apart).sum(axis=0) / np.maximum(count, 1))
    return centre, np.where(scale > 0, scale, 1.0)
