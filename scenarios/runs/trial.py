"""Trials of a scenario (`World`): one split of one sweep point, run through the two apps to scored rows.

`releases_about` counts the releases over periods that are about the same unit. `over_time` adds up what these releases
have spent on it together.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from aggregator.releases.model_files import head
from aggregator.server.app import run_plan
from aggregator.server.variants import FailedVariants
from aggregator.trial.feature_fitting import imputes
from aggregator.trial.plan import KnownNumbers, ReleasePlan, RunPlan, TaskPlan, TrialPlan, VariantPlan
from aggregator.trial.trial import fitted
from federation.contract.guarantee import Guarantee, Unit
from federation.contract.plugins import Reference
from federation.contract.randomness import generator
from federation.engines.nodes import Placement, SimulationGrid, most_per_node
from federation.features.feature_map import FeatureMap
from federation.mechanisms.accounting.composition import most_releases, spent_over_periods
from parties.training.classifiers import LOGISTIC
from scenarios.data.catalogue import contents, entry, is_file_name
from scenarios.data.hashing import hashings
from scenarios.runs.progress import Costs
from scenarios.scores.classification_scoring import ClassificationScoring, Stages, reference_stages
from scenarios.scores.results import Row, Unscored, missed, protection
from scenarios.scores.scoring import REGRESSION, Scoring, scoring
from scenarios.settings.parties import leading
from scenarios.settings.protocol_options import (
    BASELINES,
    CONSTANT,
    INDIVIDUAL,
    NOISE_FREE,
    POOLED,
    default_kind,
    requires,
    task,
)
from scenarios.settings.rules import noise_free
from scenarios.settings.schema import Scenario
from scenarios.settings.sections import Data, Privacy, Trials
from scenarios.settings.sweep import Variant, WorldSetting, cell_id, expand, variants, world_key
from scenarios.settings.words import ALL, PERIOD
from scenarios.simulated.secure_aggregation import NAME as SUMMATION
from scenarios.simulated.simulation import Conduct, Split, SplitSpec, period_names, split
from scenarios.simulated.targets import Target, target_sets

T = TypeVar("T")
INDIVIDUAL_SAMPLE = 1000  # parties whose own classifiers are scored
_NOBODY = {**protection({"non_private": True}), "noise": 0}


@dataclass(frozen=True, eq=False)
class World:
    """One split of one sweep point, with the scenario there; `name` is for its files, `key` for its noise.

    `swept` are the values of the swept keys, `periods` the names of those that rows arrive in, if they arrive over
    time. Data is loaded when asked for.
    """

    name: str
    key: str
    swept: Mapping[str, Any]
    scenario: Scenario
    spec: SplitSpec
    periods: tuple[str, ...] = ()

    @property
    def variants(self) -> list[Variant]:
        """All variants, in the order of the protocols."""
        return variants(self.scenario)

    @property
    def label(self) -> str:
        """Readable: the swept values and the split."""
        return ", ".join([*(f"{key}={value}" for key, value in self.swept.items()), f"split {self.spec.split}"])

    @property
    def place(self) -> str:
        """A folder name for the sweep point, empty without a sweep."""
        return "_".join(f"{key}={value}" for key, value in self.swept.items()).replace("/", "-")

    @property
    def split(self) -> Split:
        """The data, loaded and cut; the latest split of all is kept."""
        return split(self.spec)

    def feature_map(self, stages: Stages | None = None) -> FeatureMap:
        """The public map that the aggregator fits for a release without noise, of the scenario's stages or others."""
        return fitted(
            self.scenario.data.stages if stages is None else stages,
            self.spec.reference("public_rows").call(),
            noise="off",
            classes=len(self.split.table.classes),
            parties=self.split.cut.parties,
            epsilon=np.inf,
            delta=self.scenario.privacy.delta,
        )[0]

    @property
    def reference(self) -> list[str | Mapping[str, Any]]:
        """The stages of the map behind which baselines learn."""
        classifier = leading(self.scenario.parties.classifier) if self.split.table.classes else None
        return reference_stages(self.scenario.data.stages, classifier)

    def targets(self) -> list[Target]:
        """The unlabelled sets whose class ratios are estimated. Raises `InputError` where they cannot be drawn."""
        pieces, point = self.split, self.scenario
        chosen = dict(point.data.targets or {})
        return target_sets(pieces.table, pieces.cut.test, **chosen, seed=point.seed, split=self.spec.split)

    def scoring(self) -> Scoring:
        """What scores the releases, by the data's labels and the task of the protocols; nothing without test rows."""
        if not len(self.split.cut.test):
            return Unscored(self.split.table, self.split.cut.order, self.split.cut.test)
        known = task(variant.kind for variant in self.variants)
        if not self.split.table.classes:  # as of a scenario with baselines only
            known = known if known.labels == "real" else REGRESSION
        sets = [{target.share: target.indices for target in self.targets()}] if known.targets else []
        return scoring(known, self.split.table, self.split.cut.order, self.split.cut.test, *sets)

    def plan(self, directory: Path, per_node: int) -> TrialPlan:
        """What the aggregator is asked to do, with its files in `directory` and `per_node` parties behind each node."""
        scenario, cut = self.scenario, self.split.cut
        protocols = [variant for variant in self.variants if variant.kind not in BASELINES]
        planned = [VariantPlan(one.name, one.kind, one.options, one.key) for one in protocols]
        beside = {variant.kind for variant in self.variants if variant.kind in BASELINES and len(cut.test)}
        if NOISE_FREE in beside and (reference := noise_free(scenario.protocols)):
            planned.append(reference[1])
        asked = INDIVIDUAL in beside
        public = KnownNumbers(
            scenario.privacy.delta,
            scenario.trials.noise,
            scenario.terms(cut.parties),
            bags=cut.bags_per_party,
            smallest_bag=int(cut.bag_sizes.min()),
            largest_bag=cut.largest_bag,
            rows_per_person=0 if scenario.data.person is None else scenario.data.rows_per_person,
            common_bags=scenario.parties.common_bags,
            label_range=self.split.table.label_range,
            rows=len(cut.order),
        )
        task = TaskPlan(
            table=self.spec.reference("public_rows"),
            stages=scenario.data.stages,
            classes=self.split.table.classes,
            class_names=class_names(scenario.data) + public_file_premise(scenario.data),
            classifier=scenario.parties.classifier,
            split=self.spec.split,
            shifted=cut.shifted,
            robust=scenario.parties.robust,
            alike=scenario.parties.alike,
        )
        releases = release_plan(scenario, releases_about(scenario.trials, len(self.periods)) if self.periods else {})
        run = RunPlan(
            str(directory),
            simulation=True,
            noise_seed=scenario.seed if scenario.privacy.entropy == "seed" else None,
            parties_per_node=per_node,
            timeout=scenario.engine.timeout,
            individual=INDIVIDUAL_SAMPLE if asked else 0,
            reference=tuple(self.reference) if asked else (),
            summation=SUMMATION,
        )
        return TrialPlan(self.key, public, task, tuple(planned), releases, run)

    def holdings(self) -> Reference:
        """Who the parties are: what loads their rows, and says how they behave."""
        parties = self.scenario.parties
        conduct = Conduct(parties.dropout, seed=self.scenario.seed, split=self.spec.split)
        if parties.hostile is not None:
            conduct = replace(conduct, hostile=parties.hostile.fraction, kind=parties.hostile.kind)
        return self.spec.reference("SimulatedParties", conduct=asdict(conduct))

    @property
    def most_per_node(self) -> int:
        """Parties that it pays to put behind one node."""
        batched = self.scenario.parties.classifier["name"] == LOGISTIC
        return most_per_node(batched, len(self.split.public.rows))

    def run(
        self, grid: SimulationGrid, costs: Costs, directory: Path, sparing: bool = False
    ) -> tuple[list[Row], dict[str, Any]]:
        """Scored rows of the variants that did not fail, and the aggregator's summary (ledger, failures, costs).

        Its `failed_variants` are also those that cannot be scored, and with `sparing` those that cannot begin. Raises
        `FederationError`.
        """
        with costs.phase("data"):
            wanted = self.scenario.engine.parties_per_node
            per_node = grid.cohort(self.split.cut.parties, wanted, self.most_per_node)
            plan = self.plan(directory, per_node).changed(sparing=sparing)
        grid.assign(Placement(plan.terms.parties, per_node, self.holdings(), self.scenario.seed))
        run_plan(grid, plan)
        summary = json.loads((directory / "world.json").read_text())
        for phase, seconds in summary["seconds"].items():
            costs.add(phase, seconds)
        with costs.phase("scoring"), threadpool_limits(1):
            rows, causes = self._scored(directory, summary)
        summary["failed_variants"] |= causes
        return rows, summary

    def _scored(self, directory: Path, summary: dict[str, Any]) -> tuple[list[Row], dict[str, str]]:
        """Rows of the released variants in their order, and why some have none.

        All rows pooled are trained on while the others are scored.
        """
        released = [variant for variant in self.variants if variant.name not in summary["failed_variants"]]
        unscored, scored = FailedVariants(variant.name for variant in released), self.scoring()
        rows: dict[str, list[Row]] = {}

        def found(variant: Variant) -> list[Row]:
            return list(self._rows(variant, scored, directory, summary))

        aside = {variant.name: _aside(partial(found, variant)) for variant in released if variant.kind == POOLED}
        for variant in sorted(released, key=lambda variant: variant.name in aside):
            with unscored.sparing_others(variant.name):
                rows[variant.name] = aside[variant.name].result() if variant.name in aside else found(variant)
        return [row for variant in released for row in rows.get(variant.name, [])], unscored.causes

    def _rows(self, variant: Variant, scored: Scoring, directory: Path, summary: dict[str, Any]) -> Iterator[Row]:
        base: Row = {
            "scenario": self.scenario.name,
            "protocol": variant.kind,
            "variant": variant.name,
            "default": int(variant.default),
            "split": self.spec.split,
            **variant.swept,
        }
        if variant.kind in BASELINES:
            if isinstance(scored, Unscored):
                return  # there is nothing else to a baseline
            metrics = self._baseline(variant.kind, scored, summary, directory)
            yield from ({**base, **_NOBODY, "metric": metric, "value": value} for metric, value in metrics.items())
            return
        path = directory / f"{variant.name}.npz"
        releases, (_, aims) = scored.releases(path), head(path)
        costs, diagnostics = (summary[kind][variant.name] for kind in ("bytes_per_party", "diagnostics"))
        for (guarantee, draws), aim, cost, found in zip(releases, aims, costs, diagnostics, strict=True):
            protected = protection(guarantee)
            told = {**found, "bytes_per_party": cost, **missed(protected["epsilon"], aim)}
            for draw, metrics in [*enumerate(draws), (0, told)]:
                for metric, value in metrics.items():
                    yield {**base, **protected, "noise": draw, "metric": metric, "value": value}

    def _baseline(self, kind: str, scored: Scoring, summary: Mapping[str, Any], directory: Path) -> Mapping[str, float]:
        """The metrics of a baseline, which has no guarantee; of a mixture the leading member is `pooled`."""
        if kind == NOISE_FREE:
            if kind not in summary["diagnostics"]:  # it could not be made, as a remark says
                return {}
            [(_, [exact])] = scored.releases(directory / f"{NOISE_FREE}.npz")
            return exact
        if kind == INDIVIDUAL:
            asked: Mapping[str, float] = summary["individual"]
            return asked
        if kind == CONSTANT:
            suited = (
                scored
                if hasattr(scored, "constant")
                else ClassificationScoring(scored.table, scored.private, scored.test)
            )
            found: Mapping[str, float] = suited.constant()
            return found
        random = generator(self.scenario.seed, "pooled", trial=self.spec.split)
        return scored.pooled(self.feature_map(self.reference), leading(self.scenario.parties.classifier), random)


