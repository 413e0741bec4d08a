"""The plan of one trial: one split of the data under one setting of the sweep.

Protocols compute their planned guarantees from its public numbers before any query is sent.
"""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, get_type_hints

import numpy as np

from federation.contract.errors import InputError
from federation.contract.files import read_object
from federation.contract.guarantee import Guarantee, Unit, require_delta, require_epsilon
from federation.contract.plugins import Reference
from federation.contract.query import MOST_DRAWS, MOST_ROWS, whole
from federation.contract.trust import TrustTerms
from federation.contract.validation import typed

_ONE = TrustTerms(1)


@dataclass(frozen=True)
class PublicNumbers:
    """What is known without a look at private data; None where it is not known yet, as before any data is read.

    `terms` are None where the number of parties is not known. `features` are those behind the public feature map,
    `public_rows` the auxiliary rows, `bags`, `smallest_bag`, `largest_bag`, `common_bags` and `rows_per_person` as in
    `KnownNumbers`. `delta` is the declared one, `draws` how many noise draws of a release are asked
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


@dataclass(frozen=True)
class KnownNumbers(PublicNumbers):
    """The public numbers of a trial: `bags` is the most bags of a party, or with `common_bags` how many there are.

    The bags are then the same at all parties. `largest_bag` and `smallest_bag` are the most and fewest rows of a bag,
    and `rows_per_person` is as in `federation.queries.bags.Bags`. `rows` are used where a guarantee is for replaced
    rows or labels, and for expectations.
    """

    terms: TrustTerms = _ONE
    bags: int = 1
    smallest_bag: int = 0
    largest_bag: int = 0
    common_bags: bool = False


T = TypeVar("T")


MOST_PARTIES = 10**8  # of one trial, whose every question takes a byte for each

_REMEDY = "write it again with `TrialPlan.save`"


class PublicTable(Protocol):
    """The public auxiliary rows: raw values (N, columns), their column names, and which columns hold text codes."""

    rows: np.ndarray
    columns: tuple[str, ...]
    text_columns: tuple[int, ...]


@dataclass(frozen=True)
class VariantPlan:
    """One protocol with resolved options, compared side by side with the others of its trial.

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
    return cls(
        **{name: typed(hints.get(name, Any), value, _FILED.get(name, name)) for name, value in record.items()}, **parts
    )


@dataclass(frozen=True)
class TaskPlan:
    """What is learned from what: public rows, the labels, the feature map, and how parties train behind it.

    `table` loads the auxiliary rows (a `PublicTable`), and `stages` make the feature map. Real labels have no
    `classes`. `class_names` says where the names of classes, or the range of labels, come from, for the ledger.
    `shifted` says that the public rows are drawn otherwise than the private ones. `robust` keeps answers that are
    private one by one to what honest ones reach, and `alike` declares that parties' rows are drawn alike
    (`aggregator.collectors.robust_sums.Robustness`).

    Raises `InputError` for one class alone or twice, and for a classifier without a name and parameters.
    """

    table: Reference
    stages: tuple[Any, ...]
    classes: tuple[str, ...]
    class_names: str
    classifier: Mapping[str, Any]
    split: int = 0
    shifted: bool = False
    robust: bool = True
    alike: bool = False

    def __post_init__(self) -> None:
        whole("split of a plan", self.split, 0, MOST_ROWS)
        known = self.classifier.get("name"), self.classifier.get("parameters")
        if not isinstance(known[0], str) or not isinstance(known[1], Mapping):
            raise InputError(
                f"the classifier of a plan must have a name and parameters, got {dict(self.classifier)!r:.100}"
            )
        if len(self.classes) == 1 or len({*self.classes}) < len(self.classes):
            raise InputError(
                f"a plan must have two or more different classes, or none, got {list(self.classes)!r:.100}"
            )


