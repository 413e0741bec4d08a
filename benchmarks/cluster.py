"""What a Ray cluster takes, and what its accidents cost: python -m benchmarks.cluster [--nodes N] [--workers W]

A head without processors and N nodes of W processors each, all on this machine, as in a cluster with separate
resources. Every party takes a fixed time, so that figures are those of the engine and not of
the machine. For each case: seconds, times those of an undisturbed world, how many parties each node served, whether
what is released is, byte for byte, that of the engine inline. Then the head is killed within `federation run`: how long
until it ends, what it says, and that --resume on another cluster gives the results of inline.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray._private.internal_api import node_stats
from ray.cluster_utils import Cluster

from aggregator.server.app import run_plan
from aggregator.trial.plan import KnownNumbers, ReleasePlan, RunPlan, TaskPlan, TrialPlan, VariantPlan
from benchmarks.common import command_line
from federation.contract.plugins import Reference
from federation.contract.trust import TrustTerms
from federation.engines.inline import open_grid
from federation.engines.nodes import Placement, SimulationGrid
from parties.party_data.cohort import Holdings

PARTIES, PER_NODE, ROWS, COLUMNS, PUBLIC = 240, 4, 6, 20, 5_000
PACE = 0.05  # seconds that each party takes
SLOW = 10  # times as many on a slow node
STORE = 200 << 20  # bytes of each node's object store
WATCHFUL = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 4}


class PublicRows:
    """Rows that are public."""

    columns = tuple(f"x{number}" for number in range(COLUMNS))
    text_columns = ()

    def __init__(self) -> None:
        self.rows = np.random.default_rng(0).normal(size=(PUBLIC, COLUMNS))


class Paced:
    """Parties that take their time; those that `folder/NODE.slow` names take more. Notes there whom a node serves."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def holdings(self, party: int) -> Holdings:
        """Three classes of rows."""
        node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else "here"
        if self._folder.exists():
            slow = (self._folder / f"{node}.slow").exists()
            time.sleep(PACE * (SLOW if slow else 1))
            (self._folder / f"{party}.{node}.{os.getpid()}.served").touch()
        random = np.random.default_rng(1000 + party)
        labels = random.integers(0, 3, ROWS)
        return Holdings(party, random.normal(size=(ROWS, COLUMNS)) + labels[:, None], labels)

    def evaluation(self) -> None:
        """Nothing is scored."""


def plan(folder: Path) -> TrialPlan:
    """Soft votes of all parties."""
    classifier = {"name": "logistic", "parameters": {"regularisation": 1e-3}}
    return TrialPlan(
        "cluster",
        KnownNumbers(1e-6, 2, TrustTerms(PARTIES, quorum=1.0)),
        TaskPlan(Reference("benchmarks.cluster:PublicRows"), ("unit_norm",), ("a", "b", "c"), "public", classifier, 1),
        (VariantPlan("soft_vote", "soft_vote", {}),),
        ReleasePlan((1.0,)),
        RunPlan(str(folder), simulation=True, noise_seed=1, parties_per_node=PER_NODE),
    )


def world(grid: SimulationGrid, folder: Path) -> tuple[float, dict[str, bytes]]:
    """Seconds of a world whose parties write to `folder`, and what was released."""
    with tempfile.TemporaryDirectory() as name:
        made = plan(Path(name))
        grid.assign(Placement(PARTIES, PER_NODE, Reference("benchmarks.cluster:Paced", {"folder": str(folder)}), 1))
        started = time.perf_counter()
        run_plan(grid, made)
        seconds = time.perf_counter() - started
        return seconds, {path.name: path.read_bytes() for path in sorted(Path(name).glob("*.npz"))}


@contextmanager
def cluster(nodes: int, workers: int) -> Iterator[Cluster]:
    """A head that serves nobody, and nodes; ended in the end, if anything is left of it."""
    quiet = {"object_store_memory": STORE, "include_dashboard": False}
    found = Cluster()
    try:
        found.add_node(num_cpus=0, _system_config=WATCHFUL, **quiet)
        found.others = [found.add_node(num_cpus=workers, **quiet) for _ in range(nodes)]
        yield found
    finally:
        ray.shutdown()
        found.shutdown()


def served(folder: Path) -> list[tuple[int, str, int]]:
    """Party, node and process of everything that was served."""
    parts = (path.name.split(".") for path in folder.glob("*.served"))
    return [(int(party), node, int(process)) for party, node, process, _ in parts]


