"""What one run of the aggregator is asked to do: one world, that is one split of the data.

Public numbers of a world, from which a protocol says what it will promise before anything is asked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, get_type_hints

import numpy as np

from federation.contract.errors import InputError
from federation.contract.files import read_object
from federation.contract.guarantee import Guarantee, Unit, require_delta, require_epsilon
from federation.contract.plugins import Reference
from federation.contract.query import MOST_DRAWS, MOST_ROWS, whole
from federation.contract.trust import COLLUDING, Servers, TrustTerms
from federation.contract.validation import typed


@dataclass(frozen=True)
class PublicNumbers:
    """What is known without a look at private data; None where it is not known yet, as before any data is read.

    `terms` are None where the number of parties is not known. `features` are those behind the public feature map,
    `public_rows` the auxiliary rows, `bags`, `smallest_bag`, `largest_bag`, `common_bags` and `rows_per_person` as in
    `aggregator.trial.plan.WorldPlan`. `delta` is the declared one, `draws` how many noise draws of a release are asked
    for.

    The others are for expectations alone. `rows` are the private rows of all parties together. What somebody knows of
    the data from elsewhere: `attainable`, the accuracy that can be had without noise, `majority`, the share of the most
    frequent class, `residual`, the variance of labels around the best linear model, `traces`, by shape that of the
    noise on label sums over public rows, and `spectrum`, of public rows of norm 1 behind the map of `mean_operator` the
    second moments along their principal directions.
    """

    delta: float
    draws: int = 1
    terms: TrustTerms | None = None
    classes: int | None = None
    features: int | None = None
    public_rows: int | None = None
    bags: int | None = None
    smallest_bag: int | None = None
    largest_bag: int | None = None
    rows_per_person: int = 0
    common_bags: bool | None = None
    label_range: tuple[float, float] | None = None
    rows: int | None = None
    attainable: float | None = None
    majority: float | None = None
    residual: float | None = None
    traces: Mapping[str, float] = field(default_factory=dict)
    spectrum: tuple[float, ...] = ()

    @property
    def parties(self) -> int | None:
        """The number of enrolled parties."""
        return None if self.terms is None else self.terms.parties


def product(*sizes: int | None) -> int | None:
    """The product of sizes, None where one is not known.

    Examples:
        >>> product(3, 512), product(3, None)
        (1536, None)
    """
    whole = 1
    for size in sizes:
        if size is None:
            return None
        whole *= size
    return whole


T = TypeVar("T")

MOST_PARTIES = 10**8  # of one world, whose every question takes a byte for each

_REMEDY = "write it again with `WorldPlan.save`"


class PublicTable(Protocol):
    """The public auxiliary rows: raw values (N, columns), their column names, and which columns hold text codes."""

    rows: np.ndarray
    columns: tuple[str, ...]
    text_columns: tuple[int, ...]


@dataclass(frozen=True)
class VariantPlan:
    """One protocol with resolved options, compared side by side with the others of its world.

    `key` is what its seeded noise follows from, the name where it is empty. A `reference` is a simulation's own, beside
    releases: nobody is charged for it, and no other baseline sees it.
    """

    name: str
    kind: str
    options: Mapping[str, Any]
    key: str = ""
    reference: bool = False


def _made(cls: type[T], record: dict[str, Any], **parts: Any) -> T:
    """A dataclass of plain values, each checked against its declared type, and of `parts` that are made already.

    Raises `TypeError` for values of other types and for unknown or missing ones.
    """
    hints = get_type_hints(cls)
    return cls(**{name: typed(hints.get(name, Any), value, name) for name, value in record.items()}, **parts)


@dataclass(frozen=True)
class WorldPlan:
    """One world: K declared parties, public rows and classes, the variants to release at each epsilon.

    `public` loads the auxiliary rows (a `PublicTable`). `world` names the world and keys its noise; `noise_seed` None
    takes noise from the operating system. Node n serves the parties (n-1)*parties_per_node and following. `quorum` is
    the least fraction of the declared parties that must answer, `colluding` the largest that may tell whoever sees a
    secure sum what they sent, `servers` who adds it up, `individual` the number of parties whose own accuracy is a
    (NON-PRIVATE) baseline, behind a map of the stages `reference`, too, `timeout` in seconds. `simulation` keeps the
    texts of failures. `class_names` says where the class names come from, for the ledger. Real labels have no `classes`
    but a public `label_range` [lo, hi], and `class_names` says where that comes from. `bags` is the most bags of a
    party, `largest_bag` and `smallest_bag` the most and fewest rows of one, and `rows_per_person` as in
    `federation.queries.bags.Bags`; all are public. With `common_bags` the bags are the same at all parties, and there
    are `bags` of them. So are `private_rows`, the rows of all parties together, where a
    guarantee is for replaced rows or labels, and is used by nothing else. `shifted` says that the public rows are drawn
    otherwise than the private ones. `sparing` lets a variant that cannot begin fail alone, as one that fails later.
    `robust` keeps answers that are private one by one to what honest ones reach, and `alike` declares that parties'
    rows are drawn alike (`aggregator.collectors.robust_sums.Robustness`). `in_letters` says that questions travel in
    the
    letters of an exchange (`aggregator.exchange`), which tell one exchange from another: releases then have the same
    names in all of them.
    `summation` names, as `module:attribute`, what adds shares of one noise
    (`aggregator.collectors.collectors.Summation`); without a name they are added as they come.
    `chosen` says how the protocol was chosen where that was on private data, for every ledger, and `choice`, a plain
    `Guarantee`, what was spent on it where that is counted. `periods` says for each
    unit how many releases over time will be about the same one (`aggregator.contract.ledger.Budget`).

    Raises `InputError` for numbers out of range, a range beside classes or without two finite ends lo < hi, variants
    whose names no two files can have (some file systems do not tell a from A), or whose keys are alike, and for what
    only a simulation may ask for: seeded noise, references, several draws and that baseline.
    """

    world: str
    directory: str
    noise_seed: int | None
    simulation: bool
    split: int
    parties: int
    parties_per_node: int
    quorum: float
    timeout: float | None
    classes: tuple[str, ...]
    class_names: str
    public: Reference
    features: tuple[Any, ...]
    classifier: Mapping[str, Any]
    variants: tuple[VariantPlan, ...]
    epsilons: tuple[float, ...]
    delta: float
    budget: Mapping[str, float] | None
    draws: int
    individual: int
    bags: int = 1
    largest_bag: int = 0
    rows_per_person: int = 0
    label_range: tuple[float, float] | None = None
    smallest_bag: int = 0
    private_rows: int = 0
    shifted: bool = False
    sparing: bool = False
    colluding: float = COLLUDING
    servers: Servers = "one"
    reference: tuple[Any, ...] = ()
    robust: bool = True
    alike: bool = False
    in_letters: bool = False
    summation: str = ""
    chosen: str = ""
    choice: Mapping[str, Any] | None = None
    periods: Mapping[str, int] = field(default_factory=dict)
    common_bags: bool = False

    def __post_init__(self) -> None:
        self._require_own_names()
        whole("parties of a plan", self.parties, 1, MOST_PARTIES)
        whole("parties_per_node of a plan", self.parties_per_node, 1)
        whole("draws of a plan", self.draws, 1, MOST_DRAWS)
        for name in ("individual", "bags", "largest_bag", "smallest_bag", "rows_per_person", "split"):
            whole(f"{name} of a plan", getattr(self, name), 0, MOST_ROWS)
        whole("private_rows of a plan", self.private_rows, 0, MOST_PARTIES * MOST_ROWS)
        require_delta(self.delta)
        for epsilon in self.epsilons:
            require_epsilon(epsilon)
        if not self.epsilons or not (0 < self.quorum <= 1 and 0 <= self.colluding < 1):
            raise InputError(
                "a plan must have an epsilon, a quorum in (0, 1] and a colluding share in [0, 1), got "
                f"{len(self.epsilons)} epsilons, {self.quorum:g} and {self.colluding:g}"
            )
        known = self.classifier.get("name"), self.classifier.get("parameters")
        if not isinstance(known[0], str) or not isinstance(known[1], Mapping):
            raise InputError(
                f"the classifier of a plan must have a name and parameters, got {dict(self.classifier)!r:.100}"
            )
        if len(self.classes) == 1 or len({*self.classes}) < len(self.classes):
            raise InputError(
                f"a plan must have two or more different classes, or none, got {list(self.classes)!r:.100}"
            )
        if self.budget is not None and self.budget.keys() != {"epsilon", "delta"}:
            raise InputError(f"the budget of a plan must have epsilon and delta, got {dict(self.budget)!r:.100}")
        if self.choice is not None:
            Guarantee.from_dict(dict(self.choice))
        if self.label_range is not None:
            lo, hi = self.label_range
            if self.classes or not (math.isfinite(lo) and math.isfinite(hi) and lo < hi):
                raise InputError(
                    "label_range is for real labels, without classes, and must be two finite numbers lo < hi, got "
                    f"[{lo:g}, {hi:g}] with {len(self.classes)} classes"
                )
        for unit, number in self.periods.items():
            whole(f"periods of a plan for one {Unit(unit)}", number, 1, MOST_ROWS)
        if self.simulation:
            return
        if self.noise_seed is not None:
            raise InputError("outside a simulation noise_seed must be null: whoever knows the seed knows the noise")
        if self.servers != "one" and not self.in_letters:
            raise InputError(
                "outside a simulation, and without letters to real sites, one server adds up secure sums (servers: "
                f"one), got {self.servers}"
            )
        if self.summation:
            raise InputError("outside a simulation no plan may name a summation: it would see every share")
        if any(variant.reference for variant in self.variants):
            raise InputError("outside a simulation no variant of a plan may be a reference: nobody would be charged")
        if self.draws != 1 or self.individual != 0:
            raise InputError(
                f"outside a simulation draws must be 1 and individual 0, got {self.draws} and {self.individual}: each "
                "draw spends the privacy of a release again, and the baseline has none"
            )

    def _require_own_names(self) -> None:
        """Refuse names that no file in the plan's directory can have, and those of two variants that are alike.

        One of these would be asked and not be charged, or have the file or the seeded noise of the other.
        """
        for name in (variant.name for variant in self.variants):
            if not name or name.startswith(".") or not name.isprintable() or {*name} & {*"/\\"}:
                raise InputError(
                    "the name of a variant must be that of a file, without a dot first, and with neither / nor \\, "
                    f"got {name!r:.100}"
                )
        keys = [variant.key or variant.name for variant in self.variants if not variant.reference]
        for what, known in (("name", [variant.name.lower() for variant in self.variants]), ("key", keys)):
            if len({*known}) < len(known):
                raise InputError(f"variants of a plan must each have a {what} of their own, got {known!r:.200}")

    @property
    def terms(self) -> TrustTerms:
        """What is declared about parties and servers."""
        return TrustTerms(self.parties, self.quorum, self.colluding, self.servers)

    def save(self, path: Path) -> None:
        """Write as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def load(cls, path: Path) -> WorldPlan:
        """Inverse of `save`. Raises `InputError` when the file is missing or malformed."""
        try:
            record = read_object(path, _REMEDY)
            public = Reference(**record.pop("public"))
            variants = tuple(_made(VariantPlan, variant) for variant in record.pop("variants"))
            return _made(cls, record, public=public, variants=variants)
        except InputError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"the plan {path} cannot be read: {error}; {_REMEDY}") from error