@dataclass(frozen=True)
class ReleasePlan:
    """At which epsilons each variant is released, and what the releases may spend.

    `periods` says for each unit how many releases over time will be about the same one
    (`aggregator.contract.ledger.Budget`). `chosen` says how the protocol was chosen where that was on private data, for
    every ledger, and `choice`, a plain `Guarantee`, what was spent on it where that is counted.

    Raises `InputError` for numbers out of range.
    """

    epsilons: tuple[float, ...]
    budget: Mapping[str, float] | None = None
    periods: Mapping[str, int] = field(default_factory=dict)
    chosen: str = ""
    choice: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for epsilon in self.epsilons:
            require_epsilon(epsilon)
        if not self.epsilons:
            raise InputError("a plan must have an epsilon, got none")
        if self.budget is not None and self.budget.keys() != {"epsilon", "delta"}:
            raise InputError(f"the budget of a plan must have epsilon and delta, got {dict(self.budget)!r:.100}")
        if self.choice is not None:
            Guarantee.from_dict(dict(self.choice))
        for unit, number in self.periods.items():
            whole(f"periods of a plan for one {Unit(unit)}", number, 1, MOST_ROWS)


@dataclass(frozen=True)
class RunPlan:
    """How the parties are asked, and where the releases go.

    Releases land in `directory`. `noise_seed` None takes noise from the operating system. Node n serves the parties
    (n-1)*parties_per_node and following; `timeout` is in seconds. `simulation` keeps the texts of failures.
    `individual` is the number of parties whose own accuracy is a (NON-PRIVATE) baseline, behind a map of the stages
    `reference`, too. `sparing` lets a variant that cannot begin fail alone, as one that fails later. `in_letters` says
    that questions travel in the letters of an exchange (`aggregator.exchange`), which tell one exchange from another:
    releases then have the same names in all of them. `summation` names, as `module:attribute`, what adds shares of one
    noise (`aggregator.collectors.collectors.Summation`); without a name they are added as they come.

    Raises `InputError` for numbers out of range, and for what only a simulation may ask for: seeded noise, a named
    summation and that baseline.
    """

    directory: str
    simulation: bool
    noise_seed: int | None = None
    parties_per_node: int = 1
    timeout: float | None = None
    individual: int = 0
    reference: tuple[Any, ...] = ()
    sparing: bool = False
    in_letters: bool = False
    summation: str = ""

    def __post_init__(self) -> None:
        whole("parties_per_node of a plan", self.parties_per_node, 1)
        whole("individual of a plan", self.individual, 0, MOST_ROWS)
        if self.simulation:
            return
        if self.noise_seed is not None:
            raise InputError("outside a simulation noise_seed must be null: whoever knows the seed knows the noise")
        if self.summation:
            raise InputError("outside a simulation no plan may name a summation: it would see every share")


