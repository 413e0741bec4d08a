"""The private rows of a cohort behind the public feature map, one party after another."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from federation.numerics.rows import all_finite
from federation.queries.votes import Training
from parties.holdings.cohort import Cohort, Holdings
from parties.holdings.held import Held, ManyHoldings
from parties.holdings.isolation import alone, jointly

_log = logging.getLogger(__name__)
# The raw rows of the latest cohort of a simulation: a grid puts all questions of a world to one cohort in a row, and
# those of several feature maps read the same rows.
_latest: dict[tuple[str, int, int, int], tuple[Held, Mapping[int, str]]] = {}


class _Raw(NamedTuple):
    """Usable parties (P,), the raw rows of those at some positions, class codes (R,) and rows of each (P,)."""

    parties: np.ndarray
    rows_at: Callable[[np.ndarray], np.ndarray]
    labels: np.ndarray
    counts: np.ndarray


def load(cohort: Cohort, training: Training) -> tuple[Held, dict[int, str]]:
    """Features (R, d), float64, and class codes (R,), int64, of the parties of a cohort; why the others have none.

    A party's features are the same bits whoever is loaded with it.
    """
    raw, failures = _together(cohort, training.classes) or _one_by_one(cohort, training.classes)

    def transform(positions: np.ndarray) -> np.ndarray:
        return training.feature_map.transform(raw.rows_at(positions))

    features, refused = jointly(cohort, raw.parties, transform)
    kept = np.concatenate([np.empty(0, np.intp), *(positions for positions, _ in features)])
    rows = [rows for _, rows in features] or [np.empty((0, training.feature_map.dimension))]
    usable = Held(raw.parties, raw.labels, raw.labels, raw.counts).part(kept)
    behind = rows[0] if len(rows) == 1 else np.concatenate(rows)
    return Held(usable.parties, behind, usable.labels, usable.counts), {**failures, **refused}


def _together(cohort: Cohort, classes: int) -> tuple[_Raw, Mapping[int, str]] | None:
    """What a provider of many hands over, where `Holdings` and cohort would take all of it."""
    if cohort.seed is None:  # a site's provider serves one party, whose failures must not look different
        return None
    key = cohort.reference, cohort.first, cohort.count, classes
    if key not in _latest:
        try:
            provider = cohort.provider
            if not isinstance(provider, ManyHoldings):
                return None
            found = provider.held(cohort.parties)
        except Exception:
            _log.debug("%d parties could not be read at once", cohort.count, exc_info=True)
            return None
        if not _all_usable(found[0], classes):
            return None
        _latest.clear()
        _latest[key] = found
    held, absent = _latest[key]
    return _Raw(held.parties, lambda positions: held.part(positions).rows, held.labels, held.counts), absent


def _all_usable(held: Held, classes: int) -> bool:
    """Whether `Holdings` would take the rows of every party, and their labels as codes of so many classes."""
    labels, sizes = held.labels, held.counts
    codes = len(sizes) > 0 and sizes.min() > 0 and labels.dtype == np.int64
    usable = codes and 0 <= labels.min() <= labels.max() < classes
    return bool(usable and (all_finite(held.rows) or not np.isinf(held.rows).any()))


def _one_by_one(cohort: Cohort, classes: int) -> tuple[_Raw, Mapping[int, str]]:
    """The same by asking for each party alone: what is wrong with one costs no other."""
    found, failures = alone(cohort, cohort.parties, lambda party: _usable(cohort, party, classes))
    held = list(found.values())

    def rows_at(positions: np.ndarray) -> np.ndarray:
        return np.concatenate([np.asarray(held[position].rows, dtype=np.float64) for position in positions])

    # Cast, as labels of several integer types would otherwise all become floats.
    labels = np.concatenate([np.empty(0), *(one.labels for one in held)], dtype=np.int64, casting="unsafe")
    counts = np.array([len(one.labels) for one in held], dtype=np.int64)
    return _Raw(np.array(list(found), dtype=np.int64), rows_at, labels, counts), failures


def _usable(cohort: Cohort, party: int, classes: int) -> Holdings:
    holdings = cohort.holdings(party)
    holdings.class_codes(classes)
    return holdings
