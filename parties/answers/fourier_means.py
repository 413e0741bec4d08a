"""Kernel mean embeddings of raw rows behind a public feature map."""

from __future__ import annotations

import numpy as np

from federation.contract.errors import InputError
from federation.features.feature_map import FeatureMap
from federation.numerics.memory import keep_freed_memory

_TILE = 1024


def mean_embedding(feature_map: FeatureMap, rows: np.ndarray) -> np.ndarray:
    """Mean features (D,) of raw rows (n, columns), n >= 1, in memory for 1,024 rows of features.

    Summed in the order of the rows, in tiles: equal rows give equal bits. When every row's features have norm 1,
    replacing one row moves the mean by at most 2/n (and rounding, below 1e-15 n). Raises `InputError` for no rows, and
    as `FeatureMap.transform`, which counts rows from the start of their tile of 1,024.
    """
    if np.ndim(rows) != 2 or len(rows) == 0:
        raise InputError(f"a mean embedding needs rows on two axes, at least one, got shape {np.shape(rows)}")
    keep_freed_memory()
    total = np.zeros(feature_map.dimension)
    for start in range(0, len(rows), _TILE):
        total += feature_map.transform(rows[start : start + _TILE]).sum(axis=0)
    return total / len(rows)
