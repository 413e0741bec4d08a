"""How near estimates come to runs: python -m benchmarks.estimates [--data-dir DIR] [NAME ...]

For each case the estimate of a dry run, then the run, in processes of their own: seconds by phase as predicted over
measured, whether all of the run lay within the range, and the same for bytes a party and peak memory. Inline runs are
compared in processor seconds as well, as others may use the machine, and use more of it at one time than at another.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.common import print_tables, run_of
from scenarios.estimates.estimate import estimate
from scenarios.runs.runner import preview
from scenarios.settings.schema import resolve

CASES: Mapping[str, tuple[str, Sequence[str]]] = {
    "quickstart": ("quickstart", ["trials.splits=2"]),
    "scale 20,000": ("scale", ["parties.count=20000", "engine.kind=inline"]),
    "crowd 200,000 inline": ("ten-million-parties", ["parties.count=200000", "engine.kind=inline"]),
    "crowd 1,000,000 ray": ("ten-million-parties", ["parties.count=1000000"]),
    "intrusions 20,000 ray": ("million-parties", ["parties.count=20000"]),
    "own noise": ("digits-class-ratio", ["trials.splits=1"]),
    "labels": ("diabetes-label-dp", ["trials.splits=1"]),
    "exchange": ("ctg-error-marginals", ["trials.splits=1"]),
    "secure sums": ("har-secure-sum", ["trials.splits=1"]),
    "sweep": ("quickstart", ["trials.splits=1", "parties.count=[50, 160]", "parties.rows=[3, 6]"]),
}


@dataclass(frozen=True)
class Measured:
    """Seconds of a run by the clock, by phase and in all, processor seconds of its process, bytes, MiB."""

    seconds: Mapping[str, float]
    clock: float
    processor: float
    bytes_per_party: float
    mebibytes: float


def predicted(scenario: str, settings: Sequence[str], data_dir: str | None) -> tuple[dict[str, Any], float, float]:
    """The estimate, its crowding, and the seconds that it took."""
    started = time.perf_counter()
    resolved, folder = resolve(scenario, settings), None if data_dir is None else Path(data_dir)
    preview(resolved, folder)
    found = estimate(resolved, folder, time.perf_counter() - started)
    return found.to_dict(), found.crowding, time.process_time()


def measured(scenario: str, settings: Sequence[str], data_dir: str | None) -> Measured:
    """The run."""
    started, processor = time.perf_counter(), time.process_time()
    done = run_of(scenario, data_dir, settings)
    clock, processor = time.perf_counter() - started, time.process_time() - processor
    peak = max(done.costs.peak_mebibytes.values())
    sent = max((row["value"] for row in done.rows if row["metric"] == "bytes_per_party"), default=0.0)
    return Measured(done.costs.seconds, clock, processor, sent, peak)


def _alone(function: Any, *arguments: Any) -> Any:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def show(name: str, chosen: argparse.Namespace) -> None:
    """Print one case."""
    scenario, settings = CASES[name]
    expected, crowding, took = _alone(predicted, scenario, settings, chosen.data_dir)
    found: Measured = _alone(measured, scenario, settings, chosen.data_dir)
    low, likely, high = expected["seconds"]["all"]
    inside = "within" if low <= found.clock <= high else "OUTSIDE"
    ratio = f"ratio {likely / found.clock:.2f}, {inside} the range; found in {took:.1f} processor s"
    print(f"{name}: {likely:.1f} s ({low:.1f} to {high:.1f}), took {found.clock:.1f} s, {ratio}")
    parts = []
    for phase, (_, mean, _) in list(expected["seconds"].items())[1:]:
        taken = found.seconds.get(phase, 0.0)
        if max(taken, mean) >= 0.5:
            parts.append(f"{phase} {mean:.1f}/{taken:.1f}")
    print(f"    seconds predicted/measured: {', '.join(parts)}")
    peak = max(value for key, value in expected["mebibytes"].items() if key != "each_worker")
    line = f"    memory {peak:.0f}/{found.mebibytes:.0f} MiB, bytes a party {expected['bytes_per_party']}"
    if "ray" not in name:
        line += f", processor seconds {likely / crowding:.1f}/{found.processor:.1f}"
        line += f" ratio {likely / crowding / found.processor:.2f}, crowding {crowding:.1f}"
    print(line, flush=True)


if __name__ == "__main__":
    print_tables(__doc__, CASES, show)
