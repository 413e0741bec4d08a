"""Simulated parties: the rows of each party, the public rows of a split, and the fault and attack model.

Every process cuts the data set itself from the same seed, so private rows never travel. The fault and attack model
(`Conduct`) decides which parties respond, which attack, and how. It is keyed by seed and split, and nothing else
matters.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.plugins import Reference
from federation.contract.query import Field, Question, Submission
from federation.contract.randomness import generator
from federation.engines.codec import bits_per_entry
from federation.numerics.rows import Floats
from federation.queries.votes import IndividualQuestion
from parties.party_data.cohort import DroppedOut, Held, Holdings
from parties.party_data.isolation import DROPPED_OUT
from scenarios.data.catalogue import is_file_name, load, public_path
from scenarios.data.files import read_public
from scenarios.data.tables import Outside, Table
from scenarios.settings.words import Kind
from scenarios.simulated.partition import Cut, cut
from scenarios.simulated.periods import periods_of, window_cut


@dataclass(frozen=True)
class SplitSpec:
    """All that decides one split: the data set, how much is public and held out, how the rest is dealt, the keys.

    `digest` identifies the contents of the data set's file. `bags` is how each party's rows lie in bags, `common_bags`
    whether these are the same at all parties, `person` the column that says whose row it is. `label_range` and
    `outside` are for real labels (`Table.with_range`). `missing`: cells may be; `drop` are columns that are no
    features, `hashes` the values of the stages {hash: ...}. With the column `time` rows arrive over `periods`, and the
    split is that of the release that is tested on one `period` (`scenarios.simulated.periods.window_cut`, as is
    `bag_each`).
    """

    source: str
    label: str | None
    classes: tuple[str, ...] | None
    data_dir: str | None
    digest: str | None
    auxiliary: int | float | str | Mapping[str, Any]
    test: str | int | float | Mapping[str, Any]
    parties: int | None
    rows: int | None
    partition: str | Mapping[str, Any]
    seed: int
    split: int
    bags: int | Mapping[str, str] = 1
    common_bags: bool = False
    person: str | None = None
    label_range: tuple[float, float] | None = None
    outside: Outside = "refuse"
    positive: tuple[str, ...] | None = None
    missing: bool = False
    drop: tuple[str, ...] = ()
    time: str | None = None
    periods: int | tuple[float | str, ...] | Mapping[str, Any] | None = None
    window: int | None = None
    period: int = 0
    bag_each: bool = False
    hashes: tuple[int | Mapping[str, Any], ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        """Columns that say where a row belongs, to a party, a bag, a person or a period: no features."""
        entries = (self.partition, self.bags)
        named = [entry["by"] for entry in entries if isinstance(entry, Mapping) and "by" in entry]
        return tuple(sorted({*named, *(name for name in (self.person, self.time) if name is not None)}))

    def reference(self, attribute: str, **arguments: Any) -> Reference:
        """`scenarios.simulated.simulation:attribute` for this split, with further arguments of JSON values."""
        return Reference(f"scenarios.simulated.simulation:{attribute}", {"spec": asdict(self), **arguments})


@dataclass(frozen=True, eq=False)
class PublicRows:
    """The auxiliary rows of a split, unlabelled (`aggregator.trial.plan.PublicTable`)."""

    rows: Floats
    columns: tuple[str, ...]
    text_columns: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Split:
    """A table, how it is cut, and the rows of a file of public rows, if there is one."""

    table: Table
    cut: Cut
    apart: Floats | None = None

    @property
    def public(self) -> PublicRows:
        """The public rows."""
        rows = self.table.rows(self.cut.auxiliary) if self.apart is None else self.apart
        return PublicRows(rows, self.table.columns, self.table.text)


def split(spec: SplitSpec) -> Split:
    """Load and cut; the latest split is kept, tables are kept by the catalogue. Raises `InputError`.

    Examples:
        >>> spec = SplitSpec("digits", None, None, None, None, 200, 0.2, 50, 5, "iid", seed=1, split=0)
        >>> split(spec).cut
        Cut(200 auxiliary, 359 test, 250 private rows of 50 parties)
        >>> split(spec).table.labels[split(spec).cut.party(7)]
        array([4, 2, 3, 7, 4])
    """
    return _split(json.dumps(asdict(spec), sort_keys=True))


# What a split takes from its data set, and how it cuts that.
_LOADED = ("source", "label", "data_dir", "classes", "positive", "label_range", "outside", "missing", "drop", "hashes")
_CUT = ("auxiliary", "test", "parties", "rows", "partition", "seed", "split", "bags", "common_bags", "person")
_OVER_TIME = ("time", "periods", "window", "period", "bag_each")


def period_names(spec: SplitSpec) -> tuple[str, ...]:
    """What the periods of a split with a column of time are called. Raises `InputError`."""
    assert spec.time is not None
    assert spec.periods is not None
    return periods_of(_table(asdict(spec)), spec.time, spec.periods).names


@lru_cache(maxsize=1)
def _split(spec: str) -> Split:
    known = json.loads(spec)
    table, auxiliary, apart = _table(known), known["auxiliary"], None
    dealing = {name: known[name] for name in _CUT}
    if known["time"] is None:
        pieces = cut(table, **dealing)
    else:
        pieces = window_cut(table, **dealing, **{name: known[name] for name in _OVER_TIME})
    if is_file_name(auxiliary):
        path = public_path(auxiliary, known["data_dir"])
        apart = read_public(path, table, known["source"], missing=known["missing"])
    return Split(table, pieces, apart)


def _table(known: dict[str, Any]) -> Table:
    groups = SplitSpec(**known).groups
    return load(**{name: known[name] for name in _LOADED}, groups=groups, instance=known["split"])


def public_rows(spec: dict[str, Any]) -> PublicRows:
    """The auxiliary rows of the split."""
    return _split(json.dumps(spec, sort_keys=True)).public


class SimulatedParties:
    """The parties of a split and, as this is a simulation, its test rows (`parties.party_data.cohort.Provider`).

    `conduct` has the fields of a `Conduct`; without it all parties answer, honestly.
    """

    def __init__(self, spec: dict[str, Any], conduct: dict[str, Any] | None = None) -> None:
        world = _split(json.dumps(spec, sort_keys=True))
        self._table, self._cut = world.table, world.cut
        self._person = spec.get("person")
        self._conduct = Conduct(**(conduct or {}))
        self._attackers = self._conduct.attackers(self._cut.parties)
        self._labelled = self._table.label_range or len(self._table.classes)

    def holdings(self, party: int) -> Holdings:
        """The raw rows of one party, with the labels that it goes by, their bags and persons. Raises `DroppedOut`."""
        if self._conduct.drops_out(party):
            raise DroppedOut
        table, indices = self._table, self._cut.party(party)
        labels = table.labels[indices]
        if self._attackers[party]:
            labels = self._conduct.labels(labels, self._labelled, party)
        bags = self._cut.bags(party) if self._cut.bags_per_party > 1 else None
        persons = None if self._person is None else table.groups[self._person][indices]
        return Holdings(party, table.rows(indices), labels, bags, persons)

    def held(self, parties: range) -> tuple[Held, dict[int, str]]:
        """The same of parties that follow on each other, at once (`parties.party_data.cohort.ManyHoldings`)."""
        table, offsets = self._table, self._cut.offsets[parties.start : parties.stop + 1]
        indices = self._cut.order[offsets[0] : offsets[-1]]
        labels, starts = table.labels[indices], offsets - offsets[0]
        for place in np.flatnonzero(self._attackers[parties.start : parties.stop]).tolist():
            own = slice(starts[place], starts[place + 1])
            labels[own] = self._conduct.labels(labels[own], self._labelled, parties[place])
        everyone = Held(np.array(parties), table.rows(indices), labels, np.diff(offsets))
        if not self._conduct.dropout:
            return everyone, {}
        there = np.array([not self._conduct.drops_out(party) for party in parties])
        return everyone.part(there), dict.fromkeys(everyone.parties[~there].tolist(), DROPPED_OUT)

    def evaluation(self) -> tuple[Floats, NDArray[Any]]:
        """Raw test rows and labels."""
        return self._table.rows(self._cut.test), self._table.labels[self._cut.test]

    def sent(self, question: Question, submission: Submission) -> Submission:
        """The answers with those of the attackers replaced; the scores that the simulation itself asks for are true."""
        attackers = self._attackers[submission.parties]
        if not attackers.any() or question.kind == IndividualQuestion.kind:
            return submission
        arrays = {name: array.copy() for name, array in submission.arrays.items()}
        for name, declared in question.fields().items():
            arrays[name][attackers] = self._conduct.answers(declared, arrays[name][attackers])
        return replace(submission, arrays=arrays)


@dataclass(frozen=True)
class Conduct:
    """`dropout` is the probability that a party does not answer, `hostile` the fraction of the parties that attack.

    Who drops out at some probability does so at every greater one, and who attacks at some fraction does so at every
    greater one. `kind` is the attack: three train on wrong labels, `malformed` and `oversized` train honestly and
    send something else.

    Examples:
        >>> conduct = Conduct(dropout=0.3, hostile=0.25, kind="flip", seed=1)
        >>> [party for party in range(10) if conduct.drops_out(party)]
        [4, 6, 7, 8, 9]
        >>> conduct.attackers(8).nonzero()[0]
        array([3, 4])
    """

    dropout: float = 0.0
    hostile: float = 0.0
    kind: Kind = "flip"
    seed: int = 0
    split: int = 0

    def drops_out(self, party: int) -> bool:
        """Whether a party does not answer."""
        return bool(self.dropout) and generator(self.seed, "dropout", party, self.split).random() < self.dropout

    def attackers(self, parties: int) -> NDArray[np.bool_]:
        """Which of K parties attack, boolean (K,): exactly the rounded fraction of them, drawn at random."""
        chosen = np.zeros(parties, dtype=bool)
        if self.hostile:
            order = generator(self.seed, "hostile", trial=self.split).permutation(parties)
            chosen[order[: round(self.hostile * parties)]] = True
        return chosen

    def labels(self, labels: NDArray[Any], known: int | tuple[float, float], party: int) -> NDArray[Any]:
        """The labels (n,) that an attacker answers from, given its own.

        `known` is the number C of classes, of codes 0..C-1, or the range [lo, hi] of real labels. "flip" takes the next
        class or mirrors in the range, "random" draws uniformly, "target" answers 0 or lo.

        Examples:
            >>> Conduct(kind="flip").labels(np.array([0, 1, 2]), 3, party=0)
            array([1, 2, 0])
            >>> Conduct(kind="flip").labels(np.array([1.0, 9.0]), (0.0, 10.0), party=0)
            array([9., 1.])
        """
        random = generator(self.seed, "hostile labels", party, self.split)
        if isinstance(known, int):
            if self.kind == "random":
                return random.integers(known, size=len(labels))
            lo, wrong = 0.0, (labels + 1) % known
        else:
            if self.kind == "random":
                return random.uniform(*known, size=len(labels))
            lo, wrong = known[0], np.clip(sum(known) - labels, *known)
        return {"flip": wrong, "target": np.full_like(labels, lo)}.get(self.kind, labels)

    def answers(self, declared: Field, honest: NDArray[Any]) -> NDArray[Any]:
        """What attackers send in place of the honest entries (P, ...) of a declared field.

        `malformed` is NaN, or a class that does not exist; where every packed code is a class (2, 4, 16 or 256 of
        them) there is none, and it is the last class. `oversized` is the largest that the field allows.
        """
        if self.kind not in ("malformed", "oversized"):
            return honest
        extreme: float
        if declared.levels is None:
            largest = min(declared.maximum, float(np.finfo(declared.dtype).max))
            extreme = np.nan if self.kind == "malformed" else largest
        elif self.kind == "oversized":
            extreme = declared.levels - 1
        else:
            extreme = min(2 ** bits_per_entry(declared.levels), 2 ** (8 * declared.dtype.itemsize)) - 1
        return np.full_like(honest, extreme)
