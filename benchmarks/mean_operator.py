"""Accuracies of `mean_operator` as it is by default, with noise on sums alone as it was, and with every other noise.

Run from the repository root: python -m benchmarks.mean_operator [--data-dir DIR] [--splits COUNT] [--draws COUNT]
[--parties COUNT,COUNT,...] [--epsilons E,E,...] [SET ...]

Sets: adult, higgs, kdd99, ctg (normal or not), mnist (odd digits, 30 components), protein (above 5), digits (from 5 on)
and breast_cancer; up to 4000 training rows, dealt to 1, 10, 100 and 1000 parties where there are so many. A cell is the
mean over splits and noise draws, with the 95 % interval of the mean over splits. Before is `noise: sums` with `denoise:
false`. Regret is how much the default loses against the best of both noises, shrunk or as they come, which nobody knows
beforehand; choice is what it loses against the better noise, both shrunk. Everything goes through the product.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.common import bar, print_tables, run_of
from scenarios.data.catalogue import load

EPSILONS = (0.1, 0.3, 1.0, 3.0)
SEVERAL = (1, 10, 100, 1000)
MOST_REGRET, LARGE_REGRET, MOST_LARGE = 0.03, 0.01, 0.05
AUTO, SUMS, RESPONSE = NOISES = ("auto", "sums", "randomised_response")

_NAME, _EXACT = "mean_operator", "mean_operator-off"


@dataclass(frozen=True)
class Source:
    """A data set of two classes: which are positive, how many rows are for training, public and for testing."""

    source: str
    rows: int = 4000
    public: int = 1000
    test: int = 3000
    positive: tuple[str, ...] | None = None
    features: tuple[Any, ...] = ("standardise", "constant")


SETS = {
    "adult": Source("adult"),
    "higgs": Source("higgs"),
    "kdd99": Source("kdd99"),
    "ctg": Source("ctg", 1300, 300, 500, ("suspect", "pathologic")),
    "mnist": Source("mnist", positive=tuple("13579"), features=({"whiten": 30}, "constant")),
    "protein": Source("protein"),
    "digits": Source("digits", 1100, 250, 400, tuple("56789")),
    "breast_cancer": Source("breast_cancer", 340, 85, 140),
}


@dataclass(frozen=True)
class Cell:
    """One world: a set, the parties to whom its rows are dealt, and epsilon."""

    source: str
    parties: int
    epsilon: float


@dataclass(frozen=True, eq=False)
class Accuracies:
    """Mean accuracies of each split (splits,), by the noise and whether the sum is shrunk by it.

    `chosen` is the noise that the default took: its releases and those that ask for that noise have one law, and count
    together. `exact` is the accuracy without noise, `constant` that of the commonest class.
    """

    by_law: dict[tuple[str, bool], np.ndarray]
    chosen: str
    exact: float
    constant: float

    def of(self, noise: str, denoised: bool) -> float:
        """The mean accuracy of one law."""
        return float(self.by_law[noise, denoised].mean())

    @property
    def before(self) -> float:
        """Of noise on sums, as it comes."""
        return self.of(SUMS, False)

    @property
    def after(self) -> float:
        """Of the default."""
        return self.of(self.chosen, True)

    @property
    def best(self) -> tuple[str, bool]:
        """The law with the largest mean."""
        return max(self.by_law, key=lambda law: self.of(*law))

    @property
    def regret(self) -> float:
        """How much the default loses against the best law."""
        return self.of(*self.best) - self.after

    @property
    def choosing(self) -> float:
        """How much it loses against the better noise, both shrunk."""
        return max(self.of(noise, True) for noise, _ in self.by_law) - self.after

    @property
    def denoising(self) -> float:
        """What shrinking adds."""
        return self.after - self.of(self.chosen, False)


def measure(
    name: str,
    *,
    parties: Sequence[int] = SEVERAL,
    epsilons: Sequence[float] = EPSILONS,
    splits: int = 3,
    draws: int = 3,
    data_dir: str | None = None,
) -> dict[Cell, Accuracies]:
    """The accuracies of every cell of a set of `SETS`, means over `splits` and `draws` of noise.

    With more parties than rows there is no cell. Raises `InputError` without data.
    """
    chosen = SETS[name]
    known = [count for count in parties if count <= chosen.rows]
    with tempfile.TemporaryDirectory() as folder:
        source = _above_five(Path(folder), data_dir) if name == "protein" else chosen.source
        found: dict[Cell, Accuracies] = {}
        for count in known:
            run = run_of(_scenario(chosen, source, count, epsilons, splits, draws), data_dir)
            found |= _cells(name, count, epsilons, splits, run.rows)
    return found


def _scenario(
    chosen: Source, source: str, parties: int, epsilons: Sequence[float], splits: int, draws: int
) -> dict[str, Any]:
    private = {"kind": "mean_operator", "noise": [*NOISES], "denoise": [True, False]}
    data = {"source": source, "auxiliary": chosen.public, "test": chosen.test, "features": list(chosen.features)}
    if chosen.positive:
        data["positive"] = list(chosen.positive)
    return {
        "name": "mean-operator",
        "data": data,
        "parties": {"count": parties, "rows": chosen.rows // parties},
        "protocols": [private, {"kind": "mean_operator", "noise": "off"}, {"kind": "constant"}],
        "baselines": False,
        "privacy": {"epsilon": list(epsilons), "delta": 1e-6},
        "trials": {"splits": splits, "noise": draws},
        "seed": 1,
    }


def _cells(
    name: str, parties: int, epsilons: Sequence[float], splits: int, rows: Sequence[Any]
) -> dict[Cell, Accuracies]:
    def values(metric: str, variant: str, epsilon: float | None = None) -> list[list[float]]:
        own = [row for row in rows if row["metric"] == metric and row["variant"] == variant]
        own = [row for row in own if epsilon in (None, row["epsilon"])]
        return [[row["value"] for row in own if row["split"] == split] for split in range(splits)]

    def cell(epsilon: float) -> Accuracies:
        norms = {noise: np.mean(values("noise_norm", _variant(noise, True), epsilon)) for noise in NOISES}
        chosen = min((SUMS, RESPONSE), key=lambda noise: abs(norms[noise] - norms[AUTO]))
        found: dict[tuple[str, bool], np.ndarray] = {}
        for noise in (SUMS, RESPONSE):
            for denoised in (True, False):
                several = [noise, AUTO] if noise == chosen else [noise]
                every = [values("accuracy", _variant(one, denoised), epsilon) for one in several]
                found[noise, denoised] = np.concatenate(every, axis=1).mean(axis=1)
        exact, constant = (float(np.mean(values("accuracy", variant))) for variant in (_EXACT, "constant"))
        return Accuracies(found, chosen, exact, constant)

    return {Cell(name, parties, epsilon): cell(epsilon) for epsilon in epsilons}


def _variant(noise: str, denoised: bool) -> str:
    return "-".join([_NAME, *([] if noise == AUTO else [noise]), *([] if denoised else ["denoise=false"])])


def _above_five(folder: Path, data_dir: str | None) -> str:
    """protein as a file of two classes: whether the label is above 5."""
    table = load("protein", data_dir=data_dir)
    path = folder / "protein.npz"
    rows = table.rows(np.arange(len(table)))
    np.savez(path, X=rows, y=(table.labels > 5).astype(np.int64))
    return str(path)


def interval(values: np.ndarray) -> float:
    """Half the width of the 95 % interval of the mean; NaN of a single one."""
    if len(values) < 2:
        return float("nan")
    return float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)


def show(name: str, arguments: argparse.Namespace) -> None:
    """Prints the table of one set, and its bars."""
    found = measure(
        name,
        parties=[int(one) for one in arguments.parties.split(",")],
        epsilons=[float(one) for one in arguments.epsilons.split(",")],
        splits=arguments.splits,
        draws=arguments.draws,
        data_dir=arguments.data_dir,
    )
    print(f"\n{name}\nparties epsilon  before          after           regret  choice denoise  taken, best")
    for cell, one in found.items():
        spread = [interval(one.by_law[law]) for law in ((SUMS, False), (one.chosen, True))]
        best = f"{one.best[0]}{'' if one.best[1] else ', as it comes'}"
        print(
            f"{cell.parties:7} {cell.epsilon:7g}  {one.before:.3f} ± {spread[0]:.3f}   {one.after:.3f} ± "
            f"{spread[1]:.3f}   {one.regret:.3f}   {one.choosing:.3f}  {one.denoising:+.3f}  {one.chosen}; {best}",
            flush=True,
        )
    cells = [*found.values()]
    print(f"without noise {cells[0].exact:.3f}, constant {cells[0].constant:.3f}")
    for what, regrets in (("regret", [one.regret for one in cells]), ("choice", [one.choosing for one in cells])):
        bar(f"worst {what}", max(regrets), MOST_REGRET)
        large = float(np.mean(np.array(regrets) > LARGE_REGRET))
        bar(f"share of cells with a {what} above {LARGE_REGRET:g}", large, MOST_LARGE)


if __name__ == "__main__":
    counts, aims = (",".join(f"{one:g}" for one in several) for several in (SEVERAL, EPSILONS))
    print_tables(__doc__, [*SETS], show, splits=3, draws=3, parties=counts, epsilons=aims)
