"""The private rows of a cohort behind the public feature map, one party after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from federation.questions.votes import Training
from parties.holdings.cohort import Cohort, Holdings
from parties.holdings.isolation import alone, jointly


@dataclass(frozen=True, eq=False, repr=False)
class Loaded:
    """What P parties hold behind the feature map: features (R, d) and class codes (R,), `counts` (P,) rows each.

    Never shown.
    """

    parties: np.ndarray
    rows: np.ndarray
    labels: np.ndarray
    counts: np.ndarray

    @property
    def owners(self) -> np.ndarray:
        """The position of each row's party, (R,)."""
        return np.repeat(np.arange(len(self.parties)), self.counts)

    def part(self, chosen: np.ndarray) -> Loaded:
        """Some of the parties: boolean `chosen` (P,), or positions in ascending order."""
        kept = np.zeros(len(self.parties), dtype=bool)
        kept[chosen] = True
        rows = kept[self.owners]
        return Loaded(self.parties[kept], self.rows[rows], self.labels[rows], self.counts[kept])

    def each(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows (n, d) and labels (n,) of one party after another."""
        ends = np.cumsum(self.counts)
        for start, end in zip(ends - self.counts, ends, strict=True):
            yield self.rows[start:end], self.labels[start:end]


def load(cohort: Cohort, training: Training) -> tuple[Loaded, dict[int, str]]:
    """What the parties of a cohort hold, and why the remaining ones hold nothing usable.

    A party's features are the same bits whoever is loaded with it.
    """
    usable, failures = alone(cohort, cohort.parties, lambda party: _usable(cohort, party, training.classes))
    held = list(usable.values())

    def transform(positions: np.ndarray) -> np.ndarray:
        raw = [np.asarray(held[position].rows, dtype=np.float64) for position in positions]
        return training.feature_map.transform(np.concatenate(raw))

    parties = np.array(list(usable), dtype=np.int64)
    features, refused = jointly(cohort, parties, transform)
    kept = np.concatenate([np.empty(0, np.intp), *(positions for positions, _ in features)])
    loaded = Loaded(
        parties[kept],
        np.concatenate([np.empty((0, training.feature_map.dimension)), *(rows for _, rows in features)]),
        # Cast, as labels of several integer types would otherwise all become floats.
        np.concatenate([np.empty(0), *(held[position].labels for position in kept)], dtype=np.int64, casting="unsafe"),
        np.array([len(held[position].labels) for position in kept], dtype=np.int64),
    )
    return loaded, failures | refused


def _usable(cohort: Cohort, party: int, classes: int) -> Holdings:
    holdings = cohort.holdings(party)
    holdings.class_codes(classes)
    return holdings
