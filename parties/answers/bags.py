"""The bags of one party: which rows of its holdings count, and in which bag."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from federation.contract.errors import InputError
from federation.queries.bags import Bags
from parties.holdings.cohort import Cohort, Holdings

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, repr=False)
class PartyBags:
    """Raw rows (n, columns), class codes (n,) and `owner` (n,), the bag 0..B-1 of each row; never shown."""

    rows: np.ndarray
    labels: np.ndarray
    owner: np.ndarray
    declared: Bags

    @property
    def sizes(self) -> np.ndarray:
        """Rows of each bag (B,), float64."""
        return np.bincount(self.owner, minlength=self.declared.count).astype(np.float64)

    @property
    def counts(self) -> np.ndarray:
        """Label counts (B, C), int64. Private."""
        cells = self.owner * self.declared.classes + self.labels
        shape = (self.declared.count, self.declared.classes)
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)

    def each(self) -> Iterator[tuple[int, np.ndarray]]:
        """The number and the raw rows of every bag that is there; the others have a size of 0."""
        for bag in np.flatnonzero(self.sizes).tolist():
            yield bag, self.rows[self.owner == bag]


def bags_of(
    cohort: Cohort, party: int, declared: Bags, private_rows: bool = False, private_bags: bool = False
) -> PartyBags:
    """What a party holds, as the declared bags. Raises `InputError` for labels, bags or persons out of form.

    With `private_rows` features that are not finite are let through, as to refuse them would tell of a row, and with
    `private_bags` the number of a bag beyond those declared counts as the last of them, for the same reason. A deployed
    party counts a label beyond the declared classes as the last of them, and says so in its own log:
    to fail over it would tell for certain that there is such a label, and whoever asks chooses how many classes.
    """
    holdings = cohort.holdings(party, private_rows)
    if cohort.seed is None:
        holdings = _within(holdings, declared.classes)
    labels = holdings.class_codes(declared.classes)
    owner = np.zeros(len(labels), np.int64) if holdings.bags is None else _codes("bags", holdings.bags)
    if private_bags:
        owner = np.minimum(owner, declared.count - 1)
    if owner.max() >= declared.count:
        raise InputError(
            f"party {party} has a bag number {owner.max()}, declared are {declared.count} bags numbered from 0"
        )
    kept = _counted(holdings, owner, declared.rows_per_person)
    return PartyBags(np.asarray(holdings.rows, np.float64)[kept], labels[kept], owner[kept], declared)


def _within(holdings: Holdings, classes: int) -> Holdings:
    """The same with every label below `classes`."""
    if np.max(holdings.labels) >= classes:
        _log.warning("party %d: labels beyond the %d declared classes count as the last", holdings.party, classes)
    return replace(holdings, labels=np.minimum(holdings.labels, classes - 1))


def _codes(name: str, values: np.ndarray) -> np.ndarray:
    codes = np.asarray(values)
    if codes.ndim != 1 or codes.dtype.kind not in "iu" or codes.min() < 0:
        raise InputError(f"{name} must be one whole number from 0 per row; check the provider's {name}")
    return codes.astype(np.int64)


def kept_rows(owner: np.ndarray, persons: np.ndarray, rows_per_person: int) -> np.ndarray:
    """Positions of the rows that count: of each person the first in each bag, in its `rows_per_person` first bags.

    `owner` (n,) is the bag and `persons` (n,) the person of each row. Which rows these are depends on persons and bags
    only, and never on labels.

    Examples:
        >>> kept_rows(owner=np.array([0, 0, 1, 2]), persons=np.array([7, 7, 7, 7]), rows_per_person=2)
        array([0, 2])
    """
    _, person = np.unique(np.asarray(persons), return_inverse=True)
    _, first = np.unique(np.stack([person, owner]), axis=1, return_index=True)  # by person, then by bag
    starts = np.searchsorted(person[first], np.arange(person.max() + 1))
    rank = np.arange(len(first)) - starts[person[first]]
    return np.sort(first[rank < rows_per_person])


def _counted(holdings: Holdings, owner: np.ndarray, rows_per_person: int) -> np.ndarray:
    """Positions of the rows that count: all when rows are of different people. Raises `InputError`."""
    if rows_per_person:
        if holdings.persons is None:
            raise InputError("the aggregator protects persons, but the rows have no persons; name their column")
        return kept_rows(owner, holdings.persons, rows_per_person)
    if holdings.persons is not None and len(np.unique(holdings.persons)) < len(owner):
        raise InputError("several rows are about one person, whom label privacy does not protect; protect persons")
    return np.arange(len(owner))
