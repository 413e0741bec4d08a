"""Linear regression on private rows: python -m benchmarks.row_regression [--data-dir DIR] [--splits COUNT]
[--draws COUNT] [SET ...]

`label_sums` with `protect: row` at 1, 10 and 100 parties, which add noise of their own or shares of one, beside

- the same without noise, behind the same map, and least squares on all rows as they are (both NON-PRIVATE);
- `label_sums` with `protect: label`, which hides labels only;
- AdaSSP (Wang 2018, Algorithm 2) at one party: the least eigenvalue, X'X and X'y at a third of epsilon and delta each,
  behind the same map, with exactly calibrated Gaussian noise. It is here for comparison and not in the framework;
- the mean label of the private rows (NON-PRIVATE).

Test errors, means over splits and draws, with 95 % intervals over splits. Sets whose data is missing are skipped.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit
from sklearn.datasets import make_friedman1

from aggregator.regressions.row_sessions import unit_rows
from benchmarks.common import print_tables, run_of
from federation.contract.randomness import generator
from federation.mechanisms.noise import gaussian
from scenarios.runs.trial import World, worlds
from scenarios.settings.schema import resolve

DELTA = 1e-6
EPSILONS = (0.1, 0.3, 1.0, 3.0)
PARTIES = (1, 10, 100)

ROW, SHARES, LABEL, MAPPED, POOLED = "row", "row, shares", "label", "without noise", "pooled"
CONSTANT, ADASSP = "constant", "AdaSSP"
_FAILS = 0.05  # the probability with which AdaSSP regularises too little

Errors = dict[tuple[str, float], np.ndarray]


@dataclass(frozen=True)
class RegressionSet:
    """A set of data with so many private and public rows."""

    source: str
    private: int
    public: int
    features: tuple[str, ...] = ("standardise", "constant")
    label_range: tuple[float, float] | None = None


SETS = {
    "housing": RegressionSet("housing", 8600, 1000, ("signed_log", "standardise", "constant")),
    "housing, 100 public rows": RegressionSet("housing", 9500, 100, ("signed_log", "standardise", "constant")),
    "protein": RegressionSet("protein", 8600, 1000),
    "friedman1": RegressionSet("friedman1", 3000, 1000, label_range=(0.0, 30.0)),
    "diabetes": RegressionSet("diabetes", 254, 100),
    "weeks": RegressionSet("census_weeks", 8600, 1000),
}


def measured(
    chosen: RegressionSet,
    parties: int,
    *,
    epsilons: Sequence[float] = EPSILONS,
    splits: int = 3,
    draws: int = 3,
    data_dir: str | None = None,
) -> Errors:
    """Test errors of each method at each epsilon, (splits,), means over draws; at all of them where it has none.

    Raises `InputError` where data is missing.
    """
    shared = [{"kind": "label_sums", "protect": "row", "trust": "secure"}] if parties > 1 else []
    protocols = [
        {"kind": "label_sums", "protect": "row"},
        {"kind": "label_sums", "protect": "row", "noise": "off"},
        {"kind": "label_sums"},
        {"kind": "pooled"},
        *shared,
    ]
    names = dict(zip((ROW, MAPPED, LABEL, POOLED, SHARES), protocols, strict=False))
    with tempfile.TemporaryDirectory() as folder:
        scenario = {
            "name": "row-regression",
            "data": {
                "source": _source(chosen, Path(folder)),
                "auxiliary": chosen.public,
                "test": 0.2,
                "features": list(chosen.features),
                **({} if chosen.label_range is None else {"range": list(chosen.label_range), "outside": "clip"}),
            },
            "parties": {"count": parties, "rows": chosen.private // parties},
            "privacy": {"epsilon": list(epsilons), "delta": DELTA},
            "trials": {"splits": splits, "noise": draws},
            "seed": 1,
        }
        found: Errors = {}
        for name, protocol in names.items():
            values: dict[tuple[float, int], list[float]] = {}
            for row in run_of({**scenario, "protocols": [protocol], "baselines": False}, data_dir).rows:
                if row["metric"] == "mse":
                    values.setdefault((float(row["epsilon"]), int(row["split"])), []).append(row["value"])
            for epsilon in epsilons:
                at = epsilon if (epsilon, 0) in values else math.inf
                found[name, epsilon] = np.array([np.mean(values[at, split]) for split in range(splits)])
        for name, epsilon, errors in _in_the_benchmark(scenario, epsilons, draws, data_dir):
            found[name, epsilon] = errors
    return found


def _in_the_benchmark(
    scenario: Mapping[str, Any], epsilons: Sequence[float], draws: int, data_dir: str | None
) -> Iterator[tuple[str, float, np.ndarray]]:
    """What the framework does not have, on the same splits: the constant, and AdaSSP where there is one party."""
    all_worlds = list(
        worlds(resolve({**scenario, "protocols": [{"kind": "label_sums"}], "baselines": False}), data_dir)
    )
    constant = np.array([float(np.var(_labels(world)[1] - _labels(world)[0].mean())) for world in all_worlds])
    for epsilon in epsilons:
        yield CONSTANT, epsilon, constant
        if scenario["parties"]["count"] == 1:
            yield ADASSP, epsilon, np.array([ada_ssp(world, epsilon, draws) for world in all_worlds])


def _labels(world: World) -> tuple[np.ndarray, np.ndarray]:
    cut = world.split.cut
    return world.split.table.labels[cut.order], world.split.table.labels[cut.test]


def ada_ssp(world: World, epsilon: float, draws: int) -> float:
    """The mean test error of AdaSSP over draws, with predictions clipped to the range of labels."""
    table, cut = world.split.table, world.split.cut
    assert table.label_range is not None
    raw = world.spec.reference("public_rows").call().rows
    features = unit_rows(world.feature_map(), raw)
    middle, half = sum(table.label_range) / 2, (table.label_range[1] - table.label_range[0]) / 2
    rows, test = features.transform(table.rows(cut.order)), features.transform(table.rows(cut.test))
    labels = np.clip((table.labels[cut.order] - middle) / half, -1, 1)
    width, noise = rows.shape[1], 1 / gaussian.mu(epsilon / 3, DELTA / 3)
    gram, moment = rows.T @ rows, rows.T @ labels
    random, errors = generator(world.scenario.seed, "AdaSSP", world.spec.split, trial=int(1000 * epsilon)), []
    for _ in range(draws):
        least = max(np.linalg.eigvalsh(gram)[0] + noise * (random.normal() - math.sqrt(math.log(6 / DELTA))), 0.0)
        square = random.normal(size=gram.shape)  # made symmetric: as much noise as the Frobenius norm needs
        noisy = gram + noise * (square + square.T) / math.sqrt(2)
        ridge = max(0.0, math.sqrt(width * math.log(2 * width**2 / _FAILS)) * noise - least)
        total = moment + 2 * noise * random.normal(size=width)
        weights = np.linalg.lstsq(noisy + ridge * np.eye(width), total, rcond=None)[0]
        predicted = middle + half * np.clip(test @ weights, -1, 1)
        errors.append(np.mean((predicted - table.labels[cut.test]) ** 2))
    return float(np.mean(errors))


def _source(chosen: RegressionSet, folder: Path) -> str:
    """The name of a known set, or the file of a generated one."""
    if chosen.source != "friedman1":
        return chosen.source
    rows, labels = make_friedman1(6000, noise=1.0, random_state=0)
    np.savez(folder / "friedman1.npz", X=rows, y=labels)
    return str(folder / "friedman1.npz")


def interval(values: np.ndarray) -> float:
    """Half the width of a 95 % interval of the mean of (splits,) values, by Student's law; NaN of a single one."""
    if len(values) < 2:
        return math.nan
    return float(stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / len(values) ** 0.5)


def show(name: str, chosen: argparse.Namespace) -> None:
    """Prints the errors on one set."""
    for parties in PARTIES:
        if SETS[name].private // parties < 2:
            continue
        found = measured(SETS[name], parties, splits=chosen.splits, draws=chosen.draws, data_dir=chosen.data_dir)
        title = f"{name}, {parties} part{'y' if parties == 1 else 'ies'}"
        print(f"\n{title:32}" + "".join(f"{f'epsilon {epsilon:g}':>20}" for epsilon in EPSILONS))
        for method in dict.fromkeys(method for method, _ in found):
            cells = [found[method, epsilon] for epsilon in EPSILONS]
            print(
                f"{method:32}" + "".join(f"{cell.mean():11.4g} +- {interval(cell):<5.2g}" for cell in cells), flush=True
            )


if __name__ == "__main__":
    print_tables(__doc__, SETS, show, splits=3, draws=3)
