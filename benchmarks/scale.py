"""What a run costs as the number of parties grows: python -m benchmarks.scale [PART ...] [--engine E] [--out FILE.png]

Parts, the first three by default; the names of protocols are parts, too:
scale               1,000 to 100,000 parties of 5 rows, 2,000 public rows, the default shares of a soft vote;
million-parties     10,000 to 1,000,000 parties of 22 rows behind 119 columns, 10,000 public rows, votes;
ten-million-parties 100,000 to 10,000,000 parties of 5 rows, 2,000 public rows, votes;
protocols           every protocol at 1,000 to 100,000 parties (real labels: census weeks, two rows each, as far as they
                    go; needs FEDERATION_DATA; for label_sums, where every party sends X'X, in 16 dimensions);
sharing             `scale` with 20,000 parties by two workers of Ray beside two processes of half of them each, inline
                    and at the same time, in turn, three times each: how many parties a second of collecting takes.

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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

COUNTS = {
    "scale": (1_000, 10_000, 100_000),
    "million-parties": (10_000, 100_000, 1_000_000),
    "ten-million-parties": (100_000, 1_000_000, 10_000_000),
}
PROTOCOLS, SHARING = "protocols", "sharing"
LEAST_SHARE = 0.9  # of the rate of two processes that have nothing in common, by two workers
TOGETHER, TURNS = 20_000, 3  # parties of `sharing`, and measurements of either kind
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
    """Of one run: seconds of the whole and of collecting by the clock, what parties cost, bytes of one, peak memory."""

    parties: int
    whole: float
    collected: float
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
    collected = run["seconds"]["collect"]
    spent = _processor_seconds() - before if engine == "inline" else collected
    return Cost(parties, whole, collected, spent, max(sent), peak / 2**20)


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


def sharing() -> None:
    """Print how Ray's two workers compare with two processes that have nothing in common."""
    half = TOGETHER // 2
    of_ray, of_two = [], []
    for _ in range(TURNS):
        of_ray.append(measure("scale", ["engine.workers=2"], TOGETHER, "ray").collected)
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(measure, "scale", [], half, "inline") for _ in range(2)]
            of_two.append(max(one.result().collected for one in both))
    ratio = median(of_two) / median(of_ray)
    print(f"\n{SHARING}: {TOGETHER} parties, seconds of collecting, medians of {TURNS}")
    print(f"  ray {median(of_ray):.2f}, two inline at once {median(of_two):.2f}, ray has {ratio:.2f} of their rate")
    at_least = "met" if ratio >= LEAST_SHARE else "MISSED"
    print(f"  bar: at least {LEAST_SHARE}: {at_least}", flush=True)


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

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    seconds, memory = figure.subplots(1, 2)
    for name, costs in curves.items():
        parties = [cost.parties for cost in costs]
        seconds.loglog(parties, [cost.spent for cost in costs], marker="o", label=name)
        memory.loglog(parties, [cost.peak_mebibytes for cost in costs], marker="o", label=name)
    seconds.set(xlabel="parties", ylabel=spent)
    memory.set(xlabel="parties", ylabel="MiB of all processes")
    figure.legend(*seconds.get_legend_handles_labels(), loc="outside right upper", fontsize=7)
    for axes in (seconds, memory):
        axes.grid(alpha=0.3)
    figure.savefig(file, dpi=150)


def main() -> None:
    """Print the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *COUNTS, PROTOCOLS, *KINDS, SHARING], metavar="PART")
    parser.add_argument("--engine", choices=("inline", "ray"), default="ray")
    parser.add_argument("--most", type=int, default=10**9, help="parties at most")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    protocols = [name for name in KINDS if name in arguments.parts or PROTOCOLS in arguments.parts]
    if protocols and {*COUNTS, SHARING} & {*arguments.parts}:
        parser.error("protocols cost processor seconds, and are measured by themselves")
    if SHARING in arguments.parts:
        sharing()
    inline = arguments.engine == "inline" or bool(protocols)
    counts = [count for count in FEW if count <= arguments.most]
    curves = {name: told(name, of_protocol(name, counts)) for name in protocols}
    for part in [part for part in arguments.parts or COUNTS if part in COUNTS]:
        counts = [count for count in COUNTS[part] if count <= arguments.most]
        curves[part] = told(part, (measure(part, [], count, arguments.engine) for count in counts))
    if arguments.out is not None:
        draw(curves, arguments.out, "processor seconds of the run" if inline else "seconds of collecting")
        print(f"drew {arguments.out}")


if __name__ == "__main__":
    main()