def _aside(act: Callable[[], T]) -> Future[T]:
    """What `act` makes in a thread of its own, which nobody has to wait for who interrupts the run."""
    made: Future[T] = Future()

    def run() -> None:
        try:
            made.set_result(act())
        except BaseException as error:
            made.set_exception(error)

    Thread(target=run, daemon=True).start()
    return made


def release_plan(scenario: Scenario, periods: Mapping[str, int]) -> ReleasePlan:
    """Return what a scenario releases, where `periods` releases are about the same unit."""
    budget, chosen = scenario.privacy.budget, scenario.chosen
    return ReleasePlan(
        tuple(scenario.privacy.epsilon),
        None if budget is None else {"epsilon": budget.epsilon, "delta": budget.delta},
        periods,
        "" if chosen is None else chosen.premise,
        None if chosen is None else chosen.charge,
    )


def split_of(scenario: Scenario, number: int, data_dir: str | None) -> SplitSpec:
    """The split `number` of a scenario without sweeps. Raises `InputError` when the data is missing."""
    data, parties = scenario.data, scenario.parties
    return SplitSpec(
        source=data.source,
        label=data.label,
        classes=data.classes,
        data_dir=data_dir,
        digest=contents(data.source, data.auxiliary, data_dir),
        auxiliary=data.auxiliary,
        test=data.test,
        parties=parties.count,
        rows=parties.rows,
        partition=parties.partition,
        seed=scenario.seed,
        split=number,
        bags=parties.bags,
        common_bags=parties.common_bags,
        person=data.person,
        label_range=data.range,
        outside=data.outside,
        positive=data.positive,
        missing=imputes(data.features),
        drop=data.drop,
        time=data.time,
        periods=scenario.trials.periods,
        window=length(scenario.trials),
        bag_each=requires(default_kind(scenario.protocols) or CONSTANT).bags,
        hashes=hashings(data.features),
    )


