"""One party's rows behind a public feature map, each of the first or the second of two classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.features.feature_map import FeatureMap
from parties.answers.private_features import TILE, private_features
from parties.holdings.cohort import Cohort


def two_classes(
    cohort: Cohort, party: int, feature_map: FeatureMap, unit: Unit
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Features (n, d) float64 and classes 0 or 1 (n,) int64, some rows at a time: memory does not tell how many.

    Of other labels those from .5 are class 1: a refusal would tell about a label. Under row privacy no row is refused
    either, nor that there is none. Raises `InputError` for holdings of another form, or with several rows of one
    person, whom neither unit protects.
    """
    holdings = cohort.provider.holdings(party)
    if holdings.party != party:
        raise InputError(f"asked for party {party}, the provider gave the rows of party {holdings.party}")
    labels = np.asarray(holdings.labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iufb":
        raise InputError("labels must be one number per row; check the provider's labels")
    if holdings.persons is not None and len(np.unique(holdings.persons)) < len(labels):
        raise InputError(
            f"several rows are about one person, and what is protected is one {unit}; leave out all but one"
        )
    classes = (labels >= 0.5).astype(np.int64)
    rows = np.asarray(holdings.rows, dtype=np.float64)
    if unit is Unit.LABEL:
        tiles: Iterator[np.ndarray] = (
            feature_map.transform(rows[start : start + TILE]) for start in range(0, len(rows), TILE)
        )
    else:
        tiles = private_features(feature_map, rows)
    start = 0
    for features in tiles:
        yield features, classes[start : start + len(features)]
        start += len(features)
