"""Norms of rows."""

from __future__ import annotations

import numpy as np


def within_norm(rows: np.ndarray) -> np.ndarray:
    """Rows (n, d) with those longer than 1 cut to norm 1."""
    norms = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    shortened: np.ndarray = rows / np.maximum(norms, 1.0)[:, None]
    return shortened
