"""What hostile parties cost, beside what they cost without bounds on answers with each party's own noise.

Run from the repository root: python -m benchmarks.hostile [--data-dir DIR] [--splits COUNT] [--draws COUNT]
[--attacks sign,against,2,4,8] [--markdown] [SETTING ...]

A cell is the mean over splits and noise draws with honest parties, with one hostile party, and with a tenth of all: of
the worst of the attacks (`benchmarks.hostile.parties.HostileParties`), all of which go through the whole product. Rows
of a table: answers summed as they come (`parties.robust: false`), and by default; then with `parties.alike`. Accuracies
of two classes, root mean squared errors of real labels over those of a constant, and of class_ratio accuracies of rows.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import print_tables
from benchmarks.hostile.parties import KNOWING, SEEING
from federation.contract.reference import Reference
from federation.grids.launch import open_grid
from scenarios.runs.world import Costs, World, worlds
from scenarios.settings.schema import resolve

HOSTILE = 0.1


@dataclass(frozen=True)
class Setting:
    """One row of the table: data, parties, a protocol, and the accuracies to reach with hostile parties, if any."""

    source: str
    parties: int
    epsilon: float
    protocol: dict[str, Any]
    partition: Any = "iid"
    metric: str = "accuracy"
    data: dict[str, Any] | None = None
    bags: int = 1


GAUSSIAN = {"kind": "mean_operator", "noise": "gaussian"}
LINEAR = {"kind": "error_marginals", "learner": "linear"}
SUMS = {"kind": "label_sums"}
RATIO = {"kind": "class_ratio", "estimator": "auto"}
UNEVEN = {"dirichlet": 0.3}
CANCER = {"source": "breast_cancer", "auxiliary": 100, "test": 0.2}
ADULT = {"source": "adult", "auxiliary": 1000, "test": 3000}
HOUSES = {"source": "california_housing", "auxiliary": 500, "test": 3000}
DATA = {"cancer": CANCER, "adult": ADULT, "houses": HOUSES}
ROWS = {"adult": 4000, "houses": 10_000}

SETTINGS = {
    "cancer-20-1": Setting("cancer", 20, 1.0, GAUSSIAN),
    "cancer-20-10": Setting("cancer", 20, 10.0, GAUSSIAN),
    "cancer-100-1": Setting("cancer", 100, 1.0, GAUSSIAN),
    "cancer-100-10": Setting("cancer", 100, 10.0, GAUSSIAN),
    "cancer-20-1-uneven": Setting("cancer", 20, 1.0, GAUSSIAN, UNEVEN),
    "cancer-20-10-uneven": Setting("cancer", 20, 10.0, GAUSSIAN, UNEVEN),
    "adult-50-1": Setting("adult", 50, 1.0, GAUSSIAN),
    "adult-50-10": Setting("adult", 50, 10.0, GAUSSIAN),
    "adult-50-1-uneven": Setting("adult", 50, 1.0, GAUSSIAN, UNEVEN),
    "adult-50-10-uneven": Setting("adult", 50, 10.0, GAUSSIAN, UNEVEN),
    "auto-20-1": Setting("cancer", 20, 1.0, {"kind": "mean_operator"}),
    "errors-20-1": Setting("cancer", 20, 1.0, LINEAR),
    "errors-20-10": Setting("cancer", 20, 10.0, LINEAR),
    "errors-100-1": Setting("cancer", 100, 1.0, LINEAR),
    "errors-100-10": Setting("cancer", 100, 10.0, LINEAR),
    "labels-20-1": Setting("houses", 20, 1.0, SUMS, metric="r2"),
    "labels-100-1": Setting("houses", 100, 1.0, SUMS, metric="r2"),
    "labels-100-10": Setting("houses", 100, 10.0, SUMS, metric="r2"),
    "ratio-20-1": Setting("cancer", 20, 1.0, RATIO, UNEVEN),
    "ratio-50-1": Setting("adult", 50, 1.0, RATIO, UNEVEN),
    "ratio-50-10": Setting("adult", 50, 10.0, RATIO, UNEVEN),
}


@dataclass(frozen=True, eq=False)
class Attacked(World):
    """A world whose first `hostile` parties attack."""

    hostile: int = 0
    attack: str = KNOWING[0]

    def holdings(self) -> Reference:
        """The parties, of whom some attack."""
        arguments = {**super().holdings().arguments, "hostile": self.hostile, "attack": self.attack}
        del arguments["conduct"]
        return Reference("benchmarks.hostile.parties:HostileParties", arguments)


def scenario_of(setting: Setting, splits: int, draws: int, **parties: Any) -> dict[str, Any]:
    """The scenario of a row of the table; `parties` are further keys of that section."""
    held = {"count": setting.parties, "partition": setting.partition, "bags": setting.bags, **parties}
    if setting.source in ROWS and setting.partition == "iid":
        held["rows"] = ROWS[setting.source] // setting.parties
    return {
        "name": "hostile",
        "data": DATA[setting.source],
        "parties": held,
        "protocols": [setting.protocol],
        "baselines": False,
        "privacy": {"epsilon": setting.epsilon, "delta": 1e-5},
        "trials": {"splits": splits, "noise": draws},
        "seed": 1,
    }


def score(
    setting: Setting, hostile: int, attack: str, data_dir: str | None, splits: int, draws: int, **how: Any
) -> float:
    """The mean over splits and draws of what is measured, with so many hostile parties."""
    found = []
    for world in worlds(resolve(scenario_of(setting, splits, draws, **how)), data_dir):
        attacked = Attacked(**{f.name: getattr(world, f.name) for f in fields(world)}, hostile=hostile, attack=attack)
        grid = open_grid("inline")
        with tempfile.TemporaryDirectory() as folder:
            rows, _ = attacked.run(grid, Costs(), Path(folder))
        grid.close()
        found += [row["value"] for row in rows if row["metric"] == setting.metric]
    return float(np.mean(found))


def cells(setting: Setting, attacks: Sequence[str], **how: Any) -> list[tuple[float, str]]:
    """What is measured with honest parties, one hostile one and a tenth of them, and by which attack."""
    worst = min if setting.metric == "accuracy" else max
    found = [(score(setting, 0, attacks[0], **how), "")]
    for hostile in (1, round(HOSTILE * setting.parties)):
        for chosen in ([one for one in attacks if one in SEEING], [one for one in attacks if one in KNOWING]):
            if chosen:
                found.append(worst((score(setting, hostile, attack, **how), attack) for attack in chosen))
    return found


def show(name: str, arguments: argparse.Namespace) -> None:
    """Prints one row."""
    setting, attacks = SETTINGS[name], arguments.attacks.split(",")
    known = {"data_dir": arguments.data_dir, "splits": arguments.splits, "draws": arguments.draws}
    shown = [name]
    for how in HOWS[::1] if not arguments.only else [one for one in HOWS if one[0] == arguments.only]:
        values = cells(setting, attacks, **known, **how[1])
        shown.append(
            how[0] + " " + " ".join(f"{value:.3f}{f' ({attack})' if attack else ''}" for value, attack in values)
        )
    print(" | ".join(shown), flush=True)


HOWS = [("before", {"robust": False}), ("now", {}), ("alike", {"alike": True})]

if __name__ == "__main__":
    print_tables(__doc__, SETTINGS, show, splits=2, draws=2, attacks=",".join((*SEEING, *KNOWING)), only="")
