"""The Flower ServerApp: asks the parties of one world, learns, and releases every variant of its plan.

The run configuration's `plan` is the path of a `WorldPlan`; without one, its `simulation` makes plans. The releases
land in the plan's directory, one npz per variant, with `world.json` (ledger, costs, failures); no vote is ever written.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from aggregator.individual import IndividualScores, best_means
from aggregator.inquiry import Inquiry
from aggregator.models import ReleasedModels
from aggregator.plan import VariantPlan, WorldPlan
from aggregator.releasing import release
from aggregator.views import View, Views
from federation.grids.asking import Asking, require_quorum
from federation.grids.codec import bytes_per_party
from federation.grids.stock import StockGrid, numbered
from federation.ledger import Budget, Ledger
from federation.messages import IndividualQuestion, Question
from federation.reference import Reference
from federation.registry import protocol

app = ServerApp()


@dataclass(frozen=True)
class _Planned:
    """One release to come: the view it is learned behind, what was asked for it and where the answers are."""

    epsilon: float
    view: View
    question: Question
    collector: Any


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the plan named by the run configuration, or else the simulation, `module:attribute`, that it names.

    A simulation gets the grid and the configuration, and runs plans of its own. Raises `FederationError`s meant for
    the user.
    """
    config = context.run_config
    if config.get("plan"):
        plan = WorldPlan.load(Path(str(config["plan"])))
        run_plan(numbered(grid, -(-plan.parties // plan.parties_per_node)), plan)
        return
    nodes = StockGrid(grid)
    try:
        Reference(str(config["simulation"])).load()(nodes, config)
    finally:
        nodes.close()


def run_plan(grid: Grid, plan: WorldPlan) -> None:
    """Ask the parties of the plan's world, learn and release."""
    started = time.perf_counter()
    views, inquiry = Views(plan), Inquiry()
    protocols = {variant.name: protocol(variant.kind)(**variant.options) for variant in plan.variants}
    planned = {name: _plan_releases(plan, chosen, views, inquiry) for name, chosen in protocols.items()}
    scores = _ask_for_scores(plan, views, inquiry)
    causes = Asking(plan.parties, plan.parties_per_node, plan.timeout, plan.simulation).ask(grid, inquiry.questions())
    for collector in inquiry.collectors():
        expected = min(plan.parties, plan.individual) if collector in scores else plan.parties
        require_quorum(collector.answered, expected, plan.quorum, causes)
    collected = time.perf_counter()
    ledger = Ledger(Budget(**plan.budget) if plan.budget else None)
    diagnostics = {
        variant.name: _release(plan, variant, protocols[variant.name], planned[variant.name], views, ledger)
        for variant in plan.variants
    }
    summary: dict[str, Any] = {
        "ledger": ledger.to_dict(plan.delta),
        "diagnostics": diagnostics,
        "bytes_per_party": {name: _costs(releases) for name, releases in planned.items()},
        "individual": best_means(scores),
        "answered": min((collector.answered for collector in inquiry.collectors()), default=0),
        "failures": causes,
        "seconds": {"collect": collected - started, "release": time.perf_counter() - collected},
    }
    (Path(plan.directory) / "world.json").write_text(json.dumps(summary, indent=1))


def _plan_releases(plan: WorldPlan, chosen: Any, views: Views, inquiry: Inquiry) -> list[_Planned]:
    """One release per epsilon, a single one without noise; those behind one view share what is asked for them."""
    planned: list[_Planned] = []
    shared: dict[int, tuple[Question, Any]] = {}
    for epsilon in plan.epsilons if chosen.noise != "off" else (float("inf"),):
        view = views.at(chosen.noise, epsilon, minimiser=getattr(chosen, "perturb", None) == "output")
        if id(view) not in shared:
            question = chosen.question(view.public, view.training)
            collector = chosen.collector(view.public, question, plan.parties)
            shared[id(view)] = (question, inquiry.add(question, view.training, collector))
        planned.append(_Planned(epsilon, view, *shared[id(view)]))
    return planned


def _ask_for_scores(plan: WorldPlan, views: Views, inquiry: Inquiry) -> list[IndividualScores]:
    """Ask for the baseline of parties on their own behind every map in use: what suits an ensemble may not suit one."""
    if not plan.individual:
        return []
    found = []
    for view in views.known() or [views.at("off", float("inf"))]:
        question = IndividualQuestion(view.training, plan.individual)
        found.append(inquiry.add(question, view.training, IndividualScores(question, plan.parties)))
    return found


def _release(
    plan: WorldPlan, variant: VariantPlan, chosen: Any, planned: list[_Planned], views: Views, ledger: Ledger
) -> list[dict[str, float]]:
    """Learn and release one variant, and write its models; returns the diagnostics of each release."""
    prepared: dict[int, Any] = {}
    releases = []
    for task in planned:
        if id(task.view) not in prepared:
            prepared[id(task.view)] = chosen.prepare(task.collector)
        releases.append(release(plan, variant.name, chosen.noise, task.epsilon, prepared[id(task.view)], ledger))
    ReleasedModels(
        variant.name,
        plan.classes,
        tuple(views.table.columns),
        tuple(views.table.text_columns),
        np.array([task.epsilon for task in planned]),
        tuple(one.weights for one in releases),
        tuple(task.view.public.feature_map for task in planned),
        tuple(one.guarantee.to_dict() for one in releases),
    ).save(Path(plan.directory) / f"{variant.name}.npz")
    return [dict(one.diagnostics) for one in releases]


def _costs(planned: list[_Planned]) -> list[int]:
    """Bytes that one party sends for each release."""
    return [bytes_per_party(task.question.fields()) for task in planned]
