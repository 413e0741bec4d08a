"""What the engines cost, per message and per party: python -m benchmarks.engines [--data-dir DIR] [--rounds R]

Side by side in one process, the fastest of several rounds of each:
(a) an empty question: milliseconds per message;
(b) 1000 parties of 6 rows train and vote on 1352 public rows: our engines, one party and many behind a node, beside a
    warm round of Flower's simulation that runs scikit-learn at one party per node, beside pfl-research's backend with
    the same (extra `benchmark`; left out without it), and beside a plain loop of scikit-learn on one core; and our
    engines with the default of `soft_vote`, where every party sends a share of probabilities, which none of the others
    compute;
(c) 10,000 parties: ray over inline.
Uses HAR where its data is at hand, rows of the same shape otherwise; (c) has too many parties for HAR.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any, Literal

import numpy as np
from flwr.app import Message, RecordDict
from threadpoolctl import threadpool_limits

from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.trial.plan import TrialPlan
from aggregator.trial.trial import Views
from benchmarks.common import command_line
from benchmarks.plain_flower import FOLDER, ask, fit_and_vote
from federation.contract.plugins import Reference
from federation.contract.query import Collector, Question
from federation.engines.flower import FlowerGrid
from federation.engines.inline import open_grid
from federation.engines.nodes import ROLL_CALL, Placement, SimulationGrid, most_per_node
from federation.engines.sending import Asking, Failures
from scenarios.runs.trial import World
from scenarios.runs.trial import worlds as worlds_of
from scenarios.settings.schema import resolve

Submit = Literal["votes", "statistic"]  # what a party sends
PARTIES, ROWS, AUXILIARY = 1000, 6, 1352
MANY = 10_000
NODES = 200  # of the empty question
NOBODY = Reference("parties.app:app")  # holdings that no empty question looks at


def synthetic(folder: Path, rows: int, columns: int) -> Path:
    """A file of `rows` labelled rows of six overlapping classes."""
    random = np.random.default_rng(1)
    labels = random.integers(0, 6, rows)
    values = random.normal(size=(rows, columns)) + 3 * random.normal(size=(6, columns))[labels] / np.sqrt(columns)
    path = folder / f"synthetic-{rows}.npz"
    np.savez(path, X=values.astype(np.float32), y=labels)
    return path


def worlds(data: dict[str, Any], parties: int, splits: int, data_dir: str | None) -> Iterator[World]:
    """One world per split of a scenario with the default protocol, which is soft votes."""
    features = {"auxiliary": AUXILIARY, "features": [{"whiten": 10}, "unit_norm"]}
    scenario = resolve(
        {
            "name": "engines",
            "data": {**data, **features},
            "parties": {"count": parties, "rows": ROWS},
            "privacy": {"epsilon": 1.0},
            "trials": {"splits": splits, "noise": 1},
        }
    )
    yield from worlds_of(scenario, data_dir)


def question(plan: TrialPlan, submit: Submit) -> tuple[Question, Collector]:
    """What soft votes ask in this world, and where they collect the answers."""
    chosen = SoftVote(submit=submit)
    view = Views(plan).at(chosen.noise, 1.0)
    asked = chosen.question(view.public, view.training)
    return asked, chosen.collector(view.public, asked, plan.terms.parties)


def collect(world: World, grid: SimulationGrid, per_node: int | None, submit: Submit = "votes") -> float:
    """Seconds from the question to the counted answers of all parties."""
    parties = world.split.cut.parties
    cohort = grid.cohort(parties, per_node, most_per_node(True, AUXILIARY))
    plan = world.plan(Path(), cohort)
    grid.assign(Placement(parties, cohort, world.spec.reference("SimulatedParties"), 1))
    with threadpool_limits(1):  # threads of a larger product would keep a processor busy for a tenth of a second
        asked, collector = question(plan, submit)  # after the nodes know whom they serve, as in every run
    started = time.perf_counter()
    failures = Failures(True)
    Asking(parties, cohort, None).ask(grid, [(asked, [collector])], failures)
    seconds = time.perf_counter() - started
    assert not failures.causes(), failures.causes()
    assert collector.answered == parties
    return seconds


def empty(grid: SimulationGrid) -> float:
    """Seconds of one round of empty questions."""
    started = time.perf_counter()
    messages = [grid.create_message(RecordDict(), f"query.{ROLL_CALL}", node, "") for node in grid.get_node_ids()]
    waiting = set(grid.push_messages(messages))
    while waiting:
        replies: list[Message] = list(grid.pull_messages(waiting))
        assert not any(reply.has_error() for reply in replies)
        waiting -= {reply.metadata.reply_to_message_id for reply in replies}
    return time.perf_counter() - started


@contextlib.contextmanager
def opened(kind: str, workers: int) -> Iterator[SimulationGrid]:
    """A grid, closed in the end."""
    grid = open_grid(kind, workers=workers)  # type: ignore[arg-type]
    try:
        yield grid
    finally:
        grid.close()


def messages(grids: dict[str, SimulationGrid], rounds: int) -> None:
    """Print part (a)."""
    for grid in grids.values():
        grid.assign(Placement(NODES, 1, NOBODY, 1))
        empty(grid)
    best = {kind: min(empty(grid) for _ in range(rounds)) for kind, grid in grids.items()}
    for kind, seconds in best.items():
        print(f"(a) empty question, {NODES} nodes, {kind:7} {1e3 * seconds / NODES:8.3f} ms per message")


def prepared(world: World, folder: Path) -> None:
    """Leave the parties' rows behind the feature map for `benchmarks.plain_flower`, so that it need not map them."""
    table, cut = world.split.table, world.split.cut
    held = [cut.party(party) for party in range(cut.parties)]
    feature_map = world.feature_map()
    np.save(folder / "rows.npy", np.stack([feature_map.transform(table.rows(indices)) for indices in held]))
    np.save(folder / "labels.npy", np.stack([table.labels[indices] for indices in held]))
    np.save(folder / "public.npy", feature_map.transform(table.rows(cut.auxiliary)))


