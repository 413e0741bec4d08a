"""The Flower ServerApp: it asks the parties of one trial, learns, and releases every variant of the trial's plan.

The run configuration's `simulation` makes plans, and `run_plan` runs one of them. The releases land in the plan's
directory, one npz per variant, with `world.json` (ledger, costs, failures). No vote is ever written.

`IndividualScores` collects the baseline `individual`, which is NON-PRIVATE: mean scores of the parties' own
classifiers.
"""

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
from threadpoolctl import threadpool_limits

from aggregator.collectors.collectors import Answers
from aggregator.contract.ledger import Budget, Ledger, charged
from aggregator.contract.session import told
from aggregator.server.releasing import Inquiry
from aggregator.server.variants import Variants
from aggregator.trial.plan import TrialPlan
from aggregator.trial.trial import Views, World
from federation.contract.errors import FederationError
from federation.contract.plugins import Reference
from federation.contract.query import Collector, Question, Submission
from federation.engines.nodes import StockGrid
from federation.engines.sending import Asking, Failures, require_quorum
from federation.queries.votes import IndividualQuestion

app = ServerApp()
_log = logging.getLogger(__name__)


@app.main()  # type: ignore[untyped-decorator]  # flwr is not typed
def main(grid: Grid, context: Context) -> None:
    """Run the simulation, `module:attribute`, that the run configuration names: it makes plans and runs them.

    It gets Flower's grid and the configuration. Raises `FederationError`s meant for the user.
    """
    nodes = StockGrid(grid)
    try:
        Reference(str(context.run_config["simulation"])).load()(nodes, context.run_config)
    finally:
        nodes.close()


class Summing(Protocol):
    """Carries out a secure sum between real parties over their answers to a question."""

    def ask(self, question: Question, collectors: Sequence[Collector], failures: Failures) -> None:
        """Ask for one sum, for all collectors. Raises `QuorumError`."""


def run_plan(grid: Grid, plan: TrialPlan, sums: Summing | None = None) -> None:
    """Ask the parties of the plan's trial, learn and release; `sums` adds up what hides nothing by itself.

    It runs on one numerical thread: results are reproducible, and queries are those that sites have agreed to. Raises
    `FederationError`s. Outside a simulation a variant that failed is one, once the others are released.
    """
    with threadpool_limits(1):
        _run(grid, plan, sums)


def _run(grid: Grid, plan: TrialPlan, sums: Summing | None) -> None:
    started = time.perf_counter()
    views, inquiry = Views(plan), Inquiry()
    variants = Variants(World(plan, views), inquiry)
    outlooks = (
        {} if plan.task.split else variants.outlooks()
    )  # other splits divide the same numbers of rows and parties
    found = [] if plan.task.split else views.remarks()
    for line in (*found, *told(outlooks, plan.terms.parties)):
        _log.warning("%s", line)
    scores = _ask_for_scores(plan, views, inquiry)
    variants.begin_references()
    terms, run, planned = plan.terms, plan.run, plan.releases
    ledger = Ledger(Budget.of(planned.budget, planned.periods, planned.choice), charged(planned.choice))
    asking, failures = Asking(terms.parties, run.parties_per_node, run.timeout), Failures(run.simulation)
    while asked := inquiry.questions():
        asking.ask(grid, [one for one in asked if sums is None or not one[0].shared], failures)
        if sums is not None:
            for question, collectors in asked:
                if question.shared:
                    sums.ask(question, collectors, failures)
        for collector in (collector for _, collectors in asked for collector in collectors):
            expected = min(plan.terms.parties, plan.run.individual) if collector in scores else plan.terms.parties
            require_quorum(collector.answered, expected, plan.terms.quorum, failures.causes())
        inquiry.close()
        variants.proceed(ledger)
    collected = time.perf_counter()
    diagnostics = variants.finish(ledger)
    for name, cause in variants.missing.items():
        found.append(f"the reference '{name}' could not be made: {cause}")
        _log.warning("%s", found[-1])
    summary: dict[str, Any] = {
        "ledger": ledger.to_dict(plan.public.delta),
        "diagnostics": diagnostics,
        "disclosure": {
            "world": plan.name,
            "simulation": plan.run.simulation,
            "parties": plan.terms.parties,
            "quorum": plan.terms.quorum,
            "servers": plan.terms.servers,
            "private_rows": plan.public.rows or 0,
            "public_rows": len(views.table.rows),
            "draws": plan.public.draws,
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
    lines = None if plan.run.simulation else 1
    (Path(plan.run.directory) / "world.json").write_text(json.dumps(summary, indent=lines))
    if variants.failed and not plan.run.simulation:
        raise FederationError("\n".join(f"variant '{name}': {cause}" for name, cause in variants.failed.items()))


def _ask_for_scores(plan: TrialPlan, views: Views, inquiry: Inquiry) -> "list[IndividualScores]":
    """Ask for the baseline of parties on their own behind every map in use, and behind the one of reference.

    What suits an ensemble, or noise, may not suit one party.
    """
    if not plan.run.individual:
        return []
    found = []
    if plan.run.reference:
        views.behind(plan.run.reference)
    for view in views.known() or [views.at("off", float("inf"))]:
        question = IndividualQuestion(view.training, plan.run.individual)
        found.append(inquiry.add(question, view.training, IndividualScores(question, plan.terms.parties)))
    return found


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
