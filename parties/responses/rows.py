"""The rows of one party behind a public feature map: with real labels, or of two classes."""

from collections.abc import Iterator

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.features.feature_map import FeatureMap
from federation.queries.labels import LabelledRows
from parties.party_data.cohort import Cohort

TILE = 1024  # rows at a time: what lies between two steps stays in cache
_LARGEST = 2**24  # numbers between two steps: a map may be so wide that a tile would not fit into memory


def labelled(cohort: Cohort, party: int, declared: LabelledRows) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, d) and labels (n,), float64.

    Labels outside the declared range are moved to its nearer end, and what is no number to its lower one: a refusal
    would tell about a label. Raises `InputError` for rows out of form, or more of them than declared.
    """
    holdings = cohort.holdings(party)
    if len(holdings.rows) > declared.most:
        raise InputError(f"party {party} holds {len(holdings.rows)} rows, declared are at most {declared.most}")
    labels = holdings.numbers().astype(np.float64)
    lowest, highest = declared.label_range
    rows = declared.feature_map.transform(np.asarray(holdings.rows, dtype=np.float64))
    return rows, np.clip(np.nan_to_num(labels, nan=lowest), lowest, highest)


def two_classes(
    cohort: Cohort, party: int, feature_map: FeatureMap, unit: Unit
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Features (n, d) float64 and classes 0 or 1 (n,) int64, some rows at a time: memory does not tell how many.

    Of other labels those from .5 are class 1: a refusal would tell about a label. Under row privacy no row is refused
    either, nor that there is none. Raises `InputError` for holdings of another form, or with several rows of one
    person, whom neither unit protects.
    """
    rows, labels = _single_rows(cohort, party, unit)
    classes = (labels >= 0.5).astype(np.int64)
    start = 0
    for features in _public_features(feature_map, rows) if unit is Unit.LABEL else private_features(feature_map, rows):
        yield features, classes[start : start + len(features)]
        start += len(features)


def real_labels(cohort: Cohort, party: int, declared: LabelledRows) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Features (n, d) and labels (n,) that go from -1 to 1 as their declared range does, some rows at a time.

    For whole rows that are protected: nothing in a row or a label is refused. What is outside the range is moved to its
    nearer end, and what is no number to its lower one. Raises `InputError` as `two_classes`.
    """
    rows, labels = _single_rows(cohort, party, Unit.ROW)
    lowest, highest = declared.label_range
    inside = np.clip(np.nan_to_num(labels.astype(np.float64), nan=lowest), lowest, highest)
    scaled, start = from_minus_one(inside, declared), 0
    for features in private_features(declared.feature_map, rows):
        yield features, scaled[start : start + len(features)]
        start += len(features)


def from_minus_one(labels: np.ndarray, declared: LabelledRows) -> np.ndarray:
    """Labels in the declared range (n,) as they go from -1 to 1."""
    lowest, highest = declared.label_range
    return np.clip((labels - lowest) / (highest / 2 - lowest / 2) - 1.0, -1.0, 1.0)  # 1 but for rounding


def _single_rows(cohort: Cohort, party: int, unit: Unit) -> tuple[np.ndarray, np.ndarray]:
    """Raw rows (n, columns) and labels (n,), each row about another person. Raises `InputError` otherwise."""
    # Of public features, too: the map refuses rows that it cannot take, whoever holds them.
    holdings = cohort.holdings(party, private_rows=True)
    labels = holdings.numbers()
    if holdings.persons is not None and len(np.unique(holdings.persons)) < len(labels):
        raise InputError(
            f"several rows are about one person, and what is protected is one {unit}; leave out all but one"
        )
    return np.asarray(holdings.rows, dtype=np.float64), labels


def _public_features(feature_map: FeatureMap, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Features of rows, some at a time; the map refuses rows that it does not take."""
    return (feature_map.transform(rows[start : start + TILE]) for start in range(0, len(rows), TILE))


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
    """Return how many rows `private_features` maps to features at once; this depends on the map alone."""
    return max(1, min(TILE, _LARGEST // max(feature_map.widths)))
