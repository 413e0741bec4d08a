"""Accuracy behind feature maps, before and after: python -m benchmarks.features [--data-dir DIR] [--splits COUNT]
[--draws COUNT] [NAME ...]

Runs the default soft vote (100 parties, pure epsilon 1) on real data, as it is and with missing cells, once behind
every map: as the default was (`before`; missing cells had to be filled in by hand, here with zeros), as it is (`after`)
and alternatives. Prints means over splits and noise draws with 95 % intervals, which are of the splits' means, and the
paired difference between after and before. Worlds whose data is missing are skipped with a message.

Of the columns with more than two values a fifth of the cells goes missing: at random, or mostly large ones (with
probability .6 u^2 at the quantile u of its column).
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata, t

from benchmarks.common import print_tables, run_of, standard_error
from scenarios.data.catalogue import load

REST = [{"whiten": "auto"}, "constant", "unit_norm"]
BEFORE, AFTER = "before", "after"
MAPS: dict[str, list[Any]] = {
    BEFORE: ["standardise", *REST],
    AFTER: ["impute", "scale", *REST],
    "logarithm, nothing else": ["signed_log", *REST],
    "logarithm of all columns": ["signed_log", "standardise", *REST],
}
HOLED: dict[str, list[Any]] = {
    BEFORE: ["scale", *REST],
    AFTER: ["impute", "scale", *REST],
    "no flags": [{"impute": {"flags": False}}, "scale", *REST],
}
WORLDS: dict[str, tuple[dict[str, Any], dict[str, int], str]] = {
    "adult": ({"source": "adult"}, {}, "none"),
    "kdd99": ({"source": "kdd99", "auxiliary": 10_000, "test": 20_000}, {"rows": 100}, "none"),
    "ctg": ({"source": "ctg"}, {}, "none"),
    "breast_cancer": ({"source": "breast_cancer"}, {}, "none"),
    "ctg-random": ({"source": "ctg"}, {}, "random"),
    "ctg-large": ({"source": "ctg"}, {}, "large"),
    "adult-random": ({"source": "adult"}, {}, "random"),
    "adult-large": ({"source": "adult"}, {}, "large"),
}


def holed(source: str, missing: str, data_dir: str | None, folder: Path) -> dict[str, Path]:
    """Files of the data set with missing cells, as they are and with zeros in them."""
    table, random = load(source, data_dir=data_dir), np.random.default_rng(0)
    rows = table.rows(np.arange(len(table)))
    several = np.array([len(np.unique(column)) > 2 for column in rows.T])
    quantiles = rankdata(rows[:, several], axis=0) / len(rows)
    chances = 0.2 if missing == "random" else 0.6 * quantiles**2
    gone = np.zeros(rows.shape, dtype=bool)
    gone[:, several] = random.random(quantiles.shape) < chances
    files = {AFTER: folder / "missing.npz", BEFORE: folder / "zeros.npz"}
    for name, filled in ((AFTER, np.nan), (BEFORE, 0.0)):
        labels = np.array(table.classes)[table.labels]
        np.savez(files[name], X=np.where(gone, filled, rows), y=labels, feature_names=np.array(table.columns))
    return files


def accuracies(data: dict[str, Any], parties: dict[str, int], arguments: argparse.Namespace) -> dict[str, np.ndarray]:
    """Mean accuracy of each split (s,), by variant."""
    scenario = {
        "name": "features",
        "data": data,
        "parties": {"count": 100, **parties},
        "protocols": [{"kind": "soft_vote"}, {"kind": "pooled"}, {"kind": "constant"}],
        "baselines": False,
        "privacy": {"epsilon": 1},
        "trials": {"splits": arguments.splits, "noise": arguments.draws},
    }
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in run_of(scenario, arguments.data_dir).rows:
        if row["metric"] == "accuracy":
            found[row["variant"]][row["split"]].append(row["value"])
    return {name: np.array([np.mean(values) for values in splits.values()]) for name, splits in found.items()}


def interval(values: np.ndarray) -> str:
    """The mean and the half width of its 95 % interval."""
    half = t.ppf(0.975, len(values) - 1) * standard_error(values) if len(values) > 1 else np.nan
    return f"{values.mean():.4f} +- {half:.4f}"


def show(name: str, arguments: argparse.Namespace) -> None:
    """Prints the table of one world."""
    data, parties, missing = WORLDS[name]
    measured = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {} if missing == "none" else holed(data["source"], missing, arguments.data_dir, Path(folder))
        for title, features in (HOLED if files else MAPS).items():
            source = {"source": str(files[BEFORE if title == BEFORE else AFTER]), "label": "y"} if files else {}
            measured[title] = accuracies({**data, **source, "features": features}, parties, arguments)
    print(f"\n{name}: constant class {measured[AFTER]['constant'].mean():.4f}")
    for title, found in measured.items():
        print(f"  {title:26}{interval(found['soft_vote'])}   pooled {interval(found['pooled'])}", flush=True)
    best = max(measured, key=lambda title: float(measured[title]["soft_vote"].mean()))
    gained = {title: measured[AFTER]["soft_vote"] - measured[title]["soft_vote"] for title in (BEFORE, best)}
    print(f"  after - before {interval(gained[BEFORE])}; best: {best}, after - best {interval(gained[best])}")


if __name__ == "__main__":
    print_tables(__doc__, WORLDS, show, one_thread=False, splits=3, draws=10)
