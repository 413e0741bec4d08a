"""What hostile parties cost, beside what they cost where answers are summed as they come.

Run from the repository root: python -m benchmarks.hostile [--data-dir DIR] [--splits COUNT] [--draws COUNT]
[--attacks ATTACK,ATTACK,...] [SETTING ...]

A row of the table is one setting: what is measured with honest parties, with one hostile party and with a tenth of
them. First with `parties.robust: false`, under the attack that is there the worst one; then as it is by default, under
the worst of all attacks (`benchmarks.hostile.parties.HostileParties`) that see what others send, and of those that know
all that is private. Last is what one hostile party may cost: what a first version of these rules lost, and .02. Every
attack goes through the whole product. Cells are means over splits and noise draws: of accuracies, and where marked of
mean squared errors (label_sums) or L1 errors of class ratios (class_ratio).
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
from benchmarks.hostile.parties import HostileParties
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid
from scenarios.runs.progress import Costs
from scenarios.runs.trial import World, worlds
from scenarios.settings.schema import resolve

TENTH, SLACK = 0.1, 0.02
SEEING, KNOWING = ("sign seen", "against seen", "4 seen", "8 seen"), ("against", "4")
BEFORE = "sign"
HEADER = (
    "| setting | as they come: honest, one, tenth | now: honest | one seeing | one knowing | tenth seeing "
    "| tenth knowing | one may cost |\n|---|---|---|---|---|---|---|---|"
)

DATA: dict[str, dict[str, Any]] = {
    "cancer": {"source": "breast_cancer", "auxiliary": 100, "test": 0.2},
    "adult": {"source": "adult", "auxiliary": 1000, "test": 3000},
    "houses": {"source": "housing", "auxiliary": 500, "test": 3000},
}
ROWS = {"adult": 4000, "houses": 10_000}  # of all parties, where they are dealt equally; else all there are
PROTOCOLS: dict[str, dict[str, Any]] = {
    "mean_operator": {"kind": "mean_operator", "noise": "gaussian"},
    "auto": {"kind": "mean_operator"},
    "error_marginals": {"kind": "error_marginals", "learner": "linear"},
    "label_sums": {"kind": "label_sums"},
    "class_ratio": {"kind": "class_ratio", "estimator": "bag_classifier"},
}
METRICS = {"label_sums": "mse", "class_ratio": "l1"}  # the less the better; elsewhere accuracy


@dataclass(frozen=True)
class Setting:
    """One row: a set, parties, epsilon, a protocol, how uneven parties are, and what one hostile one cost before."""

    source: str
    parties: int
    epsilon: float
    protocol: str = "mean_operator"
    dirichlet: float | None = None
    alike: bool = False
    cost: float | None = None

    @property
    def metric(self) -> str:
        """What is measured."""
        return METRICS.get(self.protocol, "accuracy")

    @property
    def name(self) -> str:
        """In words."""
        uneven = "" if self.dirichlet is None else f", dirichlet {self.dirichlet:g}"
        noise = " (auto)" if self.protocol == "auto" else ""
        kind = PROTOCOLS[self.protocol]["kind"]
        told = f"{kind}{noise}, {self.source}, K {self.parties}, epsilon {self.epsilon:g}{uneven}"
        return told + (", alike" if self.alike else "") + (f" ({self.metric})" if self.metric != "accuracy" else "")


SETTINGS = {
    "cancer-20-1": Setting("cancer", 20, 1.0, cost=0.002),
    "cancer-20-10": Setting("cancer", 20, 10.0, cost=-0.007),
    "cancer-100-1": Setting("cancer", 100, 1.0, cost=0.005),
    "cancer-100-10": Setting("cancer", 100, 10.0, cost=0.005),
    "cancer-20-1-uneven": Setting("cancer", 20, 1.0, dirichlet=0.3, cost=0.004),
    "cancer-20-10-uneven": Setting("cancer", 20, 10.0, dirichlet=0.3, cost=0.002),
    "auto-20-1": Setting("cancer", 20, 1.0, "auto", cost=0.011),
    "adult-50-1": Setting("adult", 50, 1.0, cost=0.0),
    "adult-50-1-uneven": Setting("adult", 50, 1.0, dirichlet=0.3, cost=0.001),
    "adult-50-10": Setting("adult", 50, 10.0, cost=0.005),
    "adult-50-10-alike": Setting("adult", 50, 10.0, alike=True, cost=0.0),
    "adult-50-10-uneven": Setting("adult", 50, 10.0, dirichlet=0.3, cost=0.007),
    "errors-20-1": Setting("cancer", 20, 1.0, "error_marginals", cost=0.063),
    "errors-20-10": Setting("cancer", 20, 10.0, "error_marginals", cost=0.0),
    "errors-100-1": Setting("cancer", 100, 1.0, "error_marginals", cost=0.088),
    "errors-100-10": Setting("cancer", 100, 10.0, "error_marginals", cost=0.006),
    "labels-20-1": Setting("houses", 20, 1.0, "label_sums"),
    "labels-100-1": Setting("houses", 100, 1.0, "label_sums"),
    "ratio-20-1": Setting("cancer", 20, 1.0, "class_ratio", 0.3),
}


@dataclass(frozen=True, eq=False)
class Attacked(World):
    """A world whose first `hostile` parties attack."""

    hostile: int = 0
    attack: str = BEFORE

    def holdings(self) -> Reference:
        """The parties, of whom some attack."""
        arguments = {**super().holdings().arguments, "hostile": self.hostile, "attack": self.attack}
        del arguments["conduct"]
        return Reference(f"{HostileParties.__module__}:{HostileParties.__name__}", arguments)


@dataclass(frozen=True)
class Trials:
    """How often a cell is measured, on the data in which folder."""

    splits: int
    draws: int
    data_dir: str | None


def scenario_of(setting: Setting, trials: Trials, robust: bool) -> dict[str, Any]:
    """The scenario of a row of the table."""
    dealt: dict[str, Any] = {"partition": "iid" if setting.dirichlet is None else {"dirichlet": setting.dirichlet}}
    if setting.dirichlet is None and setting.source in ROWS:
        dealt["rows"] = ROWS[setting.source] // setting.parties
    return {
        "name": "hostile",
        "data": DATA[setting.source],
        "parties": {"count": setting.parties, "robust": robust, "alike": setting.alike, **dealt},
        "protocols": [PROTOCOLS[setting.protocol]],
        "baselines": False,
        "privacy": {"epsilon": setting.epsilon, "delta": 1e-5},
        "trials": {"splits": trials.splits, "noise": trials.draws},
        "seed": 1,
    }


def score(setting: Setting, hostile: int, attack: str, trials: Trials, robust: bool = True) -> float:
    """The mean over splits and draws of what is measured, with so many hostile parties."""
    found = []
    for world in worlds(resolve(scenario_of(setting, trials, robust)), trials.data_dir):
        known = {one.name: getattr(world, one.name) for one in fields(world)}
        grid = open_grid("inline")
        with tempfile.TemporaryDirectory() as folder:
            rows, _ = Attacked(**known, hostile=hostile, attack=attack).run(grid, Costs(), Path(folder))
        grid.close()
        found += [row["value"] for row in rows if row["metric"] == setting.metric]
    return float(np.mean(found))


def worst(setting: Setting, hostile: int, attacks: Sequence[str], trials: Trials) -> tuple[float, str]:
    """The worst of what is measured under some attacks, and under which of them."""
    found = [(score(setting, hostile, attack, trials), attack) for attack in attacks]
    return min(found) if setting.metric == "accuracy" else max(found)


def show(name: str, arguments: argparse.Namespace) -> None:
    """Prints one row."""
    setting, trials = SETTINGS[name], Trials(arguments.splits, arguments.draws, arguments.data_dir)
    tenth = round(TENTH * setting.parties)
    attacks = arguments.attacks.split(",")
    seeing, knowing = ([one for one in chosen if one in attacks] for chosen in (SEEING, KNOWING))
    before = " ".join(f"{score(setting, hostile, BEFORE, trials, robust=False):.3f}" for hostile in (0, 1, tenth))
    cells = [setting.name, before, f"{score(setting, 0, BEFORE, trials):.3f}"]
    for hostile in (1, tenth):
        for several in (seeing, knowing):
            value, attack = worst(setting, hostile, several, trials) if several else (float("nan"), "")
            cells.append(f"{value:.3f} ({attack.removesuffix(' seen')})")
    cells.append("" if setting.cost is None else f"{setting.cost + SLACK:.3f}")
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    print(HEADER, flush=True)
    print_tables(__doc__, SETTINGS, show, splits=3, draws=2, attacks=",".join((*SEEING, *KNOWING)))
