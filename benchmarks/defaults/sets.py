"""Data sets of the benchmark: shipped and generated ones, and those of a folder, each as one npz file of few rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_wine, make_classification, make_friedman1, make_friedman2, make_friedman3

from federation.contract.errors import InputError
from federation.contract.randomness import generator
from scenarios.data.catalogue import load
from scenarios.data.readers import Archive

LEAST_OF_A_GROUP = 12  # rows: then some are neither public nor for testing, but for one time in 50,000
TEST, AUXILIARY = 0.2, 0.25  # shares of rows in a scenario that says nothing of them
_MOST_CLASSES_OF_FLOATS = 20
_DISTANCE = 3.0  # standard deviations between the centres of two classes
_COLUMNS = 12


@dataclass(frozen=True, eq=False)
class Rows:
    """Features (n, d), labels (n,) that are classes, or numbers in a `label_range`, and perhaps groups (n,)."""

    features: NDArray[np.float64]
    labels: NDArray[Any]
    groups: NDArray[Any] | None = None
    label_range: tuple[float, float] | None = None

    def taken(self, kept: NDArray[np.int64]) -> Rows:
        """The rows at these positions."""
        groups = None if self.groups is None else self.groups[kept]
        return replace(self, features=self.features[kept], labels=self.labels[kept], groups=groups)


Reader = Callable[[int], Rows]  # called with the most rows that are wanted
Readers = Mapping[str, Reader]


@dataclass(frozen=True)
class Prepared:
    """A set that is written to `file`, and what jobs need to know of it; real labels have no classes."""

    name: str
    file: Path
    rows: int
    columns: int
    classes: tuple[str, ...]
    groups: int
    label_range: tuple[float, float] | None

    @property
    def private(self) -> int:
        """Rows that parties hold where test and auxiliary rows are the usual shares."""
        left = self.rows - round(TEST * self.rows)
        return left - round(AUXILIARY * left)


def prepared(name: str, read: Reader, most: int, folder: Path, grouped: bool = False) -> Prepared:
    """Write at most `most` rows of a set, the same ones each time; with `grouped` only those of no rare group.

    Raises `InputError` when the data is missing.
    """
    rows = read(most)
    if grouped and rows.groups is not None:
        _, codes, sizes = np.unique(rows.groups, return_inverse=True, return_counts=True)
        rows = rows.taken(np.flatnonzero(sizes[codes] >= LEAST_OF_A_GROUP))
    single = rows.features.astype(np.float32)  # half the file, and half the memory, where nothing is lost
    arrays = {"X": single if np.array_equal(single, rows.features) else rows.features, "y": rows.labels}
    if rows.groups is not None:
        arrays["groups"] = rows.groups.astype(str)
    file = folder / f"{name}-{most}{'-grouped' * grouped}.npz"
    np.savez(file, allow_pickle=False, **arrays)
    classes = () if rows.label_range else tuple(map(str, np.unique(rows.labels).tolist()))
    number = 0 if rows.groups is None else len(np.unique(rows.groups))
    count, columns = rows.features.shape
    return Prepared(name, file, count, columns, classes, number, rows.label_range)


def of_folder(folder: Path) -> dict[str, Reader]:
    """The sets of a folder: every npz file with X (n, d) of numbers and y (n,), and perhaps groups (n,).

    Labels that are no whole numbers, or more than 20 different floats, are real.
    """
    if not folder.is_dir():
        raise InputError(f"--data-dir {folder} is no folder; name one with npz files of the arrays X and y")
    found: dict[str, Reader] = {file.stem: partial(_own, file) for file in sorted(folder.glob("*.npz"))}
    if not found:
        raise InputError(f"--data-dir {folder} holds no npz file; each needs the arrays X and y, perhaps groups")
    return found


def _sample(count: int, most: int) -> NDArray[np.int64]:
    return generator(0, "benchmark defaults").permutation(count)[:most]


def _own(file: Path, most: int) -> Rows:
    archive = Archive(file)
    features = archive.tables("X")[0].astype(np.float64)
    labels = archive.vector("y", len(features))
    groups = archive.vector("groups", len(features)) if "groups" in archive else None
    numbers = labels.dtype.kind == "f"
    real = numbers and bool((labels % 1 != 0).any() or len(np.unique(labels)) > _MOST_CLASSES_OF_FLOATS)
    ends = (float(labels.min()), float(labels.max())) if real else None
    rows = Rows(features, labels.astype(np.int64) if numbers and not real else labels, groups, ends)
    return rows.taken(_sample(len(labels), most))


def _shipped(source: str, most: int, families: tuple[str, ...] = ()) -> Rows:
    """A data set of the catalogue; labels are positions of classes.

    Groups are its own, or which indicator of each family of columns is 1; these remain features.
    """
    table = load(source)
    kept = _sample(len(table), most)
    features, labels = table.rows(kept), table.labels[kept]
    own = next((values[kept] for values in table.groups.values()), None)
    groups = _indicated(features, table.columns, families) if families else own
    return Rows(features, labels, groups, table.label_range)


def _indicated(features: NDArray[np.float64], columns: tuple[str, ...], families: tuple[str, ...]) -> NDArray[np.str_]:
    """By which column each row has the 1, of those whose names begin as each family's do."""
    names = np.array([""] * len(features))
    for family in families:
        positions = [position for position, name in enumerate(columns) if name.startswith(family)]
        found = np.array([columns[position] for position in positions])[features[:, positions].argmax(axis=1)]
        names = np.char.add(names, found)
    return names


