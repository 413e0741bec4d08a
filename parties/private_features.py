"""Private rows behind a public feature map, whatever the map makes of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from federation.errors import InputError
from federation.features import FeatureMap

TILE = 1024  # rows at a time: what lies between two steps stays in cache


def private_features(feature_map: FeatureMap, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Features, some rows at a time, of raw rows (n, columns); a row that the map makes infinite becomes zeros.

    To fail over it, or to take longer, would tell for certain that there is such a row, and whoever asks chooses the
    map. Raises `InputError` for rows of other columns than the map's.
    """
    if rows.shape[1] != feature_map.columns:
        raise InputError(f"the party's rows have {rows.shape[1]} columns, the feature map takes {feature_map.columns}")
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(rows), TILE):
            tile = rows[start : start + TILE]
            for step in feature_map.steps:
                tile = step.apply(tile)
            yield np.where(np.isfinite(tile).all(axis=1)[:, None], tile, 0.0)