def plain_loop(folder: Path) -> float:
    """Seconds of one core for all parties, one after another, with scikit-learn."""
    rows, labels, public = (np.load(folder / f"{name}.npy") for name in ("rows", "labels", "public"))
    counts = np.zeros((len(public), 6), dtype=np.int64)
    started = time.perf_counter()
    for party in range(len(rows)):
        counts[np.arange(len(public)), fit_and_vote(rows[party], labels[party], public)] += 1
    return time.perf_counter() - started


def main() -> None:
    """Print all parts."""
    arguments = command_line(__doc__, rounds=5, workers=2).parse_args()
    data_dir, rounds, workers = arguments.data_dir, arguments.rounds, arguments.workers
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        har = data_dir is not None and (Path(data_dir) / "har.npz").exists()
        data: dict[str, Any] = {"source": "har", "test": "official"}
        if not har:
            data = {"source": str(synthetic(folder, PARTIES * ROWS + 3 * AUXILIARY, 561)), "test": AUXILIARY}
        many = {"source": str(synthetic(folder, MANY * ROWS + 3 * AUXILIARY, 50)), "test": AUXILIARY}
        with opened("inline", workers) as inline, opened("ray", workers) as ray:
            ours = {"inline": inline, "ray": ray}
            messages(ours, rounds)
            pairs = [
                (collect(world, inline, None), collect(world, ray, None))
                for world in worlds(many, MANY, rounds + 1, None)
            ][1:]
            jobs: list[tuple[int | None, Submit]] = [(1, "votes"), (None, "votes"), (None, "statistic")]
            best: dict[tuple[str, int | None, Submit], float] = {}
            loop, pfl = float("inf"), None
            for world in worlds(data, PARTIES, rounds + 1, data_dir):  # the first pays for starting up
                prepared(world, folder)
                loop = min(loop, plain_loop(folder))
                if util.find_spec("pfl"):
                    from benchmarks import plain_pfl

                    pfl = min(pfl or float("inf"), plain_pfl.ask(folder, classes=6))
                for kind, grid in ours.items():
                    for per_node, submit in jobs:
                        seconds = collect(world, grid, per_node, submit)
                        job = kind, per_node, submit
                        best[job] = min(seconds, best.get(job, float("inf")))
        os.environ[FOLDER] = name
        with contextlib.closing(FlowerGrid("benchmarks.plain_flower:app", workers)) as stock:
            messages({"flower": stock}, 1)
            stock.assign(Placement(PARTIES, 1, NOBODY, 1))
            ask(stock)
            flower = min(ask(stock) for _ in range(2))
    print(f"(b) {data['source'] if har else 'synthetic'}: {PARTIES} parties of {ROWS} rows, {AUXILIARY} public rows")
    others = {"scikit-learn loop": loop, "Flower's simulation, scikit-learn, 1 per node": flower}
    for text, seconds in (others if pfl is None else others | {"pfl-research, scikit-learn": pfl}).items():
        print(f"    {text:46} {1e3 * seconds / PARTIES:8.3f} ms per party")
    for (kind, per_node, submit), taken in best.items():
        text = f"{kind}, {per_node or 'automatic number'} per node, {'votes' if submit == 'votes' else 'shares'}"
        gain = f"{loop / taken:6.1f} x the loop, {flower / taken:7.1f} x Flower's simulation"
        print(f"    {text:46} {1e3 * taken / PARTIES:8.3f} ms per party, {gain}")
    fastest = [min(seconds) for seconds in zip(*pairs, strict=True)]
    for kind, seconds in zip(("inline", "ray"), fastest, strict=True):
        print(f"(c) {MANY} parties, {kind:7} {seconds:6.2f} s, {1e3 * seconds / MANY:.3f} ms per party")
    ratios = sorted(one / other for one, other in pairs)
    print(
        f"    inline / ray: fastest of {len(pairs)} rounds each {fastest[0] / fastest[1]:.2f}, "
        f"median of side by side rounds {ratios[len(ratios) // 2]:.2f}"
    )


if __name__ == "__main__":
    main()
