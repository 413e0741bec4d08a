"""The Flower ServerApp of an exchange with real sites: asks, learns, charges, and releases once.

The run configuration names the folder `dir` that `federation deploy` has made, the `exchange` in it, and for how many
seconds sites are waited for. How it went is told by a file, never by a traceback: whoever has started it reads that.
"""

import json
import logging
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from aggregator.contract.ledger import Budget
from aggregator.exchange.exchange import Exchange, Spent
from aggregator.exchange.message_engine import LetterGrid
from aggregator.exchange.secure_aggregation import LetterSums, over
from aggregator.server.app import run_plan
from aggregator.trial.plan import TrialPlan
from federation.contract.errors import FederationError, InputError, QuorumError, of_disk, told
from federation.contract.files import alone, read_object, sync_folder, write_lasting
from federation.contract.guarantee import Guarantee
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import load_key

AGREEMENT, WORLD_PLAN, SIGNING_KEY = "plan.json", "world-plan.json", "signing.key"  # in the folder
NODES, LEDGER = "nodes.json", "ledger.json"
EXCHANGES, RELEASES = "exchanges", "releases"  # folders, in which each exchange has one under its number
WORKING, OUTCOME, LOCK = "working", "outcome.json", "lock"  # in that of an exchange

_ENDING = 60.0  # seconds that a run takes to end which was stopped

app = ServerApp()
_log = logging.getLogger(__name__)


@app.main()  # type: ignore[untyped-decorator]  # flwr is not typed
def main(grid: Grid, context: Context) -> None:
    """Run the exchange that the run configuration names; raises nothing that `outcome.json` can tell."""
    config = context.run_config
    folder, number = Path(str(config["dir"])), str(config["exchange"])
    own = folder / EXCHANGES / number
    try:
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone(own / LOCK, f"another process works on {own}; wait until it has ended, or end it", _ENDING):
            outcome = run_exchange(grid, folder, number, float(config["patience"]), float(config["wait"]))
    except Exception as error:
        if of_disk(error):
            error = InputError(
                f"{own} cannot be written ({error!s:.100}); free some room on that disk and collect again"
            )
        elif not isinstance(error, FederationError):
            _log.exception("the exchange failed")
        outcome = {"status": "failed", "why": told(error), "exit_code": getattr(error, "exit_code", 1)}
    write_lasting(own / OUTCOME, json.dumps({**outcome, "run": context.run_id}).encode())


def run_exchange(grid: Grid, folder: Path, number: str, patience: float, wait: float) -> dict[str, Any]:
    """Ask the sites of a deployment, or go on asking them, learn, charge and release; what came of it, in plain values.

    An exchange that has been released is neither asked nor charged again. Raises `FederationError`s.
    """
    agreement, plan = Agreement.load(folder / AGREEMENT), TrialPlan.load(folder / WORLD_PLAN)
    own, released = folder / EXCHANGES / number, folder / RELEASES / number
    signing = load_key(folder / SIGNING_KEY, Ed25519PrivateKey)  # type: ignore[type-abstract, unused-ignore]
    exchange = Exchange.opened(own, agreement, signing)
    spent, name = Spent.load(folder / LEDGER), exchange.identifier.hex()
    budget = Budget.of(plan.releases.budget, choice=plan.releases.choice)
    working = own / WORKING
    if released.exists():
        return _done(spent, name, plan, released)
    set_aside(agreement, spent, name, budget)
    nodes = read_object(folder / NODES, "run `federation collect` on the folder, which writes it")
    working.mkdir(mode=0o700, exist_ok=True)
    known = [int(nodes[one.name]) for one in agreement.members]
    letters = LetterGrid(grid, exchange, known[: len(agreement.sites)], patience, wait)
    sums = LetterSums(grid, exchange, known, patience, wait) if agreement.secure else None
    public = replace(plan.task.table, arguments={**plan.task.table.arguments, "folder": str(folder)})
    with closing(letters):
        try:
            run_plan(letters, plan.changed(directory=str(working), table=public), sums)
        except QuorumError:
            if (ended := over(own)) and not ended["masked"]:
                spent.free(name)  # nobody has paid for anything
            raise
    summary = read_object(working / "world.json", "collect again")
    guarantees = [Guarantee.from_dict(entry["guarantee"]) for entry in summary["ledger"]["releases"]]
    spent.charge(name, guarantees, budget)
    released.parent.mkdir(mode=0o700, exist_ok=True)
    working.rename(released)  # this is the release: before it nobody has got anything
    sync_folder(released.parent)
    return _done(spent, name, plan, released)


def set_aside(agreement: Agreement, spent: Spent, exchange: str, budget: Budget | None) -> None:
    """Hold what an exchange will spend against the budget, before anybody is asked.

    Answers with noise of their own are spent once they are given. Raises `BudgetExceededError`.
    """
    if exchange not in spent.charged:
        spent.charge(exchange, promised(agreement), budget)


def promised(agreement: Agreement) -> list[Guarantee]:
    """What one exchange spends at most."""
    return [
        Guarantee(one.epsilon, one.delta, one.unit, one.adjacency, agreement.protocol) for one in agreement.promises
    ]


def _done(spent: Spent, exchange: str, plan: TrialPlan, released: Path) -> dict[str, Any]:
    return {
        "status": "released",
        "exit_code": 0,
        "files": sorted(path.name for path in released.iterdir()),
        "spent": spent.totals(plan.public.delta, exchange),
        "spent_in_all": spent.totals(plan.public.delta),
    }


def outcome_of(folder: Path, number: str) -> Mapping[str, Any] | None:
    """How the last run of an exchange ended; None where none has."""
    path = folder / EXCHANGES / number / OUTCOME
    return read_object(path, "collect again") if path.exists() else None
