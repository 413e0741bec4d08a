"""What the benchmarks share: their command line, a clock, runs of scenarios, and what is said of a bar."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from federation.contract.errors import InputError
from scenarios.runs.finished_run import Run
from scenarios.runs.runner import run

Result = TypeVar("Result")


def command_line(doc: str | None, **options: Any) -> argparse.ArgumentParser:
    """A parser with --data-dir and these options, by name their defaults; False means one without a value."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", default=os.environ.get("FEDERATION_DATA"))
    for name, default in options.items():
        given: dict[str, Any] = {"action": "store_true"} if default is False else {"type": type(default)}
        parser.add_argument(f"--{name.replace('_', '-')}", default=default, **given)
    return parser


def print_tables(
    doc: str | None,
    tables: Collection[str],
    show: Callable[[str, argparse.Namespace], object],
    one_thread: bool = True,
    **options: Any,
) -> None:
    """Calls `show` with the name of every table that the command line asks for (all by default), and its options.

    A table whose data is missing is skipped with a message. `options` as of `command_line`.
    """
    parser = command_line(doc, **options)
    parser.add_argument("names", nargs="*", choices=[[], *tables], metavar="NAME", help=", ".join(tables))
    chosen = parser.parse_args()
    with threadpool_limits(1) if one_thread else nullcontext():
        for name in chosen.names or tables:
            try:
                show(name, chosen)
            except InputError as error:
                print(f"{name}: skipped, {error}")


def heads(columns: str) -> None:
    """The first lines of a table in Markdown."""
    print(f"| {columns} |\n|" + "---|" * len(columns.split(" | ")))


def fastest(
    call: Callable[[], Result], runs: int, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Result]:
    """Seconds of the fastest of a few runs, and what the last returned."""
    best = float("inf")
    for _ in range(runs):
        started = clock()
        result = call()
        best = min(best, clock() - started)
    return best, result


def run_of(scenario: str | Mapping[str, Any], data_dir: str | None = None, overrides: Sequence[str] = ()) -> Run:
    """A run of a scenario, whose files are not kept."""
    with tempfile.TemporaryDirectory() as folder:
        return run(scenario, out=Path(folder) / "run", data_dir=data_dir, overrides=overrides)


def accuracies_of(run: Run) -> dict[tuple[str, float], list[float]]:
    """All accuracies of a run, by variant and epsilon."""
    found: dict[tuple[str, float], list[float]] = {}
    for row in run.rows:
        if row["metric"] == "accuracy":
            found.setdefault((row["variant"], row["epsilon"]), []).append(row["value"])
    return found


def bar(what: str, value: float, most: float) -> None:
    """Prints whether a bar is met."""
    print(f"  bar: {what} {value:.4f}, at most {most:.4f}: {'met' if value <= most else 'MISSED'}", flush=True)


def standard_error(values: Sequence[float] | np.ndarray) -> float:
    """Of the mean of some values; NaN of a single one."""
    return float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else float("nan")