def worlds(scenario: Scenario, data_dir: str | None) -> list[World]:
    """All worlds of a scenario in the order of results.csv. Raises `InputError` when the data is missing.

    Examples:
        >>> from scenarios.settings.schema import resolve
        >>> [world.label for world in worlds(resolve("quickstart", ["parties.count=[100, 200]"]), None)][4:6]
        ['parties.count=100, split 4', 'parties.count=200, split 0']
    """
    found = []
    for setting in expand(scenario):
        first = split_of(setting.scenario, 0, data_dir)
        names = () if first.time is None else period_names(first)
        for period in range(2, len(names) + 1) if names else [0]:
            swept = {**setting.swept, PERIOD: period} if names else setting.swept
            one, spec = WorldSetting(swept, setting.scenario), replace(first, period=period)
            for number in range(setting.scenario.trials.splits):
                name, key = (named(one, number, first.digest) for named in (cell_id, world_key))
                found.append(World(name, key, swept, setting.scenario, replace(spec, split=number), names))
    return found


def public_file_premise(data: Data) -> str:
    """What the premise says of public rows that are in a file of their own."""
    if not is_file_name(data.auxiliary):
        return ""
    file = Path(data.auxiliary).name
    return f"; the public rows are those of the file {file}, none of which is anybody's private row, as declared"


