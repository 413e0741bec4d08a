"""Runs one world: one split of one sweep point, through the two apps, to scored rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from aggregator.node.failed_variants import FailedVariants
from aggregator.releases.model_files import head
from aggregator.world.plan import VariantPlan, WorldPlan
from aggregator.world.views import fitted
from federation.contract.randomness import generator
from federation.features.feature_map import FeatureMap
from federation.grids.launch import run_server_app
from federation.grids.nodes import Placement, most_per_node
from federation.grids.simulation import SimulationGrid
from parties.training.classifiers import LOGISTIC
from scenarios.data.catalogue import entry
from scenarios.runs.costs import Costs
from scenarios.scores.constant import constant_metrics
from scenarios.scores.results import Row, missed, protection
from scenarios.scores.scored import Scoring
from scenarios.scores.tasks import REGRESSION, scoring
from scenarios.settings.classifier import leading
from scenarios.settings.protocol_options import BASELINES, CONSTANT, INDIVIDUAL, task
from scenarios.settings.schema import Data, Scenario
from scenarios.settings.sweep import Variant
from scenarios.simulated.conduct import Conduct
from scenarios.simulated.simulation import Split, SplitSpec, split
from scenarios.simulated.targets import target_sets

INDIVIDUAL_SAMPLE = 1000  # parties whose own classifiers are scored
_NOBODY = {**protection({"non_private": True}), "noise": 0}


def conduct(scenario: Scenario, split: int) -> Conduct:
    """How the parties of a scenario without sweeps behave in one split."""
    honest = Conduct(scenario.parties.dropout, seed=scenario.seed, split=split)
    hostile = scenario.parties.hostile
    return honest if hostile is None else replace(honest, hostile=hostile.fraction, kind=hostile.kind)


def _class_names(data: Data) -> str:
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
    together = (
        f"; {', '.join(data.positive)} together are the positive class of two, as declared" if data.positive else ""
    )
    if data.classes is not None:
        return f"class names, and which columns hold text, are public knowledge as declared{together}"
    if known is not None:
        return f"class names, and which columns hold text, are those documented for the data set{together}"
    return (
        "class names, and which columns hold text, were read from all rows, private ones included, and are taken to "
        f"be public knowledge; declare data.classes where they are not{together}"
    )


@dataclass(frozen=True, eq=False)
class World:
    """One split of a scenario that has no sweeps left in it; `name` keys its noise, `directory` takes its files."""

    name: str
    scenario: Scenario
    variants: list[Variant]
    spec: SplitSpec
    directory: Path

    @cached_property
    def split(self) -> Split:
        """The data, loaded and cut."""
        return split(self.spec)

    @cached_property
    def feature_map(self) -> FeatureMap:
        """The public map of the baselines: what the aggregator fits for a release without noise."""
        return fitted(
            self.scenario.data.features,
            self.spec.reference("public_rows").call(),
            noise="off",
            classes=len(self.split.table.classes),
            parties=self.split.cut.parties,
            epsilon=np.inf,
            delta=self.scenario.privacy.delta,
        )

    @cached_property
    def scoring(self) -> Scoring:
        """What scores the releases, by the labels of the data and the task of the protocols."""
        known = task(variant.kind for variant in self.variants)
        if not self.split.table.classes:  # as of a scenario with baselines only
            known = known if known.labels == "real" else REGRESSION
        if not known.targets:
            return scoring(known, self.split)
        targets, cut = self.scenario.data.targets, self.split.cut
        sets = target_sets(self.split.table, cut.test, targets, seed=self.scenario.seed, split=self.spec.split)
        return scoring(known, self.split, sets)

    def plan(self, per_node: int) -> WorldPlan:
        """What the aggregator is asked to do, with `per_node` parties behind each node."""
        scenario, budget = self.scenario, self.scenario.privacy.budget
        kinds = {variant.kind for variant in self.variants}
        return WorldPlan(
            world=self.name,
            directory=str(self.directory),
            noise_seed=scenario.seed if scenario.privacy.entropy == "seed" else None,
            simulation=True,
            split=self.spec.split,
            parties=self.split.cut.parties,
            parties_per_node=per_node,
            quorum=scenario.parties.quorum,
            timeout=scenario.engine.timeout,
            classes=self.split.table.classes,
            class_names=_class_names(scenario.data),
            public=self.spec.reference("public_rows"),
            features=tuple(scenario.data.features),
            classifier=scenario.parties.classifier,
            variants=tuple(
                VariantPlan(variant.name, variant.kind, variant.options)
                for variant in self.variants
                if variant.kind not in BASELINES
            ),
            epsilons=tuple(scenario.privacy.epsilon),
            delta=scenario.privacy.delta,
            budget=None if budget is None else {"epsilon": budget.epsilon, "delta": budget.delta},
            draws=scenario.trials.noise,
            individual=INDIVIDUAL_SAMPLE if INDIVIDUAL in kinds else 0,
            bags=self.split.cut.bags_per_party,
            largest_bag=self.split.cut.largest_bag,
            smallest_bag=int(self.split.cut.bag_sizes.min()),
            rows_per_person=0 if scenario.data.person is None else scenario.data.rows_per_person,
            label_range=self.split.table.label_range,
            private_rows=len(self.split.cut.order),
            shifted=self.split.cut.shifted,
        )

    def run(self, grid: SimulationGrid, costs: Costs, sparing: bool = False) -> tuple[list[Row], dict[str, Any]]:
        """Scored rows of the variants that did not fail, and the aggregator's summary (ledger, failures, costs).

        Its `failed_variants` are also those that cannot be scored, and with `sparing` those that cannot begin. Raises
        `FederationError`.
        """
        with costs.phase("data"):
            cut, batched = self.split.cut, self.scenario.parties.classifier["name"] == LOGISTIC
            most = most_per_node(batched, len(cut.auxiliary))
            per_node = grid.cohort(cut.parties, self.scenario.engine.parties_per_node, most)
            plan = replace(self.plan(per_node), sparing=sparing)
        plan.save(self.directory / "plan.json")
        holdings = self.spec.reference("SimulatedParties", conduct=asdict(conduct(self.scenario, self.spec.split)))
        grid.assign(Placement(plan.parties, per_node, holdings, self.scenario.seed))
        run_server_app(grid, {"plan": str(self.directory / "plan.json")})
        summary = json.loads((self.directory / "world.json").read_text())
        for phase, seconds in summary["seconds"].items():
            costs.add(phase, seconds)
        with costs.phase("scoring"), threadpool_limits(1):
            released = [variant for variant in self.variants if variant.name not in summary["failed_variants"]]
            unscored, rows = FailedVariants(variant.name for variant in released), []
            for variant in released:
                with unscored.sparing_others(variant.name):
                    rows += list(self._rows(variant, summary))
        summary["failed_variants"] |= unscored.causes
        return rows, summary

    def _rows(self, variant: Variant, summary: dict[str, Any]) -> Iterator[Row]:
        base: Row = {
            "scenario": self.scenario.name,
            "protocol": variant.kind,
            "variant": variant.name,
            "default": int(variant.default),
            "split": self.spec.split,
            **variant.swept,
        }
        if variant.kind in BASELINES:
            metrics = self._baseline(variant.kind, summary)
            yield from ({**base, **_NOBODY, "metric": metric, "value": value} for metric, value in metrics.items())
            return
        path = self.directory / f"{variant.name}.npz"
        scored, (_, aims) = self.scoring.releases(path), head(path)
        costs, diagnostics = (summary[kind][variant.name] for kind in ("bytes_per_party", "diagnostics"))
        for (guarantee, draws), aim, cost, found in zip(scored, aims, costs, diagnostics, strict=True):
            protected = protection(guarantee)
            for draw, metrics in enumerate(draws):
                for metric, value in metrics.items():
                    yield {**base, **protected, "noise": draw, "metric": metric, "value": value}
            for metric, value in {**found, "bytes_per_party": cost, **missed(protected["epsilon"], aim)}.items():
                yield {**base, **protected, "noise": 0, "metric": metric, "value": value}

    def _baseline(self, kind: str, summary: Mapping[str, Any]) -> Mapping[str, float]:
        """The metrics of a baseline, which has no release."""
        if kind == INDIVIDUAL:
            asked: Mapping[str, float] = summary["individual"]
            return asked
        return constant_metrics(self.split) if kind == CONSTANT else self._pooled()

    def _pooled(self) -> dict[str, float]:
        """What the scenario's classifier, of a mixture its leading member, can do with everything."""
        random = generator(self.scenario.seed, "pooled", trial=self.spec.split)
        return self.scoring.pooled(self.feature_map, leading(self.scenario.parties.classifier), random)