def after(folder: Path, share: float, act: Callable[[], None]) -> threading.Thread:
    """Does it once such a share of the parties is served."""

    def wait() -> None:
        while len(served(folder)) < share * PARTIES:
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def accidents(nodes: int, workers: int) -> None:
    """Print the table of worlds."""
    with tempfile.TemporaryDirectory() as name:
        _, inline = world(open_grid("inline"), Path(name) / "absent")
    print(
        f"{nodes} nodes of {workers}: {PARTIES} parties of {PACE:g} s, {PARTIES * PACE / nodes / workers:.1f} s at best"
    )
    print(f"{'case':28} {'seconds':>8} {'times':>6}  parties by node{'':12} released")
    with cluster(nodes, workers) as found, tempfile.TemporaryDirectory() as name:
        started = time.perf_counter()
        grid = open_grid("ray", address=found.address)
        print(f"{'joined, a worker ready':28} {time.perf_counter() - started:8.1f}")
        while grid._starting:
            grid._advance()
        usual = 0.0

        def show(case: str, disturbed: Callable[[Path], object] = lambda folder: None) -> None:
            nonlocal usual
            folder = Path(name) / case.replace(" ", "-")
            folder.mkdir()
            disturbed(folder)
            seconds, released = world(grid, folder)
            usual = usual or seconds
            counts = Counter(node for _, node, _ in served(folder))
            spread = " ".join(str(counts.get(node.node_id, 0)) for node in found.others)
            same = "as inline" if released == inline else "DIFFERS"
            print(f"{case:28} {seconds:8.1f} {seconds / usual:6.2f}  {spread:27} {same}", flush=True)

        show("undisturbed")
        at = {node["NodeID"]: (node["NodeManagerAddress"], node["NodeManagerPort"]) for node in ray.nodes()}
        stores = [node_stats(*at[node.node_id], include_memory_info=False) for node in found.others]
        held = [one.store_stats.object_store_bytes_used / 1e6 for one in stores]
        asked = 8 * PUBLIC * COLUMNS / 1e6
        print(
            f"{'':28} {asked:.1f} MB of public rows; in the nodes' stores {', '.join(f'{one:.1f}' for one in held)} MB"
        )

        def kill_worker(folder: Path) -> None:
            after(folder, 0.3, lambda: os.kill(served(folder)[0][2], signal.SIGKILL))

        def slow(folder: Path) -> None:
            (folder / f"{found.others[0].node_id}.slow").touch()

        def kill_node(folder: Path) -> None:
            after(folder, 0.3, lambda: found.others[-1].kill_raylet())

        show("a worker is killed", kill_worker)
        show(f"a node is {SLOW} times slower", slow)
        show("a node is killed", kill_node)
        show("with the nodes that are left")
        grid.close()


def run_command(folder: Path, *settings: str) -> list[str]:
    """A run of six worlds by command line."""
    few = ["trials.splits=6", "parties.count=60", "engine.parties_per_node=1", "trials.noise=2"]
    sets = [part for one in (*few, *settings) for part in ("--set", one)]
    return [sys.executable, "-m", "scenarios.cli", "run", "quickstart", *sets, "--quiet", "--out", str(folder)]


def results(folder: Path) -> bytes:
    """What a run has found."""
    return (folder / "results.csv").read_bytes()


def killed_head(nodes: int, workers: int) -> None:
    """Print what comes of a run whose head is killed after its first world, and of its resumption."""
    quiet: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
    with tempfile.TemporaryDirectory() as name:
        folder, plain = Path(name) / "run", Path(name) / "inline"
        subprocess.run(run_command(plain), **quiet)
        with cluster(nodes, workers) as found:
            address = ("engine.kind=ray", f"engine.ray.address={found.address}")
            running = subprocess.Popen(
                run_command(folder, *address), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            while running.poll() is None and not list(folder.glob(".cells/*.csv")):
                time.sleep(0.02)
            if running.poll() is not None:
                _, said = running.communicate()
                print(f"the run ended by itself with status {running.returncode}, saying: {said.strip()}")
                return
            found.head_node.kill_gcs_server()
            found.head_node.kill_raylet()
            killed = time.perf_counter()
            try:
                _, said = running.communicate(timeout=120)
                print(f"the head is killed: the run ended {time.perf_counter() - killed:.1f} s later with status "
                      f"{running.returncode}, saying: {said.strip()}")  # fmt: skip
            except subprocess.TimeoutExpired:
                running.kill()
                print("the head is killed: the run HANGS")
        kept = json.loads((folder / "run.json").read_text())["worlds"]
        print(f"  kept: {kept['finished']} of {kept['all']} worlds")
        with cluster(nodes, workers) as found:
            address = ("engine.kind=ray", f"engine.ray.address={found.address}")
            done = subprocess.run([*run_command(folder, *address), "--resume"], **quiet)
            same = "as inline" if done.returncode == 0 and results(folder) == results(plain) else "DIFFERS"
            print(f"  resumed on another cluster: status {done.returncode}, results {same} {done.stderr.strip()}")


def main() -> None:
    """Print both parts."""
    arguments = command_line(__doc__, nodes=3, workers=1).parse_args()
    accidents(arguments.nodes, arguments.workers)
    killed_head(arguments.nodes, arguments.workers)


if __name__ == "__main__":
    main()
