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

from aggregator.individual import IndividualScores
from aggregator.models import ReleasedModels
from aggregator.plan import PublicTable, WorldPlan
from aggregator.public import PublicRows
from aggregator.releasing import release, stacked
from federation.features import fit
from federation.grids.asking import Asking, Collector, require_quorum
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
    feature_map = fit(plan.features, table.rows, table.text_columns)
    public = PublicRows(feature_map, feature_map.transform(table.rows))
    training = Training(feature_map, len(plan.classes), plan.classifier, plan.split)
    protocols = {variant.name: protocol(variant.kind)(**variant.options) for variant in plan.variants}
    asked: dict[Any, tuple[Question, Collector]] = {}
    for chosen in protocols.values():
        ask = type(chosen).question  # variants whose protocols ask with the same function share the answers
        if ask not in asked:
            question = ask(public, training)
            asked[ask] = (question, chosen.collector(public, question, plan.parties))
    scores = None
    if plan.individual:
        baseline = IndividualQuestion(training, plan.individual)
        scores = IndividualScores(baseline, plan.parties)
        asked[IndividualQuestion] = (baseline, scores)
    causes = Asking(plan.parties_per_node, plan.timeout, plan.simulation).ask(grid, list(asked.values()))
    for _, collector in asked.values():
        expected = min(plan.parties, plan.individual) if collector is scores else plan.parties
        require_quorum(collector.answered, expected, plan.quorum, causes)
    collected = time.perf_counter()
    costs: dict[str, int] = {}
    ledger = Ledger(Budget(**plan.budget) if plan.budget else None)
    for name, chosen in protocols.items():
        question, collector = asked[type(chosen).question]
        prepared = chosen.prepare(collector)
        costs[name] = bytes_per_party(question.fields())
        releases = release(plan, name, chosen.noise, prepared, ledger)
        epsilons, weights = stacked(releases)
        guarantees = tuple(one.guarantee.to_dict() for one in releases)
        columns, text = tuple(table.columns), tuple(table.text_columns)
        models = ReleasedModels(name, plan.classes, columns, text, feature_map, epsilons, weights, guarantees)
        models.save(Path(plan.directory) / f"{name}.npz")
    summary: dict[str, Any] = {
        "ledger": ledger.to_dict(plan.delta),
        "bytes_per_party": costs,
        "individual": None if scores is None else scores.means(),
        "answered": min((collector.answered for _, collector in asked.values()), default=0),
        "failures": causes,
        "seconds": {"collect": collected - started, "release": time.perf_counter() - collected},
    }
    (Path(plan.directory) / "world.json").write_text(json.dumps(summary, indent=1))
