"""Accuracies of `mean_operator` as it is by default, with noise on sums alone as it was, and with every other noise.

Run from the repository root: python -m benchmarks.mean_operator [--data-dir DIR] [--splits COUNT] [--draws COUNT]
[--parties COUNT,COUNT,...] [--epsilons E,E,...] [--secure] [SET ...]

Sets: adult, higgs, kdd99, ctg (normal or not), mnist (odd digits, 30 components), protein (above 5), digits (from 5 on)
and breast_cancer; up to 4000 training rows, dealt to 1, 10, 100 and 1000 parties where there are so many. A cell is the
mean over splits and noise draws, with the 95 % interval of the mean over splits. Before is `noise: sums` with `denoise:
false`; regret is how much the default loses against the best of all fixed choices, which nobody knows beforehand, and
so has some luck of its own in it: that of the default against the better of the two noises by their size is beside it.
Everything goes through the product: the same command line, questions, answers and releases as in any run.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Sequence
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
NOISES = ("auto", "sums", "randomised_response")

_NAME, _BEFORE, _EXACT, _CONSTANT = "mean_operator", "mean_operator-sums-denoise=false", "mean_operator-off", "constant"


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
    """Mean accuracies of each split (splits,), by variant; `exact` without noise, `constant` of the commonest class."""

    by_variant: dict[str, np.ndarray]
    exact: float
    constant: float

    @property
    def before(self) -> float:
        """Of noise on sums, as it comes."""
        return float(self.by_variant[_BEFORE].mean())

    @property
    def after(self) -> float:
        """Of the default."""
        return float(self.by_variant[_NAME].mean())

    @property
    def best(self) -> tuple[str, float]:
        """The best variant, and its accuracy."""
        means = {name: float(values.mean()) for name, values in self.by_variant.items()}
        name = max(means, key=lambda one: means[one])
        return name.removeprefix(_NAME).removeprefix("-") or "default", means[name]

    @property
    def regret(self) -> float:
        """How much the default loses against the best."""
        return self.best[1] - self.after

    def chosen(self, denoised: bool) -> float:
        """How much the choice between both noises loses against the better one, with `denoise` or without."""
        ending = "" if denoised else "-denoise=false"
        names = [f"{_NAME}{'' if noise == 'auto' else '-' + noise}{ending}" for noise in NOISES]
        auto, *others = (float(self.by_variant[name].mean()) for name in names)
        return max(0.0, *others) - auto if others else 0.0

    @property
    def denoising(self) -> float:
        """What denoising adds to the default's choice of noise."""
        return self.after - float(self.by_variant[f"{_NAME}-denoise=false"].mean())


def measure(
    name: str,
    *,
    parties: Sequence[int] = SEVERAL,
    epsilons: Sequence[float] = EPSILONS,
    splits: int = 3,
    draws: int = 3,
    secure: bool = False,
    data_dir: str | None = None,
) -> dict[Cell, Accuracies]:
    """The accuracies of every cell of a set of `SETS`, means over `splits` and `draws` of noise.

    With more parties than rows there is no cell. `secure` lets them share one noise. Raises `InputError` without data.
    """
    chosen = SETS[name]
    known = [count for count in parties if count <= chosen.rows and not (secure and count < 3)]
    with tempfile.TemporaryDirectory() as folder:
        source = _above_five(Path(folder), data_dir) if name == "protein" else chosen.source
        found: dict[Cell, Accuracies] = {}
        for count in known:
            run = run_of(_scenario(chosen, source, count, epsilons, splits, draws, secure), data_dir)
            found |= _cells(name, count, epsilons, splits, run.rows)
    return found


def _scenario(
    chosen: Source, source: str, parties: int, epsilons: Sequence[float], splits: int, draws: int, secure: bool
) -> dict[str, Any]:
    private = {"kind": "mean_operator", "noise": [*NOISES], "denoise": [True, False]}
    if secure:
        private = {**private, "noise": ["auto", "sums"], "summation": "secure"}
    protocols: list[dict[str, Any]] = [private, {"kind": "mean_operator", "noise": "off"}, {"kind": "constant"}]
    if secure:
        protocols.insert(1, {"kind": "mean_operator", "noise": "randomised_response", "denoise": [True, False]})
    data = {"source": source, "auxiliary": chosen.public, "test": chosen.test, "features": list(chosen.features)}
    if chosen.positive:
        data["positive"] = list(chosen.positive)
    return {
        "name": "mean-operator",
        "data": data,
        "parties": {"count": parties, "rows": chosen.rows // parties},
        "protocols": protocols,
        "privacy": {"epsilon": list(epsilons), "delta": 1e-6},
        "trials": {"splits": splits, "noise": draws},
        "seed": 1,
    }


def _cells(
    name: str, parties: int, epsilons: Sequence[float], splits: int, rows: Iterable[Any]
) -> dict[Cell, Accuracies]:
    accuracies = [row for row in rows if row["metric"] == "accuracy"]

    def means(variant: str, epsilon: float | None = None) -> np.ndarray:
        own = [row for row in accuracies if row["variant"] == variant and epsilon in (None, row["epsilon"])]
        return np.array([np.mean([row["value"] for row in own if row["split"] == split]) for split in range(splits)])

    exact, constant = (float(means(variant).mean()) for variant in (_EXACT, _CONSTANT))
    private = [variant for variant in dict.fromkeys(row["variant"] for row in accuracies)]
    private = [variant for variant in private if variant not in (_EXACT, _CONSTANT)]
    return {
        Cell(name, parties, epsilon): Accuracies(
            {variant.replace("-secure", ""): means(variant, epsilon) for variant in private}, exact, constant
        )
        for epsilon in epsilons
    }


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
    parties = [int(one) for one in arguments.parties.split(",")]
    epsilons = [float(one) for one in arguments.epsilons.split(",")]
    found = measure(
        name,
        parties=parties,
        epsilons=epsilons,
        splits=arguments.splits,
        draws=arguments.draws,
        secure=arguments.secure,
        data_dir=arguments.data_dir,
    )
    print(f"\n{name}\nparties epsilon  before           after            regret  choice  denoise  best")
    for cell, one in found.items():
        spread = [interval(one.by_variant[variant]) for variant in (_BEFORE, _NAME)]
        print(
            f"{cell.parties:7} {cell.epsilon:7g}  {one.before:.3f} +- {spread[0]:.3f}   {one.after:.3f} +- "
            f"{spread[1]:.3f}   {one.regret:.3f}  {one.chosen(True):+.3f}  {one.denoising:+.3f}   {one.best[0]}",
            flush=True,
        )
    cells = [*found.values()]
    print(f"without noise {cells[0].exact:.3f}, constant {cells[0].constant:.3f}")
    for what, values in (
        ("regret", [one.regret for one in cells]),
        ("regret of the choice of noise", [one.chosen(True) for one in cells]),
    ):
        bar(f"worst {what}", max(values), MOST_REGRET)
        bar(
            f"share of cells with {what} above {LARGE_REGRET:g}",
            float(np.mean(np.array(values) > LARGE_REGRET)),
            MOST_LARGE,
        )


if __name__ == "__main__":
    counts, aims = (",".join(f"{one:g}" for one in several) for several in (SEVERAL, EPSILONS))
    print_tables(__doc__, [*SETS], show, splits=3, draws=3, parties=counts, epsilons=aims, secure=False)
