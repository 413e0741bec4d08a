"""The Flower ServerApp: asks the parties of one world, learns, and releases every variant of its plan.

The run configuration's `plan` is the path of a `WorldPlan`; without one, its `simulation` makes plans. The releases
land in the plan's directory, one npz per variant, with `world.json` (ledger, costs, failures); no vote is ever written.

The baseline `individual`: mean scores of the parties' own classifiers, NON-PRIVATE.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from aggregator.collectors.collectors import Answers
from aggregator.contract.ledger import Budget, Ledger, charged
from aggregator.contract.session import told
from aggregator.server.releasing import Inquiry
from aggregator.server.variants import Variants
from aggregator.trial.plan import WorldPlan
from aggregator.trial.trial import Views, World
from federation.contract.errors import FederationError
from federation.contract.plugins import Reference
from federation.contract.query import Collector, Question, Submission
from federation.engines.nodes import StockGrid
from federation.engines.sending import Asking, Failures, require_quorum
from federation.queries.votes import IndividualQuestion


class IndividualScores(Answers):
    """Collects the scores of a sample of at most `parties` parties; sums in party order, whoever answers first."""

    question: IndividualQuestion

    def __init__(self, question: IndividualQuestion, parties: int) -> None:
        super().__init__(question, min(parties, question.first))
        self._scores = {name: np.full(self.parties, np.nan) for name in question.fields()}

    def _faults(self, submission: Submission) -> dict[str, np.ndarray]:
        fields = self.question.fields()
        return {f"no {name} from 0 to 1": fields[name].invalid(found) for name, found in submission.arrays.items()}

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        for name, found in arrays.items():
            self._scores[name][parties] = found

    def means(self) -> dict[str, float]:
        """Mean of each score over the parties that answered."""
        return {name: float(np.nanmean(scores)) for name, scores in self._scores.items() if self.answered}


def best_means(scores: Sequence[IndividualScores]) -> dict[str, float] | None:
    """The means behind the feature map that suits the parties' accuracy best, the first of equals; None for no map."""
    return max((one.means() for one in scores), key=lambda means: means.get("accuracy", 0.0), default=None)


app = ServerApp()
_log = logging.getLogger(__name__)


@app.main()  # type: ignore[untyped-decorator]  # flwr is not typed
def main(grid: Grid, context: Context) -> None:
    """Run the plan named by the run configuration, or else the simulation, `module:attribute`, that it names.

    A plan is for a grid of this process, whose nodes are numbered. A simulation gets Flower's grid and the
    configuration, and runs plans of its own. Raises `FederationError`s meant for the user.
    """
    config = context.run_config
    if config.get("plan"):
        run_plan(grid, WorldPlan.load(Path(str(config["plan"]))))
        return
    nodes = StockGrid(grid)
    try:
        Reference(str(config["simulation"])).load()(nodes, config)
    finally:
        nodes.close()


class Summing(Protocol):
    """Carries out a secure sum between real parties over their answers to a question."""

    def ask(self, question: Question, collectors: Sequence[Collector], failures: Failures) -> None:
        """Ask for one sum, for all collectors. Raises `QuorumError`."""
        ...


def run_plan(grid: Grid, plan: WorldPlan, sums: Summing | None = None) -> None:
    """Ask the parties of the plan's world, learn and release; `sums` adds up what hides nothing by itself.

    Raises `FederationError`s. Outside a simulation a variant that failed is one, once the others are released.
    """
    started = time.perf_counter()
    views, inquiry = Views(plan), Inquiry()
    variants = Variants(World(plan, views), inquiry)
    outlooks = {} if plan.split else variants.outlooks()  # other splits divide the same numbers of rows and parties
    found = [] if plan.split else views.remarks()
    for line in (*found, *told(outlooks, plan.parties)):
        _log.warning("%s", line)
    scores = _ask_for_scores(plan, views, inquiry)
    variants.begin_references()
    ledger = Ledger(Budget.of(plan.budget, plan.periods, plan.choice), charged(plan.choice))
    asking, failures = Asking(plan.parties, plan.parties_per_node, plan.timeout), Failures(plan.simulation)
    while asked := inquiry.questions():
        asking.ask(grid, [one for one in asked if sums is None or not one[0].shared], failures)
        if sums is not None:
            for question, collectors in asked:
                if question.shared:
                    sums.ask(question, collectors, failures)
        for collector in (collector for _, collectors in asked for collector in collectors):
            expected = min(plan.parties, plan.individual) if collector in scores else plan.parties
            require_quorum(collector.answered, expected, plan.quorum, failures.causes())
        inquiry.close()
        variants.proceed(ledger)
    collected = time.perf_counter()
    diagnostics = variants.finish(ledger)
    for name, cause in variants.missing.items():
        found.append(f"the reference '{name}' could not be made: {cause}")
        _log.warning("%s", found[-1])
    summary: dict[str, Any] = {
        "ledger": ledger.to_dict(plan.delta),
        "diagnostics": diagnostics,
        "disclosure": {
            "world": plan.world,
            "simulation": plan.simulation,
            "parties": plan.parties,
            "quorum": plan.quorum,
            "servers": plan.servers,
            "private_rows": plan.private_rows,
            "public_rows": len(views.table.rows),
            "draws": plan.draws,
            "variants": variants.disclosed(),
        },
        "outlooks": [
            {"variant": name, "epsilon": epsilon, **asdict(outlook)}
            for name, by_epsilon in outlooks.items()
            for epsilon, outlook in by_epsilon.items()
        ],
        "remarks": found,
        "bytes_per_party": variants.costs(),
        "individual": best_means(scores),
        "answered": min((collector.answered for collector in inquiry.collectors()), default=0),
        "failures": failures.causes(),
        "failed_variants": variants.failed,
        "seconds": {"collect": collected - started, "release": time.perf_counter() - collected},
    }
    # In lines for people where it stays; a simulation's goes, and takes a tenth of the time in a single one.
    lines = None if plan.simulation else 1
    (Path(plan.directory) / "world.json").write_text(json.dumps(summary, indent=lines))
    if variants.failed and not plan.simulation:
        raise FederationError("\n".join(f"variant '{name}': {cause}" for name, cause in variants.failed.items()))


def _ask_for_scores(plan: WorldPlan, views: Views, inquiry: Inquiry) -> list[IndividualScores]:
    """Ask for the baseline of parties on their own behind every map in use, and behind the one of reference.

    What suits an ensemble, or noise, may not suit one party.
    """
    if not plan.individual:
        return []
    found = []
    if plan.reference:
        views.behind(plan.reference)
    for view in views.known() or [views.at("off", float("inf"))]:
        question = IndividualQuestion(view.training, plan.individual)
        found.append(inquiry.add(question, view.training, IndividualScores(question, plan.parties)))
    return found
