"""The Flower ServerApp: asks the parties of one world, learns, and releases every variant of its plan.

The run configuration's `plan` is the path of a `WorldPlan`. The releases land in the plan's directory, one npz per
variant, with `world.json` (ledger, costs, failures); no vote is ever written.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from aggregator.asking import Collector, ask, require_quorum
from aggregator.individual import IndividualScores
from aggregator.models import ReleasedModels
from aggregator.plan import PublicTable, VariantPlan, WorldPlan
from aggregator.public import PublicRows
from aggregator.releasing import release, stacked
from federation.features import fit
from federation.grids.codec import bytes_per_party
from federation.ledger import Budget, Ledger
from federation.messages import IndividualQuestion, Question, Training
from federation.registry import protocol

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the plan named by the run configuration. Raises `FederationError`s meant for the user."""
    plan = WorldPlan.load(Path(str(context.run_config["plan"])))
    started = time.perf_counter()
    table: PublicTable = plan.public.call()
    public = PublicRows(*_mapped(plan, table))
    training = Training(public.feature_map, len(plan.classes), plan.classifier, plan.split)
    protocols = [(variant, protocol(variant.kind)(**variant.options)) for variant in plan.variants]
    asked: dict[str, tuple[Question, Collector]] = {}
    for _, chosen in protocols:
        question = chosen.question(public, training)
        if question.kind not in asked:
            asked[question.kind] = (question, chosen.collector(public, question, plan.parties))
    scores = None
    if plan.individual:
        baseline = IndividualQuestion(training, plan.individual)
        scores = IndividualScores(baseline, plan.parties)
        asked[baseline.kind] = (baseline, scores)
    causes = ask(grid, list(asked.values()), plan.timeout)
    for question, collector in asked.values():
        expected = min(plan.parties, plan.individual) if collector is scores else plan.parties
        require_quorum(collector.answered, expected, plan.quorum, causes)
    collected = time.perf_counter()
    ledger = Ledger(Budget(**plan.budget) if plan.budget else None)
    for variant, chosen in protocols:
        kind = chosen.question(public, training).kind
        prepared = chosen.prepare(asked[kind][1])
        releases = release(plan, variant.name, chosen.noise, prepared, ledger)
        epsilons, weights = stacked(releases)
        _models(plan, variant, table, public, epsilons, weights, [r.guarantee.to_dict() for r in releases])
    summary: dict[str, Any] = {
        "ledger": ledger.to_dict(plan.delta),
        "bytes_per_party": {kind: bytes_per_party(question.fields()) for kind, (question, _) in asked.items()},
        "individual": None if scores is None else scores.means(),
        "failures": causes,
        "seconds": {"collect": collected - started, "release": time.perf_counter() - collected},
    }
    (Path(plan.directory) / "world.json").write_text(json.dumps(summary, indent=1))


def _mapped(plan: WorldPlan, table: PublicTable) -> tuple[Any, Any]:
    feature_map = fit(plan.features, table.rows, table.text_columns)
    return feature_map, feature_map.transform(table.rows)


def _models(
    plan: WorldPlan,
    variant: VariantPlan,
    table: PublicTable,
    public: PublicRows,
    epsilons: Any,
    weights: Any,
    guarantees: list[dict[str, Any]],
) -> None:
    models = ReleasedModels(
        variant.name,
        plan.classes,
        tuple(table.columns),
        tuple(table.text_columns),
        public.feature_map,
        epsilons,
        weights,
        tuple(guarantees),
    )
    models.save(Path(plan.directory) / f"{variant.name}.npz")
