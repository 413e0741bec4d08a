"""Class ratios where bags drift, and where they do not: the default beside what it chooses among.

Run from the repository root: python -m benchmarks.class_ratios [--data-dir DIR] [--splits COUNT] [--epsilon E] [NAME]

Simulated worlds deal rows of every class at random, so that bags differ in their ratios alone. Natural ones have a bag
for each person, occupation, level of education or service, in the ratios that these have or, where that is said, in
drawn ones; other persons, occupations and services are the unlabelled sets. Label counts are private at (E, 1e-6).
Errors are mean L1 distances to the ratios of the sets, with 95 % intervals over splits. Worlds whose data is missing
are skipped with a message. `measured` and `natural` also take rows, labels and groups of one's own.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import rotate
from scipy.stats import t as student

from aggregator.learners.class_ratios.catalogue import estimator_class
from aggregator.trial.feature_fitting import fit
from benchmarks.bags import Bags, World, line, rounded, skewed
from benchmarks.common import bar, print_tables, standard_error
from benchmarks.ratios import ADULT, FRACTIONS, HIGGS
from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.mechanisms.counts.calibration import calibrate
from federation.numerics import simplex
from scenarios.data.catalogue import load

Split = Callable[[int, str | None], Bags]  # bags of a split, without noise, from its seed and the data directory

DELTA = 1e-6
MARGIN = 0.02  # above the mean of bags, where bags drift
MEAN, TODAY, AUTO = "mean of bags", "bag_classifier", "auto"
ESTIMATORS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    TODAY: ("bag_classifier", {}),
    "whitened": ("whitened", {}),
    "regression": ("regression", {"kernel": "linear"}),
    "regression, Fourier": ("regression", {}),
    AUTO: ("auto", {}),
}
_LEAST, _MOST, _GROUPS = 50, 600, 30  # rows of a bag, and groups
_SETS = 1 / 3  # of the groups
_SHARES = tuple(np.arange(1, 10) / 10)  # of the second class, where they are drawn
_PUBLIC = 4000  # rows that the feature map is fitted on


def natural(
    rows: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    seed: int,
    ratios: Sequence[float] | None = None,
    features: Sequence[Any] = ("scale",),
) -> Bags:
    """Groups as bags, and a third of them as sets, for rows (n, d), labels (n,) from 0 and groups (n,) of any names.

    Of the groups of at least 50 rows, 30 at most, drawn with the seed; of each 600 rows at most. With `ratios` the rows
    of a group are cut to a share of the second class that is drawn among these (of more classes: drawn uniformly).
    Raises `InputError` for fewer than four groups that are large enough.
    """
    random, classes = generator(seed, "natural bags"), int(labels.max()) + 1
    held = [np.flatnonzero(groups == name) for name in np.unique(groups)]
    places = [_dealt(random.permutation(some), labels, classes, ratios, random) for some in held]
    places = [some for some in places if len(some) >= _LEAST]
    if len(places) < 4:
        raise InputError(f"natural bags need four groups of {_LEAST} rows, got {len(places)}")
    places = [places[i] for i in random.permutation(len(places))[:_GROUPS]]
    cut = max(1, round(_SETS * len(places)))
    known = np.concatenate(places[cut:])
    feature_map = fit(list(features), rows[random.permutation(known)[:_PUBLIC]], ())
    shares = np.array([np.bincount(labels[some], minlength=classes) / len(some) for some in places])
    mapped = [feature_map.transform(rows[some]) for some in places]
    own = [labels[some] for some in places[cut:]]
    return Bags(mapped[cut:], own, shares[cut:], None, mapped[:cut], shares[:cut])


def _dealt(
    some: np.ndarray, labels: np.ndarray, classes: int, ratios: Sequence[float] | None, random: np.random.Generator
) -> np.ndarray:
    """Rows of one group in the ratios that it has, or as many as drawn ratios leave."""
    if ratios is None:
        return some[:_MOST]
    share = random.choice(ratios)
    shares = np.array([1 - share, share]) if classes == 2 else random.dirichlet(np.ones(classes))
    counts = np.bincount(labels[some], minlength=classes)
    size = int(min(_MOST, np.min(counts / np.maximum(shares, 1e-9))))
    return np.concatenate([some[labels[some] == y][:n] for y, n in enumerate(rounded(shares, size))])


def measured(bags: Bags, estimators: Sequence[str] = tuple(ESTIMATORS)) -> dict[str, float]:
    """Mean L1 errors over the sets, of the mean of bags and of these estimators.

    NaN for one that cannot be fitted to these bags.
    """
    sizes = np.array([len(rows) for rows in bags.rows])
    mean = simplex.project(sizes @ bags.proportions / sizes.sum())
    found = {MEAN: float(np.abs(mean - bags.ratios).sum(axis=1).mean())}
    for name in estimators:
        kind, parameters = ESTIMATORS[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                estimator = estimator_class(kind)(**parameters).fit(bags.rows, bags.proportions, bags.noise)
            except InputError:
                found[name] = float("nan")
                continue
        estimates = np.array([estimator.predict(rows) for rows in bags.sets])
        found[name] = float(np.abs(estimates - bags.ratios).sum(axis=1).mean())
    return found


def private(bags: Bags, epsilon: float, seed: int) -> Bags:
    """With private label counts at (epsilon, 1e-6)."""
    mechanism = calibrate("auto", classes=bags.ratios.shape[1], epsilon=epsilon, delta=DELTA)
    return bags.released(mechanism, seed)


def of_file(path: Path, seed: int, ratios: Sequence[float] | None = None) -> Bags:
    """Bags of an npz file with arrays X (n, d), y (n,) and groups (n,). Raises `InputError` where one is missing."""
    with np.load(path, allow_pickle=False) as file:
        if missing := {"X", "y", "groups"} - set(file.files):
            raise InputError(f"{path} must hold the arrays X, y and groups; {', '.join(sorted(missing))} is missing")
        rows, labels, groups = (file[name] for name in ("X", "y", "groups"))
    return natural(rows.astype(np.float64), np.unique(labels, return_inverse=True)[1], groups, seed, ratios)


@lru_cache(maxsize=1)
def _coded(source: str, column: str, data_dir: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows without the column or its codes "COLUMN=...", labels, and which code is 1; 2,000 rows of each at most."""
    table = load(source, data_dir=data_dir)
    order = generator(0, "rows of a table").permutation(len(table))
    coded = np.array([name.startswith(f"{column}=") for name in table.columns])
    others = np.array([not name.startswith(column) for name in table.columns])
    tiles = np.array_split(order, -(-len(order) // 10_000))
    groups = np.concatenate([table.rows(tile)[:, coded].argmax(axis=1) for tile in tiles])
    kept = np.concatenate([np.flatnonzero(groups == group)[:2000] for group in range(coded.sum())])
    return table.rows(order[kept])[:, others], table.labels[order[kept]], groups[kept]


def _by_column(source: str, column: str, ratios: Sequence[float] | None, seed: int, data_dir: str | None) -> Bags:
    rows, labels, groups = _coded(source, column, data_dir)
    if source == "kdd99":
        rows = np.sign(rows) * np.log1p(np.abs(rows))
    return natural(rows, labels, groups, seed, ratios)


def _by_subject(ratios: Sequence[float] | None, seed: int, data_dir: str | None) -> Bags:
    table = load("har", data_dir=data_dir)
    rows = table.rows(np.arange(len(table)))
    return natural(rows, table.labels, table.groups["subject"], seed, ratios, [{"pca": 50}])


def _rotated(seed: int, data_dir: str | None) -> Bags:
    """Threes, fives and eights, of which every bag is turned by an angle of its own."""
    table, random = load("mnist", data_dir=data_dir), generator(seed, "rotated digits")
    order = random.permutation(np.flatnonzero(np.isin(table.labels, (3, 5, 8))))[: 12 * _MOST]
    labels, rows = np.searchsorted((3, 5, 8), table.labels[order]), table.rows(order)
    groups, angles = np.arange(len(order)) % 12, random.uniform(-60, 60, 12)
    for group, angle in enumerate(angles):
        images = rows[groups == group].reshape(-1, 28, 28)
        rows[groups == group] = rotate(images, angle, axes=(1, 2), reshape=False, order=1).reshape(len(images), -1)
    return natural(rows, labels, groups, seed, _SHARES, [{"pca": 50}])


def _tilted(ratios: Sequence[float] | None, seed: int, data_dir: str | None) -> Bags:
    """Digits from five up and the others, in twelve bags of which each has more of some shapes than of others."""
    table, random = load("digits", data_dir=data_dir), generator(seed, "tilted digits")
    rows, labels = table.rows(np.arange(len(table))), (table.labels >= 5).astype(np.int64)
    spread = (rows - rows.mean(axis=0)) @ random.normal(size=rows.shape[1])
    noisy = spread / spread.std() + random.normal(scale=0.5, size=len(rows))
    return natural(rows, labels, np.argsort(np.argsort(noisy)) * 12 // len(rows), seed, ratios)


def _simulated(world: World, seed: int, data_dir: str | None) -> Bags:
    return world.split(seed, data_dir)


def _five_digits(seed: int, data_dir: str | None) -> Bags:
    """As many bags as classes."""
    empty = np.zeros((5, 5))
    shares = np.hstack([skewed(5, 0.1), empty])
    world = World("mnist", [{"pca": 50}], lambda _: shares, (600,) * 5, np.tile(shares, (2, 1)), 600)
    bags = world.split(seed, data_dir)
    return replace(bags, proportions=bags.proportions[:, :5], ratios=bags.ratios[:, :5])


SMALLER = World("adult", ["scale"], lambda random: line(random.uniform(0.1, 0.9, 12)), (100,) * 12, FRACTIONS, 600)
SIMULATED: Mapping[str, Split] = {
    "adult": partial(_simulated, ADULT),
    "adult, 12 x 100": partial(_simulated, SMALLER),
    "higgs": partial(_simulated, HIGGS),
    "mnist, 5 bags of 5 classes": _five_digits,
}
NATURAL: Mapping[str, Split] = {
    "har by subject": partial(_by_subject, None),
    "har by subject, drawn ratios": partial(_by_subject, _SHARES),
    "adult by occupation": partial(_by_column, "adult", "occupation", None),
    "adult by occupation, ratios .2 or .8": partial(_by_column, "adult", "occupation", (0.2, 0.8)),
    "adult by education": partial(_by_column, "adult", "education", None),
    "kdd by service": partial(_by_column, "kdd99", "service", None),
    "mnist 3, 5, 8, turned, drawn ratios": _rotated,
    "digits, tilted": partial(_tilted, None),
    "digits, tilted, ratios .1 to .9": partial(_tilted, _SHARES),
}
WORLDS = {**SIMULATED, **NATURAL}


def interval(values: Sequence[float]) -> float:
    """Half the width of a 95 % interval of the mean; NaN of a single value."""
    return standard_error(values) * float(student.ppf(0.975, max(len(values) - 1, 1)))


def show(name: str, arguments: argparse.Namespace) -> None:
    """Prints one world, and whether its bar is met."""
    splits: list[dict[str, float]] = []
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.splits):
        bags = private(WORLDS[name](seed, arguments.data_dir), arguments.epsilon, seed)
        splits.append(measured(bags))
    found = {method: [split[method] for split in splits] for method in splits[0]}
    print(f"\n{name}: {len(bags.rows)} bags, {bags.ratios.shape[1]} classes, {len(splits)} splits", flush=True)
    for method, errors in found.items():
        print(f"  {method:24}{np.mean(errors):.3f} +- {interval(errors):.3f}", flush=True)
    means = {method: float(np.mean(errors)) for method, errors in found.items()}
    if name in SIMULATED:
        bar("auto beside bag_classifier", means[AUTO] - means[TODAY], 0.0)
    else:
        bar("auto beside the mean of bags", means[AUTO] - means[MEAN], MARGIN)


if __name__ == "__main__":
    print_tables(__doc__, WORLDS, show, splits=5, first_seed=0, epsilon=1.0)
