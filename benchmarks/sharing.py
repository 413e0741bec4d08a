"""What many noise draws and epsilons add to a run: python -m benchmarks.sharing [--data-dir DIR]

Runs the same ten splits with 1 draw at 1 epsilon and with 100 draws at 6 epsilons, in turn, and prints the ratio of
the medians: of whole runs, and of the worlds without figures and report. Uses HAR where its data is at hand, the
bundled digits otherwise.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from benchmarks.common import command_line, fastest, run_of

ROUNDS = 3
PROTOCOLS = [
    {"kind": "soft_vote"},
    {"kind": "soft_vote", "perturb": "output", "sensitivity": "published", "regularisation": 1e-2},
]
FEW = {"epsilon": [1.0], "noise": 1}
MANY = {"epsilon": [0.1, 0.3, 1.0, 3.0, 10.0, 30.0], "noise": 100}


def scenario(data: dict[str, Any], parties: dict[str, int], amount: dict[str, Any]) -> dict[str, Any]:
    """Ten splits of the given world."""
    return {
        "name": "sharing",
        "data": data,
        "parties": parties,
        "protocols": PROTOCOLS,
        "baselines": False,
        "privacy": {"epsilon": amount["epsilon"]},
        "trials": {"splits": 10, "noise": amount["noise"]},
    }


def seconds(document: dict[str, Any], data_dir: str | None) -> tuple[float, float]:
    """Whole run, and its worlds alone."""
    whole, run = fastest(lambda: run_of(document, data_dir), 1)
    return whole, whole - run.costs.seconds["report"]


def main() -> None:
    """Print the medians and their ratio."""
    data_dir = command_line(__doc__).parse_args().data_dir
    if data_dir is not None and (Path(data_dir) / "har.npz").exists():
        data = {"source": "har", "auxiliary": 1352, "test": "official", "features": [{"whiten": 10}, "unit_norm"]}
        parties = {"count": 1000, "rows": 6}
    else:
        data = {"source": "digits", "auxiliary": 430, "features": [{"whiten": 12}, "unit_norm"]}
        parties = {"count": 200, "rows": 5}
    seconds(scenario(data, parties, FEW), data_dir)  # imports and caches
    measured: dict[str, list[tuple[float, float]]] = {"few": [], "many": []}
    for _ in range(ROUNDS):
        for name, amount in (("few", FEW), ("many", MANY)):
            measured[name].append(seconds(scenario(data, parties, amount), data_dir))
    print(f"{data['source']}: {parties['count']} parties, 10 splits, default and published soft vote")
    for index, what in enumerate(("whole run with figures and report", "worlds only")):
        few, many = (statistics.median(pair[index] for pair in measured[name]) for name in ("few", "many"))
        print(f"{what}: 1 draw x 1 epsilon {few:.2f} s, 100 draws x 6 epsilons {many:.2f} s, ratio {many / few:.2f}")


if __name__ == "__main__":
    main()
