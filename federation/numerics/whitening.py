"""Coordinates in which a second moment is the identity, on the span of the rows it is of."""

from __future__ import annotations

import numpy as np

from federation.numerics.arrays import Floats

_RANK_CUT = 1e-12  # of the largest eigenvalue of X'X with columns of norm 1: the rest is rounding


def whitening(moments: Floats) -> tuple[Floats, Floats]:
    """W and V, (d, r), with W' moments W = 1 and V W' = 1 on the span of the rows; `moments` (d, d) has rank r.

    Columns are scaled to norm 1 first, so that units do not decide which directions are rounding errors. W W' is the
    pseudo-inverse of least norm in units of each column's.

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(9, 2)) @ [[1.0, 0.0, 2.0], [0.0, 30.0, 0.0]]  # of rank 2
        >>> whiten, unwhiten = whitening(rows.T @ rows)
        >>> whiten.shape, np.allclose(rows @ whiten @ unwhiten.T, rows)
        ((3, 2), True)
    """
    norms = np.sqrt(np.maximum(np.diag(moments), 0.0))
    scale = np.where(norms > 0, norms, 1.0)
    values, vectors = np.linalg.eigh(moments / np.outer(scale, scale))
    kept = values > _RANK_CUT * values[-1]
    root = np.sqrt(values[kept])
    return vectors[:, kept] / root / scale[:, None], vectors[:, kept] * root * scale[:, None]
