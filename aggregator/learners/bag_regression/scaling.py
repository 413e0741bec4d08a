"""Columns of public rows on one scale, with indicators left as they are."""

from __future__ import annotations

import numpy as np

_SAMPLE = 1 << 14


def column_scaling(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre (d,) and scale (d,) > 0 of rows (n, d): the median, and the root mean square of what differs from it.

    An indicator of 0 and 1 so keeps its values, up to a sign, however rare it is: dividing it by its standard deviation
    would make the rarest column the largest. Other columns are standardised, about the median. Of many rows at most
    16,384 are looked at, evenly spaced. A column that does not vary there has scale 1.
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
