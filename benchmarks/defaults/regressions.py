"""Regression where every label is protected: what is released by default, beside least squares as it was before."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.defaults.cells import Table, grouped
from benchmarks.defaults.jobs import DELTA, MEAN, Job, Variant, job
from benchmarks.defaults.lines import each
from benchmarks.defaults.part import Asked, Bar
from benchmarks.defaults.records import Record
from benchmarks.defaults.sets import AUXILIARY, TEST, Prepared
from scenarios.scores.scoring import MSE

PAIRS = {"label_sums": "label_sums before", "private_labels": "private_labels before"}
VARIANTS = (
    Variant("label_sums", "label_sums"),
    Variant("label_sums before", "label_sums", {"shrink": False}),
    Variant("private_labels", "private_labels"),
    Variant("private_labels before", "private_labels", {"noise": "one_bit", "shrink": False}),
)
NAMES = tuple(variant.name for variant in VARIANTS)
EPSILONS = (0.1, 0.3, 1.0, 3.0)
PARTIES = (1, 10, 100)
WORSE = 1.03


def wanted(prepared: Prepared) -> bool:
    """Whether a set has real labels."""
    return prepared.label_range is not None


def jobs(sets: Sequence[Prepared], asked: Asked) -> list[Job]:
    """One for each set, number of parties that have a row each, and split."""
    return [
        job("regressions", one.name, f"K={count}", split, VARIANTS, _scenario(one, count, asked), ("pooled",))
        for split in range(asked.splits)
        for one in sets
        for count in PARTIES[: 2 if asked.quick else None]
        if count <= one.private
    ]


def _scenario(prepared: Prepared, count: int, asked: Asked) -> dict[str, object]:
    assert prepared.label_range is not None, "its labels are real"
    return {
        "data": {
            "source": str(prepared.file),
            "test": TEST,
            "auxiliary": AUXILIARY,
            "range": list(prepared.label_range),
        },
        "parties": {"count": count},
        "privacy": {"epsilon": list(EPSILONS), "delta": DELTA},
        "trials": {"splits": 1, "noise": asked.draws},
    }


def show(records: Iterable[Record], asked: Asked) -> list[Bar]:
    """Prints errors by set at every epsilon, and their ratios to those before."""
    table, bars = Table(records), list[Bar]()
    cells = table.cells(NAMES, MSE.name)
    if not cells:
        print("\nregressions: nothing is measured yet")
        return []
    epsilons = sorted({cell.epsilon for cell in cells})
    print(f"\nmean squared test error, one label protected, at epsilon {each(epsilons)}")
    for name, of_set in grouped(cells, lambda cell: cell.set).items():
        without = [table.reference(of_set[0], kind, MSE.name) for kind in ("pooled", MEAN)]
        print(f"{name}: pooled {without[0]:.4g}, mean of the labels {without[1]:.4g} (NON-PRIVATE both)")
        for world, some in grouped(of_set, lambda cell: cell.world).items():
            for variant in NAMES:
                shown = "".join(f"{table.value(cell, variant, MSE.name):11.4g}" for cell in some)
                print(f"  {world!s:7}{variant:23}{shown}")
    for now, before in PAIRS.items():
        ratios = np.array([table.value(c, now, MSE.name) / table.value(c, before, MSE.name) for c in cells])
        means = [_geometric(ratios[[cell.epsilon == epsilon for cell in cells]]) for epsilon in epsilons]
        worst = int(ratios.argmax())
        better = [int((table.below_reference(cells, name, MEAN, MSE.name) > 0).sum()) for name in (before, now)]
        print(
            f"\nerror of {now} over that of {before}, {len(cells)} cells: geometric mean {_geometric(ratios):.3f}\n"
            f"  at epsilon {each(epsilons)}: {' '.join(f'{mean:.3f}' for mean in means)}\n"
            f"  worst {ratios[worst]:.3f} ({cells[worst]}), above {WORSE} in {int((ratios > WORSE).sum())}\n"
            f"  better than the mean of the labels in {better[0]} cells before, in {better[1]} now"
        )
        bars.append(Bar(f"{now}: geometric mean of errors over those before", _geometric(ratios), most=0.25))
        bars.append(Bar(f"{now}: largest", float(ratios.max()), most=WORSE))
    return bars


def _geometric(ratios: np.ndarray) -> float:
    return math.exp(float(np.mean(np.log(ratios))))