def class_names(data: Data) -> str:
    """The premise about class names, or the range of real labels, and column types, for the ledger."""
    known = entry(data.source)
    if data.range is not None:
        clipped = "; labels outside are clipped to it first" if data.outside == "clip" else ""
        columns = "as declared" if known is None else "as documented for the data set"
        return (
            f"the range [{data.range[0]:g}, {data.range[1]:g}] of the labels is public knowledge as declared{clipped}, "
            f"and which columns hold text is {columns}"
        )
    if known is not None and known.label_range is not None:
        lo, hi = known.label_range
        return f"the range [{lo:g}, {hi:g}] of the labels, and which columns hold text, are as the data set documents"
    names = "class names, and which columns hold text,"
    if data.classes is not None:
        source = f"{names} are public knowledge as declared"
    elif known is not None:
        source = f"{names} are those documented for the data set"
    else:
        source = (
            f"{names} were read from all rows, private ones included, and are taken to "
            "be public knowledge; declare data.classes where they are not"
        )
    listed = ", ".join(data.positive or ())
    return f"{source}; {listed} together are the positive class of two, as declared" if listed else source


PREMISES = (
    "when a row arrives is public: a row that is exchanged, added or removed is one of the same period",
    "a party, and a person, may have rows in all periods, and what is released of each adds up",
    "public rows are those of the periods that a release learns from, or of a file, and are nobody's private rows",
)


