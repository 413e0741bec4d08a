"""Norms of rows."""

from __future__ import annotations

import numpy as np

from federation.numerics.arrays import Floats


def within_norm(rows: Floats, l1_bound: float | None = None) -> Floats:
    """Rows (n, d) with those longer than 1 cut to norm 1, and where there is a bound to that L1 norm as well.

    Examples:
        >>> within_norm(np.array([[3.0, 4.0], [0.3, 0.4]]))
        array([[0.6, 0.8],
               [0.3, 0.4]])
    """
    with np.errstate(over="ignore"):  # a row of infinite norm becomes zeros
        longer = np.maximum(np.sqrt(np.einsum("nd,nd->n", rows, rows)), 1.0)
        if l1_bound is not None:
            longer = np.maximum(longer, np.abs(rows).sum(axis=1) / l1_bound)
    shortened: Floats = rows / longer[:, None]
    return shortened
