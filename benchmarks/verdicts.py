"""What is said of results that are worth nothing, and of good ones: python -m benchmarks.verdicts [--splits N]

Every world is generated, 5 splits by default. Those of `hopeless` have rare classes, no signal, few parties or noise
beyond any signal; at most one of their six verdicts may be "cannot be told", and the others must be "no better". The
six of `good` must all be "useful".
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import print_tables
from federation.contract.randomness import generator
from scenarios.runs.runner import run

_WANTED = {"hopeless": "no better", "good": "useful"}
_MOST_UNTOLD = {"hopeless": 1, "good": 0}
_COLUMNS = 8


@dataclass(frozen=True)
class World:
    """Gaussian columns and classes of these `shares`, `distance` apart; with one share labels are real, 0 to 1."""

    rows: int
    shares: tuple[float, ...]
    distance: float
    parties: Mapping[str, Any]
    epsilon: float
    protocol: Mapping[str, Any] | None = None
    targets: Mapping[str, Any] | None = None

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """X (n, 8) and y (n,)."""
        random = generator(0, f"verdict {name}")
        X = random.standard_normal((self.rows, _COLUMNS))
        if len(self.shares) == 1:
            y = (
                X @ random.standard_normal(_COLUMNS) * self.distance / 10
                + 0.5
                + 0.1 * random.standard_normal(self.rows)
            )
            return {"X": X, "y": y.clip(0.0, 1.0)}
        codes = random.choice(len(self.shares), self.rows, p=self.shares)
        centres = random.standard_normal((len(self.shares), _COLUMNS))
        X += self.distance * (centres / np.linalg.norm(centres, axis=1, keepdims=True))[codes]
        return {"X": X, "y": codes}

    def scenario(self, file: Path, splits: int) -> dict[str, Any]:
        """What a user would write."""
        data: dict[str, Any] = {"source": str(file)}
        if len(self.shares) == 1:
            data["range"] = [0.0, 1.0]
        if self.targets:
            data["targets"] = self.targets
        return {
            "data": data,
            "parties": self.parties,
            "privacy": {"epsilon": [self.epsilon], "delta": 1e-6},
            "trials": {"splits": splits, "noise": 10},
            **({} if self.protocol is None else {"protocols": [self.protocol]}),
        }


_MEAN, _SUMS, _RATIO = {"kind": "mean_operator"}, {"kind": "label_sums"}, {"kind": "class_ratio"}
_EVEN, _TEN = (0.5, 0.5), (0.1,) * 10
WORLDS = {
    "hopeless": {
        "2 % positive, 50 parties": World(5000, (0.977, 0.023), 1.0, {"count": 50}, 1.0),
        "no signal at all": World(5000, _EVEN, 0.0, {"count": 500}, 3.0),
        "10 % positive, 20 parties": World(5000, (0.9, 0.1), 2.0, {"count": 20}, 0.1),
        "ten classes, 30 parties": World(5000, _TEN, 4.0, {"count": 30}, 0.3),
        "labels at epsilon .01": World(500, (0.7, 0.3), 1.0, {"count": 1}, 0.01, _MEAN),
        "real labels at epsilon .01": World(1000, (1.0,), 1.0, {"count": 1}, 0.01, _SUMS),
    },
    "good": {
        "even classes, 500 parties": World(5000, _EVEN, 3.0, {"count": 500}, 1.0),
        "10 % positive, 1000 parties": World(20000, (0.9, 0.1), 3.0, {"count": 1000}, 3.0),
        "four classes, 1000 parties": World(10000, (0.25,) * 4, 4.0, {"count": 1000}, 3.0),
        "labels at epsilon 1": World(5000, (0.7, 0.3), 3.0, {"count": 1}, 1.0, _MEAN),
        "real labels at epsilon 1": World(5000, (1.0,), 1.0, {"count": 1}, 1.0, _SUMS),
        "ratios of 20 bags": World(
            12000, _EVEN, 3.0, {"count": 1, "bags": 20}, 1.0, _RATIO, {"shares": [0.1, 0.5, 0.9]}
        ),
    },
}


def show(kind: str, asked: argparse.Namespace) -> None:
    """Prints each world's verdict in words, and whether the bar of its kind is met."""
    print(f"\n{kind}")
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, world) in enumerate(WORLDS[kind].items()):
            file = Path(folder) / f"{number}.npz"
            np.savez(file, allow_pickle=False, **world.arrays(name))
            finished = run(world.scenario(file, asked.splits), out=Path(folder) / f"run {number}")
            [verdict] = finished.verdicts
            found[verdict.finding] += 1
            print(f"{name:28}{verdict.finding:16}{finished.sayings[0][1]}")
    wanted = _WANTED[kind]
    untold, others = found["cannot be told"], found.total() - found[wanted] - found["cannot be told"]
    met = others == 0 and untold <= _MOST_UNTOLD[kind]
    print(f"bar: {found[wanted]} of {found.total()} {wanted}, {untold} cannot be told: {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    print_tables(__doc__, WORLDS, show, splits=5)
