"""What a simulated node's configuration refers to: the parties' rows and the public rows of one split.

Every process cuts the data set for itself from the same seed, so private rows never travel.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from federation.messages import IndividualQuestion, Question, Submission
from federation.reference import Reference
from parties.holdings import DroppedOut, Holdings
from scenarios.catalogue import load
from scenarios.conduct import Conduct
from scenarios.partition import Cut, cut
from scenarios.tables import Table


@dataclass(frozen=True)
class SplitSpec:
    """All that decides one split: the data set, how much is public and held out, how the rest is dealt, the keys.

    `digest` identifies the contents of the data set's file.
    """

    source: str
    label: str | None
    classes: tuple[str, ...] | None
    data_dir: str | None
    digest: str | None
    auxiliary: int | float
    test: str | int | float
    parties: int | None
    rows: int | None
    partition: str | Mapping[str, Any]
    seed: int
    split: int

    def reference(self, attribute: str, **arguments: Any) -> Reference:
        """`scenarios.simulation:attribute` for this split, with further arguments of JSON values."""
        return Reference(f"scenarios.simulation:{attribute}", {"spec": asdict(self), **arguments})


@dataclass(frozen=True, eq=False)
class Split:
    """A table and how it is cut."""

    table: Table
    cut: Cut


def split(spec: SplitSpec) -> Split:
    """Load and cut; the latest split is kept, tables are kept by the catalogue. Raises `InputError`."""
    return _split(json.dumps(asdict(spec), sort_keys=True))


@lru_cache(maxsize=1)
def _split(spec: str) -> Split:
    known = json.loads(spec)
    group = known["partition"].get("by") if isinstance(known["partition"], dict) else None
    table = load(
        known["source"],
        label=known["label"],
        data_dir=known["data_dir"],
        classes=known["classes"],
        group=group,
    )
    pieces = cut(
        table,
        auxiliary=known["auxiliary"],
        test=known["test"],
        parties=known["parties"],
        rows=known["rows"],
        partition=known["partition"],
        seed=known["seed"],
        split=known["split"],
    )
    return Split(table, pieces)


@dataclass(frozen=True, eq=False)
class PublicRows:
    """The auxiliary rows of a split, unlabelled (`aggregator.plan.PublicTable`)."""

    rows: np.ndarray
    columns: tuple[str, ...]
    text_columns: tuple[int, ...]


def public_rows(spec: dict[str, Any]) -> PublicRows:
    """The auxiliary rows of the split."""
    world = _split(json.dumps(spec, sort_keys=True))
    return PublicRows(world.table.rows(world.cut.auxiliary), world.table.columns, world.table.text)


class SimulatedParties:
    """The parties of a split and, as this is a simulation, its test rows (`parties.holdings.Provider`).

    `conduct` has the fields of a `Conduct`; without it all parties answer, honestly.
    """

    def __init__(self, spec: dict[str, Any], conduct: dict[str, Any] | None = None) -> None:
        self._world = _split(json.dumps(spec, sort_keys=True))
        self._conduct = Conduct(**(conduct or {}))
        self._attackers = self._conduct.attackers(self._world.cut.parties)

    def holdings(self, party: int) -> Holdings:
        """The raw rows of one party, with the labels that it trains on. Raises `DroppedOut`."""
        if self._conduct.drops_out(party):
            raise DroppedOut
        table, indices = self._world.table, self._world.cut.party(party)
        labels = table.labels[indices]
        if self._attackers[party]:
            labels = self._conduct.labels(labels, len(table.classes), party)
        return Holdings(party, table.rows(indices), labels)

    def evaluation(self) -> tuple[np.ndarray, np.ndarray]:
        """Raw test rows and labels."""
        return self._world.table.rows(self._world.cut.test), self._world.table.labels[self._world.cut.test]

    def sent(self, question: Question, submission: Submission) -> Submission:
        """The answers with those of the attackers replaced; the scores that the simulation itself asks for are true."""
        attackers = self._attackers[submission.parties]
        if not attackers.any() or question.kind == IndividualQuestion.kind:
            return submission
        arrays = {name: array.copy() for name, array in submission.arrays.items()}
        for name, declared in question.fields().items():
            arrays[name][attackers] = self._conduct.answers(declared, arrays[name][attackers])
        return replace(submission, arrays=arrays)
