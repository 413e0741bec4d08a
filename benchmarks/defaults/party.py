"""Own data at K parties: what `soft_vote` does without options, beside what it did before and our other choices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.defaults.cells import BANDS, Cell, Fall, Table, grouped, in_bands, rho, share
from benchmarks.defaults.jobs import DELTA, Job, Variant, job
from benchmarks.defaults.lines import by_world, each, with_error
from benchmarks.defaults.part import Asked, Bar, said
from benchmarks.defaults.records import Record
from benchmarks.defaults.sets import AUXILIARY, TEST, Prepared

LAWS = ("pure", "gaussian")
DEFAULT, BEFORE, AVERAGE = "default", "before", "average"
VARIANTS = (
    Variant(DEFAULT, "soft_vote", {}, LAWS),
    Variant(BEFORE, "soft_vote", {"share": "raw", "submit": "votes"}, LAWS),
    Variant(AVERAGE, "parameter_average", {}, LAWS),
    Variant("probabilities", "soft_vote", {"share": "probabilities"}, LAWS),
    Variant("scores", "soft_vote", {"share": "scores"}, LAWS),
    Variant("no student", "soft_vote", {"student": False}, LAWS),
)
NAMES = tuple(variant.name for variant in VARIANTS)
EPSILONS = (0.3, 1.0, 3.0, 10.0)
PARTIES = (5, 20, 100, 400, 1000)
QUICK = (20, 400)
LEAST_ROWS = 2  # of a party
NEAR, FAR = 0.01, 0.03  # below the best
MOST_FALL = 0.035
ACCURACY = "accuracy"
METRICS = (ACCURACY, "balanced_accuracy", "auc")


def wanted(prepared: Prepared) -> bool:
    """Whether a set has classes."""
    return bool(prepared.classes)


def jobs(sets: Sequence[Prepared], asked: Asked) -> list[Job]:
    """One for each set, number of parties that have rows enough, and split."""
    counts = QUICK if asked.quick else PARTIES
    return [
        job("party", one.name, f"K={count}", split, VARIANTS, scenario(one, {"count": count}, asked))
        for split in range(asked.splits)
        for one in sets
        for count in counts
        if count * LEAST_ROWS <= one.private
    ]


def scenario(
    prepared: Prepared, parties: dict[str, object], asked: Asked, epsilons: Sequence[float] = EPSILONS
) -> dict[str, object]:
    """What a user writes who chooses nothing but the parties; public and test rows are what they are then."""
    return {
        "data": {"source": str(prepared.file), "test": TEST, "auxiliary": AUXILIARY},
        "parties": parties,
        "privacy": {"epsilon": list(epsilons), "delta": DELTA},
        "trials": {"splits": 1, "noise": asked.draws},
    }


def show(records: Iterable[Record], asked: Asked) -> list[Bar]:
    """Prints all tables; the bars that the default must meet."""
    table = Table(records)
    cells = table.cells(NAMES, ACCURACY)
    if not cells:
        print("\nparty: nothing is measured yet")
        return []
    for law in LAWS:
        print(f"\nmean accuracy over sets, {law} noise, at epsilon {each(cell.epsilon for cell in cells)}")
        some = sorted((cell for cell in cells if cell.noise == law), key=lambda cell: cell.parties)
        by_world(table, some, NAMES, ACCURACY)
    _by_set(table, cells)
    rhos = np.array([_rho(table, cell) for cell in cells])
    _overall(table, cells, "all cells")
    strong = [cell for cell, value in zip(cells, rhos, strict=True) if value >= 1]
    if strong:
        _overall(table, strong, "cells of rho >= 1")
    _by_rho(table, cells, rhos)
    _falls(table, cells)
    return _bars(table, cells, strong, asked)


def _rho(table: Table, cell: Cell) -> float:
    """Of the default's release, averaged over splits: their spectra differ a little."""
    features = table.value(cell, DEFAULT, "features")
    classes = table.reference(cell, "data", "classes")
    return rho(cell.noise, cell.parties, cell.epsilon, round((classes - 1) * features), DELTA)


