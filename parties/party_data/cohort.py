"""Party data, and the batch of parties that one node serves.

`Holdings` is one party's private table. `Cohort` is a batch of parties. A provider of many parties (`ManyHoldings`)
hands over their rows one after another (`Held`): arrays, and no object per party.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np

from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.contract.query import CODE, MOST_ROWS, NOTHING, SIMULATED, Declared, Limits, Question, Submission, whole


@dataclass(frozen=True, repr=False)
class Holdings:
    """What one party holds: raw rows (n, columns) and class codes or real labels (n,). Shown by shape only.

    `bags` (n,) says which of the party's bags 0, 1, ... a row is in; None means that all are in bag 0. `persons` (n,)
    says whose row it is; None means that every row is another person's.

    Raises `InputError` when lengths differ.

    Examples:
        >>> Holdings(3, np.zeros((4, 2)), np.array([0, 1, 1, 0]))
        Holdings(party=3, rows=(4, 2))
        >>> Holdings(3, np.zeros((4, 2)), np.array([0, 1]))
        Traceback (most recent call last):
        federation.contract.errors.InputError: party 3 holds 4 rows but 2 labels
    """

    party: int
    rows: np.ndarray
    labels: np.ndarray
    bags: np.ndarray | None = None
    persons: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name, codes in (("labels", self.labels), ("bags", self.bags), ("persons", self.persons)):
            if codes is not None and len(codes) != len(self.rows):
                raise InputError(f"party {self.party} holds {len(self.rows)} rows but {len(codes)} {name}")

    def require_usable(self) -> None:
        """Raises `InputError` without any row, or for infinite features; a feature map says if it takes missing ones.

        Not to be asked where rows are private: a party that fails over one of them tells of it.
        """
        if len(self.rows) == 0:
            raise InputError(f"party {self.party} holds no rows; give every party at least one")
        if np.isinf(self.rows).any():
            raise InputError(f"party {self.party} holds infinite features; correct them or drop those rows")

    def class_codes(self, classes: int) -> np.ndarray:
        """The labels as int64 (n,). Raises `InputError` unless they are codes in 0..classes-1."""
        labels = np.asarray(self.labels)
        if labels.ndim != 1 or labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= classes:
            raise InputError(f"labels must be one class code in 0..{classes - 1} per row; check the provider's labels")
        return labels.astype(np.int64)

    def numbers(self) -> np.ndarray:
        """The labels as they are (n,). Raises `InputError` unless they are one number per row."""
        labels = np.asarray(self.labels)
        if labels.ndim != 1 or labels.dtype.kind not in "iufb":
            raise InputError("labels must be one number per row; check the provider's labels")
        return labels

    def __repr__(self) -> str:
        return f"Holdings(party={self.party}, rows={self.rows.shape})"


class DroppedOut(Exception):
    """Raised by a simulation's provider for a party that does not answer in this world."""


