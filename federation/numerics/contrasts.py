"""A public orthonormal basis of class contrasts."""

from __future__ import annotations

import numpy as np

from federation.errors import InputError


def contrasts(classes: int) -> np.ndarray:
    """Basis B, shape (C, C-1), of the vectors that sum to zero: B'B = I, B'1 = 0, B B' = I - 11'/C.

    Column j compares class j+1 with the mean of the classes before it (Helmert contrasts). Differences of
    vote shares and softmax minimisers lie in this space, so noise needs only C-1 coordinates per feature.
    Raises `InputError` for fewer than 2 classes.
    """
    if classes < 2:
        raise InputError(f"classes must be at least 2, got {classes}")
    j = np.arange(1, classes)
    basis = np.where(np.arange(classes)[:, None] < j, -1.0, 0.0)
    basis[j, j - 1] = j
    return basis / np.sqrt(j * (j + 1.0))
