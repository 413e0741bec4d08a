"""What a run costs as the number of parties grows: python -m benchmarks.scale [PART ...] [--engine E] [--out FILE.png]

Parts, all of them by default but `protocols`:
scale               1,000 to 100,000 parties of 5 rows, 2,000 public rows, the default shares of a soft vote;
million-parties     10,000 to 1,000,000 parties of 22 rows behind 119 columns, 10,000 public rows, votes;
ten-million-parties 100,000 to 10,000,000 parties of 5 rows, 2,000 public rows, votes;
protocols           every protocol at 1,000 to 100,000 parties (real labels: census weeks, two rows each, as far as they
                    go; needs FEDERATION_DATA; for label_sums, where every party sends X'X, in 16 dimensions).

Every run is `federation run` in a process of its own. Prints the whole run, seconds and bytes per party, what a further
party costs beyond the count before, and the peak of the memory of all processes together (pages that several share are
counted once). A party costs seconds of collecting by the clock; of `protocols`, which run inline, it costs processor
seconds of the whole run, learning included, so that a machine that others keep busy tells the same. Draws the cost
curves where --out says.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

COUNTS = {
    "scale": (1_000, 10_000, 100_000),
    "million-parties": (10_000, 100_000, 1_000_000),
    "ten-million-parties": (100_000, 1_000_000, 10_000_000),
}
PROTOCOLS = "protocols"
FEW = (1_000, 10_000, 100_000)
_EVERY = 0.2  # seconds between two looks at memory
_CROWD = ("source=crowd", "auxiliary=2000", "test=20000")
_WEEKS = ("source=census_weeks", "auxiliary=5000", "test=5000")
_MOST_WEEKS = 44_000  # parties of two rows, beside public and test rows
# By name: the protocol as a scenario has it, and settings of the data and the parties.
KINDS = {
    "soft_vote": ("{kind: soft_vote}", _CROWD),
    "majority_vote": ("{kind: majority_vote}", _CROWD),
    "parameter_average": ("{kind: parameter_average}", _CROWD),
    "mean_operator": ("{kind: mean_operator}", _CROWD),
    "private_labels": ("{kind: private_labels}", _WEEKS),
    "label_sums": ("{kind: label_sums}", (*_WEEKS, "features=[standardise, {pca: 16}, constant]")),
    "weighted_lba": ("{kind: weighted_lba, size: 2}", _WEEKS),
    "noisy_weighted_llp": ("{kind: noisy_weighted_llp, size: 2}", _WEEKS),
    "error_marginals": ("{kind: error_marginals, rounds: 3}", _CROWD),
    "class_ratio": ("{kind: class_ratio}", _CROWD),
}


@dataclass(frozen=True)
class Cost:
    """Of one run: seconds of the whole by the clock, those that parties cost, bytes that one sends, peak memory."""

    parties: int
    whole: float
    spent: float
    bytes_per_party: float
    peak_mebibytes: float


def measure(scenario: str, settings: list[str], parties: int, engine: str) -> Cost:
    """Run a scenario once with so many parties. Raises `RuntimeError` with what it said where it ends in an error."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = [*settings, f"parties.count={parties}", f"engine.kind={engine}"]
        options = [text for setting in chosen for text in ("--set", setting)]
        command = [sys.executable, "-m", "scenarios.cli", "run", scenario, "--out", f"{folder}/run", *options]
        started, before, peak = time.perf_counter(), _processor_seconds(), 0
        with (Path(folder) / "said").open("w+") as said:
            process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
            while process.poll() is None:
                peak = max(peak, _memory(process.pid))
                time.sleep(_EVERY)
            whole = time.perf_counter() - started
            if process.returncode:
                said.seek(0)
                raise RuntimeError(said.read()[-500:])
        run = json.loads((Path(folder) / "run" / "run.json").read_text())
        with (Path(folder) / "run" / "results.csv").open() as file:
            sent = [float(row["value"]) for row in csv.DictReader(file) if row["metric"] == "bytes_per_party"]
    spent = _processor_seconds() - before if engine == "inline" else run["seconds"]["collect"]
    return Cost(parties, whole, spent, max(sent), peak / 2**20)