def _in_two(source: str, positive: Callable[[NDArray[Any]], NDArray[np.bool_]], most: int) -> Rows:
    """Label 1 where a shipped set's label is positive, else 0."""
    rows = _shipped(source, most)
    return Rows(rows.features, positive(rows.labels).astype(np.int64))


def _gaussians(positive: float, most: int) -> Rows:
    """Two classes around centres at a distance; `positive` is the share of one."""
    random = generator(0, f"benchmark gaussians {positive}")
    labels = (random.random(most) < positive).astype(np.int64)
    features = random.standard_normal((most, _COLUMNS))
    features[:, 0] += _DISTANCE * labels
    return Rows(features, labels)


def _ordered(most: int) -> Rows:
    """Three classes, a quarter, a half and a quarter, by a noisy sum of three columns."""
    random = generator(0, "benchmark ordered")
    features = random.standard_normal((most, _COLUMNS))
    score = features[:, :3].sum(axis=1) + random.standard_normal(most)
    return Rows(features, np.digitize(score, np.quantile(score, [0.25, 0.75])))


def _made(classes: int, informative: int, columns: int, most: int) -> Rows:
    features, labels = make_classification(
        most, columns, n_informative=informative, n_classes=classes, class_sep=1.5, random_state=classes
    )
    return Rows(features, labels)


def _wine(most: int) -> Rows:
    features, labels = load_wine(return_X_y=True)
    return Rows(features, labels).taken(_sample(len(labels), most))


def _friedman(make: Callable[..., tuple[NDArray[np.float64], NDArray[np.float64]]], noise: float, most: int) -> Rows:
    features, labels = make(n_samples=most, noise=noise, random_state=1)
    return Rows(features, labels, None, (float(labels.min()), float(labels.max())))


_CATALOGUE = ("har", "kdd99", "adult", "mnist", "ctg", "digits", "breast_cancer", "higgs")
CLASSES: Readers = {
    **{name: partial(_shipped, name) for name in _CATALOGUE},
    "wine": _wine,
    "gaussians_1_percent": partial(_gaussians, 0.01),
    "gaussians_10_percent": partial(_gaussians, 0.10),
    "three_ordered": _ordered,
    "made_2_classes": partial(_made, 2, 8, 20),
    "made_3_classes": partial(_made, 3, 5, 40),
    "made_4_classes": partial(_made, 4, 10, 20),
}
TWO_CLASSES: Readers = {
    **{name: CLASSES[name] for name in ("adult", "higgs", "kdd99", "breast_cancer")},
    "ctg_abnormal": partial(_in_two, "ctg", lambda labels: labels > 0),
    "mnist_odd": partial(_in_two, "mnist", lambda labels: labels % 2 == 1),
    "digits_from_5": partial(_in_two, "digits", lambda labels: labels >= 5),
    "protein_above_5": partial(_in_two, "protein", lambda labels: labels > 5),
}
NATURAL: Readers = {  # with groups
    "har": partial(_shipped, "har"),
    "kdd99": partial(_shipped, "kdd99", families=("service=",)),
    "adult": partial(_shipped, "adult", families=("education=", "occupation=")),
}
REAL: Readers = {
    **{name: partial(_shipped, name) for name in ("diabetes", "housing", "protein", "census_weeks")},
    "friedman1": partial(_friedman, make_friedman1, 1.0),
    "friedman2": partial(_friedman, make_friedman2, 30.0),
    "friedman3": partial(_friedman, make_friedman3, 0.1),
}
RATIOS: Readers = {  # bags are simulated where there are no groups
    **{name: CLASSES[name] for name in ("higgs", "mnist")},
    "adult": partial(_shipped, "adult"),
    "har_by_subject": NATURAL["har"],
    "kdd99_by_service": NATURAL["kdd99"],
    "adult_by_occupation": partial(_shipped, "adult", families=("occupation=",)),
    "adult_by_education": partial(_shipped, "adult", families=("education=",)),
}
