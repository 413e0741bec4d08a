"""Norms of rows."""

from __future__ import annotations

import numpy as np


def within_norm(rows: np.ndarray, l1_bound: float | None = None) -> np.ndarray:
    """Rows (n, d) with those longer than 1 cut to norm 1, and where there is a bound to that L1 norm as well."""
    with np.errstate(over="ignore"):  # a row of infinite norm becomes zeros
        longer = np.maximum(np.sqrt(np.einsum("nd,nd->n", rows, rows)), 1.0)
        if l1_bound is not None:
            longer = np.maximum(longer, np.abs(rows).sum(axis=1) / l1_bound)
    shortened: np.ndarray = rows / longer[:, None]
    return shortened
