"""Class ratios of unlabelled sets from bags: the default estimator beside the one before, and the mean of the bags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.defaults.cells import Table, grouped
from benchmarks.defaults.jobs import DELTA, MEAN, SETS_ERROR, Job, Variant, job
from benchmarks.defaults.lines import with_error
from benchmarks.defaults.part import Asked, Bar, said
from benchmarks.defaults.records import Record
from benchmarks.defaults.sets import Prepared
from federation.contract.randomness import generator
from scenarios.scores.scoring import L1

DEFAULT, BEFORE = "default", "bag_classifier"
VARIANTS = (
    Variant(DEFAULT, "class_ratio"),
    Variant(BEFORE, "class_ratio", {"estimator": "bag_classifier"}),
)
NAMES = tuple(variant.name for variant in VARIANTS)
EPSILONS = (0.1, 1.0)
SIMULATED = {"4 bags": 4, "12 small bags": 12}
NATURAL, DRAWN = "natural bags", "natural, drawn ratios"
MARGIN = 0.02  # of an L1 error
_SMALL = 100  # rows of a small bag
_WIDE = 50  # principal components of sets with more than twice as many columns
_LEAST, _MOST, _GROUPS, _LEAST_GROUPS = 50, 600, 30, 6  # rows of a natural bag, and groups
_SETS = 1 / 3  # of the groups are unlabelled sets
_DRAWN = (0.1, 0.9)  # shares of the last class


def wanted(prepared: Prepared) -> bool:
    """Whether a set has classes."""
    return bool(prepared.classes)


def jobs(sets: Sequence[Prepared], asked: Asked) -> list[Job]:
    """For each set and split a world of each kind that it has rows or groups for."""
    found = []
    for split in range(asked.splits):
        for one in sets:
            if asked.folder or not one.groups:
                found += [_simulated(one, name, number, split, asked) for name, number in SIMULATED.items()]
            for name in (NATURAL, DRAWN) if one.groups >= _LEAST_GROUPS else ():
                if files := natural_bags(one.file, split, None if name == NATURAL else _DRAWN):
                    found.append(_natural(replace(one, file=files[0]), name, files[1], split, asked))
    return found


def _simulated(prepared: Prepared, name: str, number: int, split: int, asked: Asked) -> Job:
    """Bags of which each has few rows of one class, in turn, or most of it with three classes or more."""
    classes = len(prepared.classes)
    count = max(number, 2 * classes)
    rows = {"rows": _SMALL} if number > min(SIMULATED.values()) and count * _SMALL < prepared.private / 4 else {}
    parties = {"count": count, "partition": {"majority": 0.1}, **rows}
    return job("class_ratio", prepared.name, name, split, VARIANTS, _scenario(prepared, parties, asked), ())


def _natural(prepared: Prepared, name: str, sets: Path, split: int, asked: Asked) -> Job:
    """One party that holds a bag for every group, but for those that are sets."""
    scenario = _scenario(prepared, {"count": 1, "bags": {"by": "groups"}}, asked)
    return job("class_ratio", prepared.name, name, split, VARIANTS, scenario, (), sets=str(sets))


def _scenario(prepared: Prepared, parties: dict[str, object], asked: Asked) -> dict[str, object]:
    wide = {"features": ["scale", {"pca": _WIDE}]} if prepared.columns > 2 * _WIDE else {}  # fits take a minute else
    return {
        "data": {
            "source": str(prepared.file),
            "test": 0.2,
            "auxiliary": 0.2,
            "classes": list(prepared.classes),
            **wide,
        },
        "parties": parties,
        "privacy": {"epsilon": list(EPSILONS), "delta": DELTA},
        "trials": {"splits": 1, "noise": max(1, asked.draws // 10)},  # fits are slow, and noise matters little
    }


def natural_bags(file: Path, split: int, ratios: tuple[float, float] | None) -> tuple[Path, Path] | None:
    """Two files with the rows of groups: of those that are bags, and of a third that are sets; None for too few.

    Groups have 50 rows or more, and at most 600 are used, of 30 groups at most. With `ratios` the share of the last
    class is drawn between these for each group of two classes, and uniform ratios for one of more.
    """
    with np.load(file) as stored:
        arrays = {name: stored[name] for name in ("X", "y", "groups")}
    random = generator(0, "benchmark natural bags", trial=split)
    classes, labels = np.unique(arrays["y"], return_inverse=True)
    places = []
    for group in np.unique(arrays["groups"]):
        some = random.permutation(np.flatnonzero(arrays["groups"] == group))
        some = some[:_MOST] if ratios is None else _dealt(some, labels, len(classes), ratios, random)
        places += [some] if len(some) >= _LEAST else []
    if len(places) < _LEAST_GROUPS:
        return None
    places = [places[i] for i in random.permutation(len(places))[:_GROUPS]]
    cut = round(_SETS * len(places))
    written = []
    for name, parts in (("sets", places[:cut]), ("bags", places[cut:])):
        rows = np.concatenate(parts)
        target = file.with_name(f"{file.stem}-{'own' if ratios is None else 'drawn'}-{split}-{name}.npz")
        np.savez(target, **{key: values[rows] for key, values in arrays.items()})
        written.append(target)
    return written[1], written[0]


def _dealt(
    some: NDArray[np.int64],
    labels: NDArray[np.int64],
    classes: int,
    ratios: tuple[float, float],
    random: np.random.Generator,
) -> NDArray[np.int64]:
    """As many of the rows as drawn shares of classes leave, at most `_MOST`."""
    last = random.uniform(*ratios)
    shares = np.array([1 - last, last]) if classes == 2 else random.dirichlet(np.ones(classes))
    held = np.bincount(labels[some], minlength=classes)
    size = min(_MOST, float(np.min(held / np.maximum(shares, 1e-9))))
    counts = np.floor(shares * size).astype(int)
    return np.concatenate([some[labels[some] == code][:count] for code, count in enumerate(counts)])


def show(records: Iterable[Record], asked: Asked) -> list[Bar]:
    """Prints L1 errors of every world of every set, on sets of drawn ratios or on other groups."""
    table, bars = Table(records), list[Bar]()
    for title, metric, worlds in (
        ("simulated bags, sets of 10 to 90 % of a class", L1.name, tuple(SIMULATED)),
        ("groups as bags, other groups as sets", SETS_ERROR, (NATURAL, DRAWN)),
    ):
        cells = [cell for cell in table.cells(NAMES, metric) if cell.world in worlds]
        if not cells:
            continue
        print(f"\nL1 error of class ratios, label counts at (epsilon, {DELTA:g}): {title}")
        print(f"{'':46}{'epsilon':>7}  " + "".join(f"{name:18}" for name in (*NAMES, "mean of bags")))
        for place, some in grouped(cells, lambda cell: f"{cell.set}, {cell.world}").items():
            for cell in some:
                shown = "".join(f"{with_error(table.mean([cell], name, metric)):18}" for name in NAMES)
                print(f"{place!s:46}{cell.epsilon:>7g}  {shown}{said(table.reference(cell, MEAN, metric))}")
        means = np.array([table.reference(cell, MEAN, metric) for cell in cells])
        values, before = (np.array([table.value(cell, name, metric) for cell in cells]) for name in NAMES)
        print(f"mean{'':51}{''.join(f'{said(float(column.mean())):18}' for column in (values, before, means))}")
        if metric == SETS_ERROR:
            bars.append(
                Bar("natural bags: most above the mean of the bags", float((values - means).max()), most=MARGIN)
            )
        else:
            bars.append(Bar("simulated bags: most above before", float((values - before).max()), most=0.001))
    return bars