def _processor_seconds() -> float:
    """Of all processes that have ended here."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _memory(pid: int) -> int:
    """Bytes of a process and all that it started."""
    found = 0
    try:
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            found += process.memory_full_info().pss
    except psutil.Error:  # one has ended meanwhile
        pass
    return found


def told(name: str, costs: Iterator[Cost]) -> list[Cost]:
    """Print a line for each run as it ends, with what a further party costs."""
    print(f"\n{name}")
    print(f"{'parties':>9} {'run s':>8} {'spent s':>10} {'us/party':>9} {'further':>8} {'bytes':>7} {'MiB':>6}")
    done: list[Cost] = []
    for cost in costs:
        further = ""
        if done:
            seconds = (cost.spent - done[-1].spent) / (cost.parties - done[-1].parties)
            further = f"{1e6 * seconds:.1f}"
        done.append(cost)
        print(
            f"{cost.parties:9d} {cost.whole:8.1f} {cost.spent:10.2f} {1e6 * cost.spent / cost.parties:9.1f} "
            f"{further:>8} {cost.bytes_per_party:7.0f} {cost.peak_mebibytes:6.0f}",
            flush=True,
        )
    return done


def of_protocol(name: str, counts: list[int]) -> Iterator[Cost]:
    """One of the protocols with two rows of each party, or four in two bags where it estimates ratios."""
    protocol, data = KINDS[name]
    held = ["parties.rows=4", "parties.bags=2"] if name == "class_ratio" else ["parties.rows=2"]
    settings = [f"data.{setting}" for setting in data] + held
    settings += [f"protocols=[{protocol}]", "baselines=false", "privacy.epsilon=1", "trials.noise=1"]
    for parties in counts:
        yield measure("scale", settings, min(parties, _MOST_WEEKS) if data[0] == _WEEKS[0] else parties, "inline")


def draw(curves: dict[str, list[Cost]], file: Path, spent: str) -> None:
    """What was `spent`, and memory, against the number of parties."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    seconds, memory = figure.subplots(1, 2)
    for name, costs in curves.items():
        parties = [cost.parties for cost in costs]
        seconds.loglog(parties, [cost.spent for cost in costs], marker="o", label=name)
        memory.loglog(parties, [cost.peak_mebibytes for cost in costs], marker="o", label=name)
    seconds.set(xlabel="parties", ylabel=spent)
    memory.set(xlabel="parties", ylabel="MiB of all processes")
    seconds.legend(fontsize=7)
    for axes in (seconds, memory):
        axes.grid(alpha=0.3)
    figure.savefig(file, dpi=150)


def main() -> None:
    """Print the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *COUNTS, PROTOCOLS], metavar="PART")
    parser.add_argument("--engine", choices=("inline", "ray"), default="ray")
    parser.add_argument("--most", type=int, default=10**9, help="parties at most")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if PROTOCOLS in arguments.parts and len(arguments.parts) > 1:
        parser.error(f"{PROTOCOLS} costs processor seconds, and is measured by itself")
    curves: dict[str, list[Cost]] = {}
    inline = arguments.engine == "inline" or PROTOCOLS in arguments.parts
    if PROTOCOLS in arguments.parts:
        counts = [count for count in FEW if count <= arguments.most]
        curves = {name: told(name, of_protocol(name, counts)) for name in KINDS}
    for part in [part for part in arguments.parts or COUNTS if part != PROTOCOLS]:
        counts = [count for count in COUNTS[part] if count <= arguments.most]
        curves[part] = told(part, (measure(part, [], count, arguments.engine) for count in counts))
    if arguments.out is not None:
        draw(curves, arguments.out, "processor seconds of the run" if inline else "seconds of collecting")
        print(f"drew {arguments.out}")


if __name__ == "__main__":
    main()