@dataclass(frozen=True)
class TrialPlan:
    """One trial: the public numbers of its parties, what is learned, the variants to release, and how it is run.

    `name` names the trial and keys its noise. The classes, features and public rows among the `public` numbers are
    counted when the trial begins.

    Raises `InputError` for numbers out of range, a range beside classes or without two finite ends lo < hi, variants
    whose names no two files can have (some file systems do not tell a from A), or whose keys are alike, and for what
    only a simulation may ask for.
    """

    name: str
    public: KnownNumbers
    task: TaskPlan
    variants: tuple[VariantPlan, ...]
    releases: ReleasePlan
    run: RunPlan

    def __post_init__(self) -> None:
        self._require_own_names()
        public, terms = self.public, self.terms
        whole("parties of a plan", terms.parties, 1, MOST_PARTIES)
        whole("draws of a plan", public.draws, 1, MOST_DRAWS)
        for name in ("bags", "largest_bag", "smallest_bag", "rows_per_person"):
            whole(f"{name} of a plan", getattr(public, name), 0, MOST_ROWS)
        whole("private_rows of a plan", public.rows or 0, 0, MOST_PARTIES * MOST_ROWS)
        require_delta(public.delta)
        if not (0 < terms.quorum <= 1 and 0 <= terms.colluding < 1):
            raise InputError(
                "a plan must have a quorum in (0, 1] and a colluding share in [0, 1), got "
                f"{terms.quorum:g} and {terms.colluding:g}"
            )
        if public.label_range is not None:
            (lo, hi), classes = public.label_range, self.task.classes
            if classes or not (math.isfinite(lo) and math.isfinite(hi) and lo < hi):
                raise InputError(
                    "label_range is for real labels, without classes, and must be two finite numbers lo < hi, got "
                    f"[{lo:g}, {hi:g}] with {len(classes)} classes"
                )
        if self.run.simulation:
            return
        if terms.servers != "one" and not self.run.in_letters:
            raise InputError(
                "outside a simulation, and without letters to real sites, one server adds up secure sums (servers: "
                f"one), got {terms.servers}"
            )
        if any(variant.reference for variant in self.variants):
            raise InputError("outside a simulation no variant of a plan may be a reference: nobody would be charged")
        if public.draws != 1 or self.run.individual != 0:
            raise InputError(
                f"outside a simulation draws must be 1 and individual 0, got {public.draws} and {self.run.individual}: "
                "each draw spends the privacy of a release again, and the baseline has none"
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
        return self.public.terms

    def changed(self, **values: Any) -> "TrialPlan":
        """Return the plan with other values of fields, which are found in its parts by their names.

        Raises `TypeError` for a name that no part has.
        """
        terms = _taken(self.terms, values)
        public = replace(_taken(self.public, values, but=("terms", *_COUNTED)), terms=terms)
        parts = {name: _taken(getattr(self, name), values) for name in ("task", "releases", "run")}
        return replace(self, public=public, **parts, **values)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, flat: the names in a file are the same for whatever parts a plan has."""
        public = {name: value for name, value in asdict(self.public).items() if name not in ("terms", *_COUNTED)}
        flat = asdict(self.terms) | public | {"rows": self.public.rows or 0}
        for part in (self.task, self.releases, self.run):
            flat |= asdict(part)
        plain = {_FILED.get(name, name): value for name, value in flat.items()}
        return {"world": self.name, **plain, "variants": [asdict(variant) for variant in self.variants]}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "TrialPlan":
        """Inverse of `to_dict`. Raises `InputError`, and `TypeError` for values of other types or unknown ones."""
        names = {filed: name for name, filed in _FILED.items()}
        flat = {names.get(name, name): value for name, value in record.items()}
        name, rows = typed(str, flat.pop("world"), "world"), typed(int, flat.pop("rows", 0), "private_rows")
        table = Reference(**flat.pop("table"))
        variants = tuple(_made(VariantPlan, variant) for variant in flat.pop("variants"))
        terms = _made(TrustTerms, _part(TrustTerms, flat))
        public = _made(KnownNumbers, _part(KnownNumbers, flat, but=_COUNTED), terms=terms, rows=rows or None)
        task = _made(TaskPlan, _part(TaskPlan, flat), table=table)
        releases, run = _made(ReleasePlan, _part(ReleasePlan, flat)), _made(RunPlan, _part(RunPlan, flat))
        return cls(name, public, task, variants, releases, run, **flat)

    def save(self, path: Path) -> None:
        """Write as JSON."""
        path.write_text(json.dumps(self.to_dict(), indent=1))

    @classmethod
    def load(cls, path: Path) -> "TrialPlan":
        """Inverse of `save`. Raises `InputError` when the file is missing or malformed."""
        try:
            return cls.from_dict(read_object(path, _REMEDY))
        except InputError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"the plan {path} cannot be read: {error}; {_REMEDY}") from error


# Not in a plan: counted when a trial begins, or for expectations alone.
_COUNTED = ("classes", "features", "public_rows", "attainable", "majority", "residual", "traces", "spectrum")
_FILED = {"table": "public", "stages": "features", "rows": "private_rows"}  # other names in a file


def _part(part: type, values: dict[str, Any], but: Collection[str] = ()) -> dict[str, Any]:
    """Take what a part has fields for out of `values`."""
    return {one.name: values.pop(one.name) for one in fields(part) if one.name in values and one.name not in but}


def _taken(part: Any, values: dict[str, Any], but: Collection[str] = ()) -> Any:
    """Return a part with what it has fields for, which is taken out of `values`."""
    return replace(part, **_part(type(part), values, but))


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
