"""Runs one world: one split of one sweep point, through the two apps, to scored rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from aggregator.models import ReleasedModels
from aggregator.plan import VariantPlan, WorldPlan
from aggregator.views import fitted
from federation.digest import digest as digest_of
from federation.features import FeatureMap
from federation.grids.launch import run_server_app
from federation.grids.nodes import Placement, most_per_node
from federation.grids.simulation import SimulationGrid
from federation.randomness import generator
from parties.classifiers import LOGISTIC
from parties.classifiers import fit as fit_classifier
from scenarios.catalogue import digest, names
from scenarios.classifier import leading
from scenarios.conduct import Conduct
from scenarios.costs import Costs
from scenarios.protocol_options import BASELINES
from scenarios.results import Row
from scenarios.schema import Data, Scenario
from scenarios.scoring import TestRows, hit_metrics, score
from scenarios.simulation import Split, SplitSpec, split
from scenarios.sweep import Variant

POOLED, INDIVIDUAL = BASELINES
INDIVIDUAL_SAMPLE = 1000  # parties whose own classifiers are scored
_NOBODY = {"epsilon": np.inf, "delta": 0.0, "unit": "none", "noise": 0}


def split_spec(scenario: Scenario, number: int, data_dir: str | None) -> SplitSpec:
    """The split `number` of a scenario without sweeps."""
    data, parties = scenario.data, scenario.parties
    return SplitSpec(
        source=data.source,
        label=data.label,
        classes=data.classes,
        data_dir=data_dir,
        digest=digest(data.source, data_dir),
        auxiliary=data.auxiliary,
        test=data.test,
        parties=parties.count,
        rows=parties.rows,
        partition=parties.partition,
        seed=scenario.seed,
        split=number,
    )


def conduct(scenario: Scenario, split: int) -> Conduct:
    """How the parties of a scenario without sweeps behave in one split."""
    honest = Conduct(scenario.parties.dropout, seed=scenario.seed, split=split)
    hostile = scenario.parties.hostile
    return honest if hostile is None else replace(honest, hostile=hostile.fraction, kind=hostile.kind)


def _class_names(data: Data) -> str:
    """The premise about class names and column types, for the ledger."""
    if data.classes is not None:
        return "class names, and which columns hold text, are public knowledge as declared"
    if data.source in names():
        return "class names, and which columns hold text, are those documented for the data set"
    return (
        "class names, and which columns hold text, were read from all rows, private ones included, and are taken to "
        "be public knowledge; declare data.classes where they are not"
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
    def _tests(self) -> dict[str, TestRows]:
        return {}

    def test(self, feature_map: FeatureMap) -> TestRows:
        """Labelled test rows behind a map; each map is applied once."""
        name = digest_of(*feature_map.to_arrays())
        if name not in self._tests:
            table, indices = self.split.table, self.split.cut.test
            rows = feature_map.transform(table.rows(indices))
            self._tests[name] = TestRows.of(rows, table.labels[indices], len(table.classes))
        return self._tests[name]

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
        )

    def run(self, grid: SimulationGrid, costs: Costs) -> tuple[list[Row], dict[str, Any]]:
        """Scored rows, and the aggregator's summary (ledger, failures, costs). Raises `FederationError`."""
        with costs.phase("data"):
            cut, batched = self.split.cut, self.scenario.parties.classifier["name"] == LOGISTIC
            most = most_per_node(batched, len(cut.auxiliary))
            per_node = grid.cohort(cut.parties, self.scenario.engine.parties_per_node, most)
            plan = self.plan(per_node)
        plan.save(self.directory / "plan.json")
        holdings = self.spec.reference("SimulatedParties", conduct=asdict(conduct(self.scenario, self.spec.split)))
        grid.assign(Placement(plan.parties, per_node, holdings, self.scenario.seed))
        run_server_app(grid, {"plan": str(self.directory / "plan.json")})
        summary = json.loads((self.directory / "world.json").read_text())
        for phase, seconds in summary["seconds"].items():
            costs.add(phase, seconds)
        with costs.phase("scoring"), threadpool_limits(1):
            rows = [row for variant in self.variants for row in self._rows(variant, summary)]
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
            metrics = self._pooled() if variant.kind == POOLED else summary["individual"]
            yield from ({**base, **_NOBODY, "metric": metric, "value": value} for metric, value in metrics.items())
            return
        models = ReleasedModels.load(self.directory / f"{variant.name}.npz")
        costs, diagnostics = (summary[kind][variant.name] for kind in ("bytes_per_party", "diagnostics"))
        for guarantee, weights, feature_map, cost, found in zip(
            models.guarantees, models.weights, models.feature_maps, costs, diagnostics, strict=True
        ):
            known = _NOBODY if guarantee.get("non_private") else guarantee
            protected = {name: known[name] for name in ("epsilon", "delta", "unit")}
            scores = score(self.test(feature_map), weights)
            for draw in range(len(weights)):
                for metric, values in scores.items():
                    yield {**base, **protected, "noise": draw, "metric": metric, "value": float(values[draw])}
            for metric, value in {**found, "bytes_per_party": cost}.items():
                yield {**base, **protected, "noise": 0, "metric": metric, "value": value}

    def _pooled(self) -> dict[str, float]:
        """The scenario's classifier on the union of all private rows (Hamm's `batch`), without any privacy.

        Of a mixture, its leading member. The rows are those that the parties hold: nobody drops out or attacks.
        """
        table, held = self.split.table, self.split.cut.order
        rows = self.feature_map.transform(table.rows(held))
        random = generator(self.scenario.seed, "pooled", trial=self.spec.split)
        classifier = leading(self.scenario.parties.classifier)
        predict = fit_classifier(rows, table.labels[held], classifier, random)
        test = self.test(self.feature_map)
        metrics = hit_metrics(test, (predict(test.rows) == test.labels)[:, None])
        return {metric: float(values[0]) for metric, values in metrics.items()}