def _by_set(table: Table, cells: Sequence[Cell]) -> None:
    print("\nby set: accuracy, balanced accuracy and AUC (two classes), over K, noise and epsilon")
    print(f"{'':24}{'cells':>6}  " + "".join(f"{name:16}" for name in NAMES) + "constant  pooled")
    for name, some in grouped(cells, lambda cell: cell.set).items():
        line = f"{name!s:24}{len(some):>6}  "
        for variant in NAMES:
            line += f"{' '.join(said(table.mean(some, variant, metric).value) for metric in METRICS):16}"
        references = [table.reference(some[0], kind, ACCURACY) for kind in ("constant", "pooled")]
        print(line + "      ".join(map(said, references)))


def _overall(table: Table, cells: Sequence[Cell], title: str) -> None:
    print(f"\n{title}: {len(cells)}; w01 within {NEAR} of the best, b03 more than {FAR} below it, by accuracy")
    print(f"{'':16}accuracy (s.e.)  balanced   AUC    w01    b03   worst (s.e.)  where")
    for name in NAMES:
        accuracy, *others = (table.mean(cells, name, metric) for metric in METRICS)
        found = table.gaps(cells, name, NAMES)
        gaps = np.array([gap.value for gap in found])
        worst = int(gaps.argmax())
        print(
            f"{name:16}{with_error(accuracy):>12}"
            + "".join(f"{said(mean.value):>9}" for mean in others)
            + f"{share(gaps <= NEAR):7.2f}{share(gaps > FAR):7.3f}{-gaps[worst]:8.3f} ({said(found[worst].error)})"
            f"  {cells[worst]}"
        )


def _by_rho(table: Table, cells: Sequence[Cell], rhos: np.ndarray) -> None:
    print(f"\nshare of cells more than {NEAR} below the constant answer (and the worst), by rho = 1/E|noise|")
    print(f"{'rho':10}{'cells':>6}  " + "".join(f"{name:16}" for name in NAMES))
    for position, band in enumerate(in_bands(rhos.tolist())):
        some = [cells[i] for i in band]
        line = f"{BANDS[position]:g} to {BANDS[position + 1]:g}"
        line = f"{line:10}{len(some):>6}  "
        for name in NAMES if some else ():
            below = table.below_reference(some, name, "constant")
            line += f"{f'{share(below > NEAR):.2f} ({-below.max():+.3f})':16}"
        print(line)


def _falls(table: Table, cells: Sequence[Cell]) -> None:
    print("\nlargest falls of accuracy where epsilon grows")
    for name in NAMES:
        found = table.falls(cells, name)
        by_set: dict[str, Fall] = {}
        for fall in found:
            by_set.setdefault(fall.low.set, fall)
        print(f"{name}:")
        for fall in list(by_set.values())[:4]:
            print(
                f"  {said(fall.amount)} (s.e. {said(fall.error)})  {fall.low.set} {fall.low.world} {fall.low.noise}: "
                f"{said(table.value(fall.low, name, ACCURACY))} at {fall.low.epsilon:g}, "
                f"{said(table.value(fall.high, name, ACCURACY))} at {fall.high.epsilon:g}"
            )


def _bars(table: Table, cells: Sequence[Cell], strong: Sequence[Cell], asked: Asked) -> list[Bar]:
    found = []
    if strong:
        gaps = table.gaps(strong, DEFAULT, NAMES)
        near = share(np.array([gap.value for gap in gaps]) <= NEAR)
        found.append(Bar(f"share of cells of rho >= 1 within {NEAR} of the best", near, least=0.90))
        found.append(Bar("most below the best of such a cell", max(gap.value for gap in gaps), most=FAR))
        found.append(Bar("the same less two standard errors", max(gap.clear for gap in gaps), most=FAR))
    falls = table.falls(cells, DEFAULT)
    if falls:
        found.append(Bar("largest fall with epsilon", falls[0].amount, most=MOST_FALL))
        found.append(Bar("the same less two standard errors", max(fall.clear for fall in falls), most=MOST_FALL))
    large = [cell for cell in cells if cell.parties == max(PARTIES)] if asked.folder else []
    for law in LAWS:
        some = grouped([cell for cell in large if cell.noise == law], lambda cell: cell.epsilon)
        if some:
            lowest = min(table.mean(group, DEFAULT, ACCURACY).value for group in some.values())
            found.append(Bar(f"lowest mean over sets at K = {max(PARTIES)}, {law}", lowest, least=0.89))
    return found
