"""Private rows behind a public feature map, whatever the map makes of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from federation.contract.errors import InputError
from federation.features.feature_map import FeatureMap

TILE = 1024  # rows at a time: what lies between two steps stays in cache
_LARGEST = 2**24  # numbers between two steps: a map may be so wide that a tile would not fit into memory


def private_features(feature_map: FeatureMap, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Features, some rows at a time, of raw rows (n, columns); a row that the map makes infinite becomes zeros.

    To fail over it, or to take longer, would tell for certain that there is such a row, and whoever asks chooses the
    map. A map that fails on every row fails without rows, too. Raises `InputError` for rows of other columns than the
    map's, and for a map that makes something else of them than it says.
    """
    if rows.shape[1] != feature_map.columns:
        raise InputError(f"the party's rows have {rows.shape[1]} columns, the feature map takes {feature_map.columns}")
    nothing = feature_map.apply(np.zeros((2, feature_map.columns)))
    if nothing.shape != (2, feature_map.dimension) or nothing.dtype != np.float64:
        raise InputError(f"the feature map does not make {feature_map.dimension} features of a row; fetch it again")
    count = rows_at_a_time(feature_map)
    for start in range(0, len(rows), count):
        # Row by row in memory: elsewhere sums over the columns of a single row are rounded in another way than those
        # of several, so that one row more could move another row's features.
        features = feature_map.apply(np.ascontiguousarray(rows[start : start + count]))
        yield np.where(np.isfinite(features).all(axis=1)[:, None], features, 0.0)


def rows_at_a_time(feature_map: FeatureMap) -> int:
    """Of how many rows `private_features` makes features at once, by the map alone."""
    return max(1, min(TILE, _LARGEST // max(feature_map.widths)))
