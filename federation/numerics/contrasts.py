"""A public orthonormal basis of class contrasts."""

from __future__ import annotations

import math

import numpy as np

from federation.contract.errors import InputError
from federation.numerics.arrays import Floats


def contrasts(classes: int) -> Floats:
    """Basis B, shape (C, C-1), of the vectors that sum to zero: B'B = I, B'1 = 0, B B' = I - 11'/C.

    Column j compares class j+1 with the mean of the classes before it (Helmert contrasts). Differences of
    vote shares and softmax minimisers lie in this space, so noise needs only C-1 coordinates per feature.
    Raises `InputError` for fewer than 2 classes.

    Examples:
        >>> contrasts(3).round(4)
        array([[-0.7071, -0.4082],
               [ 0.7071, -0.4082],
               [ 0.    ,  0.8165]])
    """
    if classes < 2:
        raise InputError(f"classes must be at least 2, got {classes}")
    j = np.arange(1, classes)
    basis = np.where(np.arange(classes)[:, None] < j, -1.0, 0.0)
    basis[j, j - 1] = j
    return basis / np.sqrt(j * (j + 1.0))


def contrast_rounding(classes: int) -> float:
    """Relative error of B'v in double precision, v in R^C: |fl(B'v) - B'v| <= `contrast_rounding` |v|.

    Entries of B err by at most 4 u and sums of C products by (C + 2) u, u = 2^-53, in each of C-1 coordinates.
    """
    return (classes + 8) * math.sqrt(classes) * 2.0**-53