def releases_about(trials: Trials, periods: int | None = None) -> dict[str, int]:
    """For each unit how many releases of a stream are about the same one at most, by the number of its `periods`.

    Without it that of the scenario is taken, where it says one; otherwise nothing is known yet.

    Examples:
        >>> from scenarios.settings.sections import Trials
        >>> found = releases_about(Trials(periods=8, window=2))
        >>> found["party"], found["label"]
        (7, 2)
    """
    known = stated(trials) if periods is None else periods
    return {} if known is None else {str(unit): most_releases(unit, known - 1, length(trials)) for unit in Unit}


def stated(trials: Trials) -> int | None:
    """The number of periods where a scenario says it; None where there are none, or only the data can tell."""
    if isinstance(trials.periods, int):
        return trials.periods
    return len(trials.periods) if isinstance(trials.periods, tuple) else None


def length(trials: Trials) -> int | None:
    """Periods of the window that a release learns from; None for all."""
    return None if trials.window == ALL else int(trials.window)


def over_time(
    ledgers: Sequence[Mapping[str, Any]], scenario: Scenario, periods: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """What `ledger.json` says of a stream with these names of its periods; nothing where there are none.

    `ledgers` are its worlds, of one split. `spent` is what one unit has spent over all periods, for each variant and
    epsilon of a setting: a release that protects a unit protects what is a part of it (`Unit.covers`), which has an
    entry of its own. Variants without a guarantee have none.
    """
    if not periods:
        return {}
    spent = [*_spent(ledgers, scenario.trials, scenario.privacy)]
    return {"over_periods": {"periods": list(periods), "premises": list(PREMISES), "spent": spent}}


def _spent(ledgers: Sequence[Mapping[str, Any]], trials: Trials, privacy: Privacy) -> Iterator[dict[str, Any]]:
    limit, window = privacy.budget, length(trials)
    target = privacy.delta if limit is None else limit.delta
    for swept, variant, releases in _series(ledgers):
        first = releases[min(releases)]
        for unit in (unit for unit in Unit if first.unit.covers(unit)):
            epsilon, delta = spent_over_periods(releases, window, unit, target)
            yield {
                "swept": swept,
                "variant": variant,
                "each": first.epsilon,
                "unit": str(unit),
                "adjacency": str(first.adjacency),
                "releases": len(releases),
                "about_one": most_releases(unit, len(releases), window),
                "epsilon": epsilon,
                "delta": delta,
                "budget": None if limit is None else {"epsilon": limit.epsilon, "delta": limit.delta},
            }


def _series(ledgers: Sequence[Mapping[str, Any]]) -> Iterator[tuple[dict[str, Any], str, dict[int, Guarantee]]]:
    """A setting, a variant and its guarantees by period at one of its epsilons; only of what has one in all of them."""
    settings: dict[str, dict[str, Any]] = {}
    found: dict[tuple[str, str, int], dict[int, Guarantee | None]] = {}
    for world in ledgers:
        swept, numbers = dict(world["swept"]), Counter[str]()
        period = swept.pop(PERIOD)
        settings[str(swept)] = swept
        for release in world["releases"]:
            variant, known = release["variant"], release["guarantee"]
            kept = None if known.get("non_private") else Guarantee.from_dict(known)
            found.setdefault((str(swept), variant, numbers[variant]), {})[period] = kept
            numbers[variant] += 1
    for (place, variant, _), each in found.items():
        private = {period: one for period, one in each.items() if one is not None}
        if len(private) == len(each):
            yield settings[place], variant, private
