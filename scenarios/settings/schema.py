"""What a scenario file may say: frozen models, filled with every default by `resolve`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from aggregator.contract.limits import MOST_TRIALS
from federation.contract.errors import InputError, nearest_name
from scenarios.data.tables import Outside
from scenarios.settings.auxiliary_entry import Auxiliary
from scenarios.settings.classifier import Classifier, single_classifiers, swept_regularisations
from scenarios.settings.classifier import parse as parse_classifier
from scenarios.settings.label_rules import unsuited
from scenarios.settings.loader import load
from scenarios.settings.partition_entry import BY, Bags, Partition, partition_kind, swept_skew
from scenarios.settings.problems import problems, refusal, refuse, rule, shown
from scenarios.settings.protocol_list import Protocols
from scenarios.settings.protocol_options import misplaced, wanted_features
from scenarios.settings.section import Count, Section
from scenarios.settings.target_sets import Targets
from scenarios.settings.unused_settings import unused
from scenarios.settings.values import AutoCount, ClassName, OneOrMore, Stage, Sweep, TestShare, all_values
from scenarios.settings.yaml_rules import KeyPath
from scenarios.simulated.composition import PRESCRIBED
from scenarios.simulated.conduct import Kind

_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Trials = Annotated[int, Field(ge=1, le=MOST_TRIALS)]
_Probability = Annotated[float, Field(gt=0, lt=1)]
_Text = Annotated[str, Field(min_length=1)]


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", text):
        raise rule("must consist of letters, digits, '-', '_' and '.', the first of them no '.'")
    return text


def _source(source: str) -> str:
    from scenarios.data.catalogue import names
    from scenarios.data.files import SUFFIXES

    if source not in names() and Path(source).suffix.lower() not in SUFFIXES:
        allowed = f"{', '.join(names())} or a {' or '.join(SUFFIXES)} file"
        raise refusal(f"must be {allowed}, got {shown(source)}{nearest_name(source, names())}")
    return source


def _classes(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if names is not None and (len(names) < 2 or len(set(names)) < len(names)):
        raise rule("must be two or more distinct class names")
    return names


def _positive(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if names is not None and (not names or len(set(names)) < len(names)):
        raise rule("must be one or more distinct class names")
    return names


def _range(ends: tuple[float, float] | None) -> tuple[float, float] | None:
    if ends is not None and ends[0] >= ends[1]:
        raise rule("must be two numbers [lo, hi] with lo < hi")
    return ends


class Data(Section):
    """Which rows there are, and which of them are public or held out."""

    source: Annotated[_Text, AfterValidator(_source), Sweep()] = Field(
        description="A data set by name (federation list shows them), or a csv, npz or Parquet file."
    )
    label: Annotated[_Text | None, Sweep()] = Field(
        default=None, description="Column of the class names or real labels, for own files."
    )
    classes: Annotated[tuple[ClassName, ...] | None, AfterValidator(_classes)] = Field(
        default=None, description="All class names in order, declared public; null takes those in the data."
    )
    positive: Annotated[tuple[ClassName, ...] | None, AfterValidator(_positive)] = Field(
        default=None,
        description="Classes that together are the positive one of two, all others the negative one; public. Null "
        "keeps the classes apart.",
    )
    range: Annotated[tuple[_Finite, _Finite] | None, AfterValidator(_range)] = Field(
        default=None,
        description="Public range [lo, hi] of real labels, declared and never taken from the data; null takes the "
        "documented one of a data set.",
    )
    outside: Outside = Field(
        default="refuse", description="Labels outside data.range: refuse, or clip (they move to the nearer end)."
    )
    auxiliary: Annotated[Auxiliary, Sweep()] = Field(
        default=0.25,
        description="Public unlabelled rows: a count, a fraction of the rows that are not for testing, official (the "
        "data set's own), or {by: COLUMN, from: 0.1, to: 0.9} (rows with a probability that goes from one to the other "
        "along a column: public rows with other features); the last two are set apart before the test rows.",
    )
    test: Annotated[TestShare, Sweep()] = Field(
        default=0.2,
        description="Held-out rows: official (the data set's own), a count or a fraction of all rows but public rows "
        "that are set apart before.",
    )
    features: tuple[Stage, ...] = Field(
        default=("scale", {"whiten": "auto"}, "constant", "unit_norm"),
        description="Feature map, fitted on the auxiliary rows only and applied in this order; its default is the "
        "protocol's.",
    )
    person: Annotated[_Text | None, Sweep()] = Field(
        default=None,
        description="Column that says whose row each is, so that persons are protected; null: a row is a person.",
    )
    rows_per_person: Annotated[Count, Sweep()] = Field(
        default=1, description="Bags in which a person's rows count, one row in each; public, more needs more noise."
    )
    targets: Targets | None = Field(
        default=None,
        description="Unlabelled sets whose class ratios are estimated, drawn from the test rows, as in {rows: 500, "
        "shares: [0.1, 0.5, 0.9], vary: CLASS}; null takes the defaults where a protocol needs them.",
    )

    @model_validator(mode="after")
    def _cap_of_persons(self) -> Data:
        if None in all_values(self.person) and max(all_values(self.rows_per_person)) > 1:
            refuse([(("rows_per_person",), refusal("needs data.person, the column that says whose row each is"), None)])
        return self

    @model_validator(mode="after")
    def _label_of_own_file(self) -> Data:
        named = (".csv", ".parquet")
        if None in all_values(self.label) and any(s.lower().endswith(named) for s in all_values(self.source)):
            text = "missing; a csv or Parquet file needs the name of the column of the labels"
            refuse([(("label",), refusal(text), None)])
        return self


class Hostile(Section):
    """Parties that try to spoil the outcome; a simulation of what the guarantee does not promise."""

    fraction: Annotated[float, Field(ge=0, le=1), Sweep()] = Field(
        description="Share of the parties, rounded to a whole number of them; the seed decides which."
    )
    kind: Annotated[Kind, Sweep()] = Field(
        default="flip",
        description="flip (each label becomes the next class), random (labels drawn at random), target (every label "
        "is the first class), malformed (answers that no honest party can give) or oversized (the largest allowed).",
    )


class Parties(Section):
    """Who holds the private rows and what each party trains."""

    count: Annotated[Count | None, Sweep()] = Field(
        default=None, description="Number of parties; null with {by: COLUMN} means one per group."
    )
    rows: Annotated[Count | None, Sweep()] = Field(
        default=None, description="Private rows per party; null deals out all rows."
    )
    partition: Annotated[Partition, Sweep()] = Field(
        default="iid",
        description="How rows are dealt: iid, {dirichlet: ALPHA} (the smaller, the fewer classes a party sees), "
        "{quantity: SIGMA} (log-normal sizes), {majority: SHARE} (bag b has SHARE of each class but the b-th, in "
        "turn), {proportions: [SHARES, ...]} (of all classes, for one bag after another) or {by: COLUMN} (one party "
        "per value of a column).",
    )
    bags: Annotated[Bags, Sweep()] = Field(
        default=1,
        description="Bags of each party, with label counts of their own, dealt as parties are: a number, or {by: "
        "COLUMN} (one bag per value of a column within each party).",
    )
    classifier: Annotated[Classifier, Sweep()] = Field(
        default_factory=lambda: parse_classifier("logistic"),
        description="What each party trains where a protocol or baseline needs it: logistic, a scikit-learn classifier "
        "with its parameters, or one drawn from {mixture: [logistic, {GaussianNB: {}, weight: 2}]}; pooled trains the "
        "one of greatest weight.",
    )
    quorum: Annotated[float, Field(gt=0, le=1), Sweep()] = Field(
        default=0.5, description="Least fraction of the parties that must answer; public."
    )
    dropout: Annotated[float, Field(ge=0, lt=1), Sweep()] = Field(
        default=0.0, description="Probability that a party does not answer."
    )
    hostile: Hostile | None = Field(
        default=None,
        description="Parties that attack, as in {fraction: 0.1, kind: flip}, by flip or random or target labels or "
        "malformed or oversized answers; null means none, and the baseline pooled has none.",
    )

    @model_validator(mode="after")
    def _count_unless_grouped(self) -> Parties:
        dealt = [kind for kind in map(partition_kind, all_values(self.partition)) if kind != BY]
        if None in all_values(self.count) and dealt:
            refuse([(("count",), refusal(f"missing; the {dealt[0]} partition needs the number of parties"), None)])
        classifiers = all_values(self.classifier)
        if len(classifiers) > 1 and any(map(swept_regularisations, classifiers)):
            text = "in a list of classifiers each regularisation must be one number"
            refuse([(("classifier",), refusal(text), None)])
        partitions = all_values(self.partition)
        if len(partitions) > 1 and any(map(swept_skew, partitions)):
            refuse([(("partition",), refusal("in a list of partitions each must have one number"), None)])
        return self

    @model_validator(mode="after")
    def _rows_for_bags(self) -> Parties:
        bags, kinds = all_values(self.bags), [*map(partition_kind, all_values(self.partition))]
        prescribed = [kind for kind in kinds if kind in PRESCRIBED]
        if prescribed and any(isinstance(entry, Mapping) for entry in bags):
            text = f"must be a number: the {prescribed[0]} partition says what is in each bag"
            refuse([(("bags",), refusal(text), None)])
        uneven = [(n, b) for n in all_values(self.rows) for b in bags if n and isinstance(b, int) and n % b]
        if uneven and any(kind != BY for kind in kinds):
            rows, number = uneven[0]
            text = f"must divide parties.rows, got {number} bags for {rows} rows; change one of them"
            refuse([(("bags",), refusal(text), None)])
        return self

    @model_validator(mode="after")
    def _quorum_in_reach(self) -> Parties:
        dropout, quorum = max(all_values(self.dropout)), max(all_values(self.quorum))
        if dropout + quorum > 1:
            text = (
                f"{dropout:g} leaves {1 - dropout:g} of the parties to answer on average, but parties.quorum is "
                f"{quorum:g}; lower one of them"
            )
            refuse([(("dropout",), refusal(text), None)])
        return self


class Budget(Section):
    """The most that any one release may spend; those of a sweep are counterfactual to each other."""

    epsilon: _Positive
    delta: Annotated[float, Field(ge=0, lt=1)]


class Privacy(Section):
    """How private each release must be."""

    epsilon: Annotated[tuple[float, ...], OneOrMore(_Positive)] = Field(
        description="Privacy loss of a release, one or several; smaller is more private."
    )
    delta: _Probability = Field(default=1e-6, description="Used by Gaussian noise; pure variants report 0.")
    budget: Budget | None = Field(
        default=None, description="Refuse a release beyond {epsilon, delta}; null sets no limit."
    )
    entropy: Literal["seed", "system"] = Field(
        default="seed",
        description="Key of the noise: seed (repeatable; a simulation, not to be published) or system.",
    )


class Trials(Section):
    """How often the experiment is repeated."""

    splits: _Trials = Field(default=5, description="Random divisions of the rows.")
    noise: _Trials = Field(default=5, description="Independent noise draws of each release.")


class RayCluster(Section):
    """Which Ray the engine ray uses."""

    address: _Text | None = Field(
        default=None, description="An existing cluster, HOST:PORT or auto; null starts Ray on this machine."
    )


class Engine(Section):
    """Where it runs; nothing here changes a result, though a timeout may end a run without one."""

    kind: Literal["inline", "ray", "flower"] = Field(
        default="inline",
        description="inline (this process), ray (worker processes) or flower (Flower's own simulation).",
    )
    parties_per_node: AutoCount = Field(default=None, description="Parties that one message serves, or auto.")
    workers: AutoCount = Field(default=None, description="Worker processes of ray and flower; auto is one per core.")
    timeout: _Positive | None = Field(
        default=None, description="Seconds of waiting for answers that end a run; null waits."
    )
    ray: RayCluster = RayCluster()

    @model_validator(mode="after")
    def _address_of_ray(self) -> Engine:
        if self.ray.address is not None and self.kind != "ray":
            refuse([(("ray", "address"), refusal("is for kind: ray; remove it or change kind"), None)])
        return self


class Scenario(Section):
    """A whole scenario. Scalars of `data` and `parties` that are swept hold tuples until `sweep.expand`."""

    name: Annotated[_Text, AfterValidator(_name)] = Field(description="Names the run and its folder.")
    description: str | None = Field(default=None, description="What it shows, in one line.")
    data: Data
    parties: Parties
    protocols: Protocols = Field(
        default=({"kind": "soft_vote"},),  # checked like a file's
        validate_default=True,
        description="Compared side by side on the same data and parties; options given as lists are swept.",
    )
    privacy: Privacy
    trials: Trials = Trials()
    engine: Engine = Engine()
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(
        default=1, description="Everything random follows from it; results of equal seeds are equal."
    )

    @model_validator(mode="after")
    def _protocols_suit_the_world(self) -> Scenario:
        trained = [member for value in all_values(self.parties.classifier) for member in single_classifiers(value)]
        found: set[tuple[KeyPath, str]] = {
            (("protocols", position), text)
            for position, protocol in enumerate(self.protocols)
            for classifier in trained
            for text in protocol.refusals(self.data.features, classifier)
        }
        found |= {(("protocols", position), text) for position, text in misplaced(self.protocols)}
        found |= {*unsuited(self), *unused(self)}
        if found:
            refuse([(path, refusal(text), None) for path, text in sorted(found)])
        return self

    def to_plain(self) -> dict[str, Any]:
        """Plain values as in a scenario file, every default written out; `resolve` of it is this scenario."""
        return self.model_dump(mode="json")


def resolve(source: str | Path | Mapping[str, Any], overrides: Iterable[str] = ()) -> Scenario:
    """Read, override and check a scenario: a file, the name of a library scenario, or a mapping.

    `overrides` are `KEY=VALUE` settings, applied in order. `name` defaults to the file's name. A relative
    `data.source` becomes absolute when it is a file beside the scenario file (or, when it comes from an
    override, in the working directory). Raises `InputError` with one line per problem, each with its file and
    line or its setting, the key path, what is allowed and what came.
    """
    document = load(source)
    _find_files(document.value, document.base)
    for setting in overrides:
        document.override(setting)
    _find_files(document.value, Path.cwd())
    _default_features(document.value)
    document.value.setdefault("name", re.sub(r"[^A-Za-z0-9._-]+", "-", document.stem).lstrip(".") or "scenario")
    try:
        return Scenario.model_validate_json(json.dumps(document.value), strict=True)
    except ValidationError as error:
        found = sorted(problems(error, Scenario), key=lambda problem: document.order(problem[0]))
        raise InputError("\n".join(f"{document.place(path)}: {_dotted(path)}{text}" for path, text in found)) from None


def _default_features(plain: dict[str, Any]) -> None:
    """Put in the feature map that the first protocol wants where none is asked for and it wants one of its own."""
    data, protocols = plain.get("data"), plain.get("protocols")
    if isinstance(data, dict) and isinstance(protocols, list):
        kinds = [entry.get("kind") for entry in protocols if isinstance(entry, dict)]
        if features := wanted_features(kinds):
            data.setdefault("features", list(features))


def _dotted(path: KeyPath) -> str:
    return f"{'.'.join(map(str, path))}: " if path else ""


def swept_keys(section: type[Section]) -> list[str]:
    """The keys of a section that may hold a tuple of values, in order."""
    fields = section.model_fields.items()
    return [key for key, field in fields if any(isinstance(mark, Sweep) for mark in field.metadata)]


def _find_files(document: Mapping[str, Any], base: Path) -> None:
    """Make the sources that are files under `base` absolute, in place."""
    data = document.get("data")
    if not isinstance(data, dict) or "source" not in data:
        return

    def found(source: Any) -> Any:
        if not isinstance(source, str) or not Path(source).suffix:
            return source
        path = base / Path(source).expanduser()
        return str(path.resolve()) if path.is_file() else source

    source = data["source"]
    data["source"] = [found(item) for item in source] if isinstance(source, list) else found(source)
