"""Two classes from one noisy mean of y x: which noise `mean_operator` takes by itself, beside each single one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.defaults.cells import Table, share
from benchmarks.defaults.jobs import Job, Variant, job
from benchmarks.defaults.lines import by_world, each
from benchmarks.defaults.part import Asked, Bar, said
from benchmarks.defaults.party import ACCURACY, scenario
from benchmarks.defaults.records import Record
from benchmarks.defaults.sets import Prepared

DEFAULT = "default"
VARIANTS = (
    Variant(DEFAULT, "mean_operator"),
    Variant("before", "mean_operator", {"noise": "sums", "denoise": False}),
    Variant("sums", "mean_operator", {"noise": "sums"}),
    Variant("response", "mean_operator", {"noise": "randomised_response"}),
    Variant("not denoised", "mean_operator", {"denoise": False}),
    Variant("pure", "mean_operator", {"noise": "pure"}),
)
NAMES = tuple(variant.name for variant in VARIANTS)
EPSILONS = (0.3, 1.0, 3.0)
PARTIES = (1, 100, 1000)
NEAR, FAR = 0.01, 0.03


def wanted(prepared: Prepared) -> bool:
    """Whether a set has two classes."""
    return len(prepared.classes) == 2


def jobs(sets: Sequence[Prepared], asked: Asked) -> list[Job]:
    """One for each set, number of parties that have a row each, and split."""
    return [
        job("mean_operator", one.name, f"K={count}", split, VARIANTS, scenario(one, {"count": count}, asked, EPSILONS))
        for split in range(asked.splits)
        for one in sets
        for count in PARTIES[: 2 if asked.quick else None]
        if count <= one.private
    ]


def show(records: Iterable[Record], asked: Asked) -> list[Bar]:
    """Prints accuracies and regrets, that is by how much the default is below the best of the single noises."""
    table = Table(records)
    cells = table.cells(NAMES, ACCURACY)
    if not cells:
        print("\nmean_operator: nothing is measured yet")
        return []
    print(f"\nmean accuracy over sets, one label protected, at epsilon {each(cell.epsilon for cell in cells)}")
    by_world(table, sorted(cells, key=lambda cell: cell.parties), NAMES, ACCURACY)
    constant = [table.reference(cell, "constant", ACCURACY) for cell in cells]
    print(f"\n{len(cells)} cells\n{'':14}accuracy  regret: mean  within {NEAR}  worst (s.e.)  where")
    for name in NAMES:
        found = table.gaps(cells, name, NAMES)
        gaps = np.array([gap.value for gap in found])
        worst = int(gaps.argmax())
        print(
            f"{name:14}{said(table.mean(cells, name, ACCURACY).value):>8}{gaps.mean():14.3f}{share(gaps <= NEAR):12.2f}"
            f"{gaps[worst]:7.3f} ({said(found[worst].error)})  {cells[worst]}"
        )
    print(f"constant      {said(float(np.mean(constant))):>8}")
    gaps = np.array([gap.value for gap in table.gaps(cells, DEFAULT, NAMES)])
    return [
        Bar(f"share of cells with a regret of {NEAR} at most", share(gaps <= NEAR), least=0.95),
        Bar("largest regret", float(gaps.max()), most=FAR),
    ]