class Provider(Protocol):
    """Where a node finds its parties' rows; named in the node's own configuration, never in a message."""

    def holdings(self, party: int) -> Holdings:
        """The rows of one party."""

    def evaluation(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Raw evaluation rows and labels in a simulation, None in a deployment."""


@runtime_checkable
class Elsewhere(Protocol):
    """A provider of rows that may be away for a while: of a file of another machine, of a data base."""

    def require_there(self) -> None:
        """Raises `InputError` where the rows could not be read now, whatever they are; reads none."""


@runtime_checkable
class Tampering(Protocol):
    """A simulation's provider some of whose parties are hostile."""

    def sent(self, question: Question, submission: Submission) -> Submission:
        """What is sent in place of an honest answer."""


@lru_cache(maxsize=2)  # a node's world, and the one before it while worlds change
def provider_of(reference: str) -> Provider:
    """What a reference names, one and the same in a process."""
    provider: Provider = Reference.from_json(reference).call()
    return provider


@dataclass(frozen=True)
class Cohort:
    """The parties first..first+count-1 behind one node. `seed` is set in a simulation only.

    In a deployment `public_features` says that a party's rows may leave it without their labels, `declared` what the
    site knows of its data, `limits` how large an answer may be, and `paid` that its accounts have been charged for the
    one answer that is asked: without it nothing is answered. `masked` says that what is answered leaves it in a secure
    sum only: a share of a noise is given then, and nothing else. In a simulation `company` are the parties that the
    same process serves in a row, these among them, where they stand behind several nodes.
    """

    reference: str
    first: int
    count: int
    seed: int | None
    public_features: bool = False
    declared: Declared = NOTHING
    limits: Limits = CODE
    paid: bool = False
    masked: bool = False
    company: range | None = None

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Cohort":
        """Read a simulation's cohort from a Flower node configuration: `holdings` (a reference as JSON), `first-party`,
        `parties` and `seed`; where the node has company, `first-of-company` and `company`, how many parties that is.

        Raises `InputError` when a key is missing or malformed.
        """
        if "holdings" in config and "seed" not in config:
            raise InputError("a Flower node without a seed answers nothing; serve real rows by 'federation party run'")
        try:
            reference, first, count = str(config["holdings"]), int(config["first-party"]), int(config["parties"])
            whole("first-party of a node's configuration", first, 0, MOST_ROWS)
            whole("parties of a node's configuration", count, 1, MOST_ROWS)
            begin, many = int(config.get("first-of-company", first)), int(config.get("company", count))
            whole("first-of-company of a node's configuration", begin, max(0, first + count - many), first)
            whole("company of a node's configuration", many, count, MOST_ROWS)
            company = range(begin, begin + many) if many > count else None
            return cls(reference, first, count, int(config["seed"]), limits=SIMULATED, company=company)
        except KeyError as error:
            raise InputError(f"the node's configuration lacks {error}") from error
        except InputError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"first-party, parties and seed of a node's configuration must be whole numbers: {error!s:.200}"
            ) from error

    @property
    def provider(self) -> Provider:
        """The loaded provider, shared by the nodes of one process."""
        return provider_of(self.reference)

    def holdings(self, party: int, private_rows: bool = False) -> Holdings:
        """The rows of one party.

        Raises `InputError` when the provider gives those of another one, and as `Holdings.require_usable`, but not over
        `private_rows`, where a refusal would tell of a row.
        """
        found = self.provider.holdings(party)
        if not private_rows:
            found.require_usable()
        if found.party != party:
            raise InputError(f"asked for party {party}, the provider gave the rows of party {found.party}")
        return found

    @property
    def parties(self) -> range:
        """Ids of the parties behind this node."""
        return range(self.first, self.first + self.count)


@dataclass(frozen=True, eq=False, repr=False)
class Held:
    """Rows (R, d) and labels (R,) of P parties with `counts` (P,) rows each, one party after another. Never shown."""

    parties: np.ndarray
    rows: np.ndarray
    labels: np.ndarray
    counts: np.ndarray

    @property
    def owners(self) -> np.ndarray:
        """The position of each row's party, (R,)."""
        return np.repeat(np.arange(len(self.parties)), self.counts)

    def part(self, chosen: np.ndarray) -> "Held":
        """Some of the parties: boolean `chosen` (P,), or positions in ascending order; itself if these are all."""
        kept = np.zeros(len(self.parties), dtype=bool)
        kept[chosen] = True
        if kept.all():
            return self
        rows = np.repeat(kept, self.counts)
        return Held(self.parties[kept], self.rows[rows], self.labels[rows], self.counts[kept])

    def each(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows (n, d) and labels (n,) of one party after another."""
        ends = np.cumsum(self.counts)
        for start, end in zip(ends - self.counts, ends, strict=True):
            yield self.rows[start:end], self.labels[start:end]


@runtime_checkable
class ManyHoldings(Protocol):
    """A simulation's provider that hands over many parties at once, where one by one takes most of the time."""

    def held(self, parties: range) -> tuple[Held, Mapping[int, str]]:
        """The raw rows and labels of parties, and why the others do not answer; in all as `Provider.holdings`."""
