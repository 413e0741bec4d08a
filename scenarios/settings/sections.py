"""The sections of a scenario file: frozen models with every default and, for each key, what it means."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from federation.contract.errors import nearest_name
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.contract.query import MOST_TRIALS
from federation.contract.trust import COLLUDING
from scenarios.data.hashing import Hashing, hashings, is_hashing
from scenarios.data.tables import Outside
from scenarios.settings.loader import KeyPath
from scenarios.settings.parties import (
    Auxiliary,
    Bags,
    Classifier,
    Partition,
    Periods,
    partition_kind,
    swept_number,
    swept_regularisations,
)
from scenarios.settings.parties import parse as parse_classifier
from scenarios.settings.problems import refusal, rule, shown
from scenarios.settings.values import (
    AutoCount,
    ClassName,
    Count,
    Name,
    Positive,
    Section,
    Stage,
    Sweep,
    TestShare,
    Told,
    all_distinct,
    all_values,
    read_as,
)
from scenarios.settings.words import BY, MOST_PERIODS, MOST_TARGET_ROWS, PRESCRIBED, SHARES, Kind

_Classes = tuple[ClassName, ...]
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Trials = Annotated[int, Field(ge=1, le=MOST_TRIALS)]
_MOST_SPLITS = 10_000  # of a setting: each has a name of its own before anything is run, and takes seconds to run


def _source(source: str) -> str:
    from scenarios.data.catalogue import names
    from scenarios.data.files import SUFFIXES

    if source not in names() and Path(source).suffix.lower() not in SUFFIXES:
        allowed = f"{', '.join(names())} or a {' or '.join(SUFFIXES)} file"
        raise refusal(f"must be {allowed}, got {shown(source)}{nearest_name(source, names())}")
    return source


def _range(ends: tuple[float, float] | None) -> tuple[float, float] | None:
    if ends is not None and ends[0] >= ends[1]:
        raise rule("must be two numbers [lo, hi] with lo < hi")
    return ends


class Targets(Section):
    """The target sets: one for each share of one class, the other classes in equal parts."""

    rows: Annotated[Count | None, Sweep()] = Field(
        default=None,
        description="Rows of each set; null takes as many as the test rows allow for all shares, up to "
        f"{MOST_TARGET_ROWS}.",
    )
    shares: Annotated[
        tuple[Annotated[float, Field(ge=0, le=1)], ...], all_distinct(1, "must be one or more different shares")
    ] = SHARES
    """Shares of the varied class, one set for each; the other classes have equal parts of the rest."""
    vary: Annotated[ClassName | None, Sweep()] = None
    """Name of the class whose share varies; null is the first class."""


class Data(Section):
    """Which rows there are, and which of them are public or held out."""

    source: Annotated[Name, AfterValidator(_source), Sweep()]
    """A data set by name (federation list shows them), or a csv, npz, Parquet or svmlight file, or a pattern
    of several Parquet or svmlight files, such as days/Day*.svm."""
    label: Annotated[Name | None, Sweep()] = None
    """Column of the class names or real labels, for own files."""
    classes: Annotated[_Classes, all_distinct(2, "must be two or more distinct class names")] | None = None
    """All class names in order, declared public; null takes those in the data."""
    positive: Annotated[_Classes, all_distinct(1, "must be one or more distinct class names")] | None = None
    """Classes that together are the positive one of two, all others the negative one; public. Null keeps the classes
    apart."""
    range: Annotated[tuple[_Finite, _Finite] | None, AfterValidator(_range)] = None
    """Public range [lo, hi] of real labels, declared and never taken from the data; null takes the documented one of a
    data set."""
    outside: Outside = "refuse"
    """Labels outside data.range: refuse, or clip (they move to the nearer end)."""
    auxiliary: Annotated[Auxiliary, Sweep()] = 0.25
    """Public unlabelled rows: a count, a fraction of the rows that are not for testing, official (the data set's own),
    {by: COLUMN, from: 0.1, to: 0.9} (rows with a probability that goes from one to the other along a column: public
    rows with other features), or a file of rows that are really public, with the columns of an own
    file (its labels, if any, are not used). All but the first two leave other rows for tests and parties alone. With
    data.time a count or fraction is one of each period, and what is public once stays so."""
    test: Annotated[TestShare, Sweep()] = 0.2
    """Held-out rows: official (the data set's own), a count or a fraction of all rows but public rows that are set
    apart before. With 0 models learn from all rows, and nothing is scored. With data.time it is next: all rows of the
    period that follows."""
    features: tuple[Stage, ...] = ("impute", "scale", {"whiten": "auto"}, "constant", "unit_norm")
    """Feature map, fitted on the auxiliary rows only and applied in this order; its default is the protocol's. impute,
    which must come first, takes missing cells: they become the column's median, and indicators tell of them unless it
    is {impute: {flags: false}}. scale does nothing to columns in one unit; others it standardises, and takes logarithms
    of those that are very skewed. hash comes before all others: {hash: 12} puts the sparse columns of svmlight into
    2^12, {hash: {column: NAME, bits: 12, words: 2}} the words of a column of texts, and pairs of them; {project: 50} is
    a random projection to 50 columns, from the scenario's seed. Neither depends on data."""
    person: Annotated[Name | None, Sweep()] = None
    """Column that says whose row each is, so that persons are protected; null: a row is a person."""
    time: Name | None = None
    """Column that says when each row arrived, by numbers, ISO dates, months (2023-02), quarters (2023-Q1) or weeks
    (2023-W07); public. Models then learn from past periods and are tested on the next (trials.periods)."""
    drop: Annotated[tuple[Name, ...], all_distinct(0, "must name different columns")] = ()
    """Columns of an own file that are no features, such as identifiers, dates and free text."""
    rows_per_person: Annotated[Count, Sweep()] = 1
    """Bags in which a person's rows count, one row in each; public, more needs more noise."""
    targets: Targets | None = None
    """Unlabelled sets whose class ratios are estimated, drawn from the test rows, as in {rows: 500, shares: [0.1, 0.5,
    0.9], vary: CLASS}; null takes the defaults where a protocol needs them."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the features but those that hash, which is done when rows are read."""
        return tuple(stage for stage in self.features if not is_hashing(stage))

    def clashes(self) -> Iterator[tuple[KeyPath, str]]:
        """A cap of rows without persons, target sets without test rows, and own files whose labels have no name."""
        if self.targets is not None and 0 in all_values(self.test):
            yield ("targets",), "are drawn from the test rows, and data.test is 0; remove them or hold out rows"
        if None in all_values(self.person) and max(all_values(self.rows_per_person)) > 1:
            yield ("rows_per_person",), "needs data.person, the column that says whose row each is"
        hashing = [*map(is_hashing, self.features)]
        if hashing != sorted(hashing, reverse=True):
            yield ("features",), "hash must come before all other stages: rows are hashed when they are read"
        columns = [Hashing.of(value).column for value in hashings(self.features)]
        if len({*columns}) < len(columns):
            yield ("features",), "hash names a column twice; use one stage for each column of texts"
        named = (".csv", ".parquet")
        if None in all_values(self.label) and any(s.lower().endswith(named) for s in all_values(self.source)):
            yield ("label",), "missing; a csv or Parquet file needs the name of the column of the labels"
        for name in (*all_values(self.label), *all_values(self.person), self.time):
            if name in self.drop:
                yield ("drop",), f"names '{name}', which is the column of the labels, persons or times; remove it here"
        if self.time is not None and self.time in all_values(self.label):
            yield ("time",), "names the column of the labels; choose the one that says when each row arrived"


class Hostile(Section):
    """Parties that try to spoil the outcome; a simulation of what the guarantee does not promise."""

    fraction: Annotated[float, Field(ge=0, le=1), Sweep()]
    """Share of the parties, rounded to a whole number of them; the seed decides which."""
    kind: Annotated[Kind, Sweep()] = "flip"
    """flip (each label becomes the next class), random (labels drawn at random), target (every label is the first
    class), malformed (answers that no honest party can give) or oversized (the largest allowed)."""


class Parties(Section):
    """Who holds the private rows and what each party trains."""

    count: Annotated[Count | None, Sweep()] = None
    """Number of parties; null with {by: COLUMN} means one per group."""
    rows: Annotated[Count | None, Sweep()] = None
    """Private rows per party; null deals out all rows."""
    partition: Annotated[Partition, Sweep()] = "iid"
    """How rows are dealt: iid, {dirichlet: ALPHA} (the smaller, the fewer classes a party sees), {quantity: SIGMA}
    (log-normal sizes), {majority: SHARE} (bag b has SHARE of each class but the b-th, in turn), {proportions: [SHARES,
    ...]} (of all classes, for one bag after another) or {by: COLUMN} (one party per value of a column)."""
    bags: Annotated[Bags, Sweep()] = 1
    """Bags of each party, with label counts of their own, dealt as parties are: a number, or {by: COLUMN} (one bag per
    value of a column within each party)."""
    common_bags: bool = False
    """Whether the bags are the same at all parties, each of whom has some of their rows or none, as with districts or
    months: all parts with the same value of the column, or the same number, are then one bag. What a secure sum of
    their label counts needs; which bags there are is public."""
    classifier: Annotated[Classifier, Sweep()] = Field(default_factory=lambda: parse_classifier("logistic"))
    """What each party trains where a protocol or baseline needs it: logistic, a scikit-learn classifier with its
    parameters, or one drawn from {mixture: [logistic, {GaussianNB: {}, weight: 2}]}; pooled trains the one of greatest
    weight."""
    quorum: Annotated[float, Field(gt=0, le=1), Sweep()] = 0.5
    """Least fraction of the parties that must answer; public."""
    colluding: Annotated[float, Field(ge=0, lt=1), Sweep()] = COLLUDING
    """Largest fraction of the parties, rounded up, that may tell whoever sees a secure sum what they sent; public. The
    noise is shared by the others of a quorum."""
    alike: Annotated[bool, Sweep()] = False
    """Whether the parties' rows are declared to be drawn alike; public. Answers that stand out by more than noise and
    chance are then clipped also where noise is small; where parties differ after all, what they know is lost."""
    robust: Annotated[bool, Sweep()] = True
    """Whether answers with a party's own noise are kept to what honest ones reach; false only to compare."""
    dropout: Annotated[float, Field(ge=0, lt=1), Sweep()] = 0.0
    """Probability that a party does not answer."""
    hostile: Hostile | None = None
    """Parties that attack, as in {fraction: 0.1, kind: flip}, by flip or random or target labels or malformed or
    oversized answers; null means none, and the baseline pooled has none."""

    def clashes(self) -> Iterator[tuple[KeyPath, str]]:
        """Numbers of parties, rows and bags that do not fit, sweeps within sweeps, and a quorum out of reach."""
        kinds, bags = [*map(partition_kind, all_values(self.partition))], all_values(self.bags)
        dealt = [kind for kind in kinds if kind != BY]
        if None in all_values(self.count) and dealt:
            yield ("count",), f"missing; the {dealt[0]} partition needs the number of parties"
        if isinstance(self.classifier, tuple) and any(map(swept_regularisations, self.classifier)):
            yield ("classifier",), "in a list of classifiers each regularisation must be one number"
        if isinstance(self.partition, tuple) and any(map(swept_number, self.partition)):
            yield ("partition",), "in a list of partitions each must have one number"
        prescribed = [kind for kind in kinds if kind in PRESCRIBED]
        uneven = [(n, b) for n in all_values(self.rows) for b in bags if n and isinstance(b, int) and n % b]
        if prescribed and any(isinstance(entry, Mapping) for entry in bags):
            yield ("bags",), f"must be a number: the {prescribed[0]} partition says what is in each bag"
        elif uneven and dealt:
            rows, number = uneven[0]
            yield ("bags",), f"must divide parties.rows, got {number} bags for {rows} rows; change one of them"
        if self.common_bags and 1 in bags:
            yield ("common_bags",), "is for several bags, and parties.bags is 1; name a column there, or remove it"
        dropout, quorum = max(all_values(self.dropout)), max(all_values(self.quorum))
        if dropout + quorum > 1:
            left = f"{dropout:g} leaves {1 - dropout:g} of the parties to answer on average"
            yield ("dropout",), f"{left}, but parties.quorum is {quorum:g}; lower one of them"


class Budget(Section):
    """The most that any one release may spend; those of a sweep are counterfactual to each other.

    Over periods it is the most that one party, person, row or label may spend in all of them together.
    """

    epsilon: Positive
    delta: Annotated[float, Field(ge=0, lt=1)]


class Privacy(Section):
    """How private each release must be."""

    epsilon: Annotated[tuple[float, ...], read_as(Annotated[Positive, Sweep()]), AfterValidator(all_values)]
    """Privacy loss of a release, one or several; smaller is more private."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    """Used by Gaussian noise; pure variants report 0."""
    budget: Budget | None = None
    """Refuse a release beyond {epsilon, delta}; null sets no limit. With data.time it lasts over all periods: what
    is released in each of them about the same party, person, row or label adds up."""
    entropy: Literal["seed", "system"] = "seed"
    """Key of the noise: seed (repeatable; a simulation, not to be published) or system."""


CHOSEN_ON_PRIVATE_DATA = "the protocol was chosen on the private data; this choice is outside the guarantee"


class Chosen(Section):
    """How the first protocol was chosen, which every ledger repeats, or counts, where private data decided."""

    by: Literal["pilot", "private selection"] = "pilot"
    """pilot: by trying protocols on rows (federation advise --pilot); private selection: the same with all that it
    tells paid for (--charged-pilot)."""
    private: bool = True
    """Whether a guarantee covers the choice, or it tells nothing of private rows, as with a pilot on public ones;
    false: it is outside the guarantee, and every ledger says so."""
    epsilon: Positive | None = None
    """Of a private selection what it has spent, which totals of ledgers and budgets count."""
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """The same."""
    unit: Literal["party", "person", "row", "label"] | None = None
    """Of a private selection whom it protects, who may be replaced."""

    def clashes(self) -> Iterator[tuple[KeyPath, str]]:
        """What a private selection has spent belongs to it, and to it alone."""
        for name, value in (("epsilon", self.epsilon), ("unit", self.unit)):
            if (value is None) is (self.by == "private selection"):
                yield (name,), "must be given for a private selection, which federation advise writes, and for no other"
        if self.by == "private selection" and not self.private:
            yield ("private",), "must be true for a private selection: what it has spent is counted"
        if self.by == "pilot" and "private" not in self.model_fields_set:
            yield ("private",), "missing; say whether the choice tells nothing of private rows"

    @property
    def premise(self) -> str:
        """What every ledger says of it; empty where there is nothing to say."""
        if self.epsilon is not None:
            return (
                f"the protocol was chosen by a private selection, which has spent epsilon {self.epsilon:.6g} and delta "
                f"{self.delta:g} for one {self.unit} of its rows beside this; totals count both"
            )
        return "" if self.private else CHOSEN_ON_PRIVATE_DATA

    @property
    def charge(self) -> dict[str, Any] | None:
        """What a private selection has spent, as a plain guarantee; None of any other choice."""
        if self.epsilon is None or self.unit is None:
            return None
        return Guarantee(self.epsilon, self.delta, Unit(self.unit), Adjacency.REPLACE, "private_selection").to_dict()


class Trials(Section):
    """How often the experiment is repeated."""

    splits: Annotated[int, Field(ge=1, le=_MOST_SPLITS)] = 5
    """Random divisions of the rows; with periods, of those of each period."""
    noise: _Trials = 5
    """Independent noise draws of each release."""
    periods: Periods | None = None
    """With data.time: a number of periods of equal length, a list of their starts (the last has no end, and rows before
    the first are left out), or {every: SPAN} with day, week, month, quarter, year or a number. There is a release for
    each but the first."""
    window: Annotated[
        int | Literal["all"],
        read_as(Literal["all"] | Annotated[int, Field(strict=True, ge=1, le=MOST_PERIODS)]),
        Told(f"must be all or a whole number from 1 to {MOST_PERIODS}"),
    ] = "all"
    """Periods before the tested one that a release learns from: all, or at most so many. Whoever arrives once has part
    in at most so many releases."""


class RayCluster(Section):
    """Which Ray the engine ray uses."""

    address: Name | None = None
    """An existing cluster, HOST:PORT or auto; null starts Ray on this machine."""


class Engine(Section):
    """Where it runs; nothing here changes a result, though a timeout may end a run without one."""

    kind: Literal["inline", "ray", "flower"] = "inline"
    """inline (this process), ray (worker processes) or flower (Flower's own simulation)."""
    parties_per_node: AutoCount = None
    """Parties that one message serves, or auto."""
    workers: AutoCount = None
    """Worker processes of ray and flower; auto is one per core."""
    timeout: Positive | None = None
    """Seconds of waiting for answers that end a run; null waits."""
    ray: RayCluster = RayCluster()

    def clashes(self) -> Iterator[tuple[KeyPath, str]]:
        """An address for another engine."""
        if self.ray.address is not None and self.kind != "ray":
            yield ("ray", "address"), "is for kind: ray; remove it or change kind"
