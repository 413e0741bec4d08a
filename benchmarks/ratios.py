"""Errors of class ratios on real data beside published methods and methods that need every label.

Run from the repository root: python -m benchmarks.ratios [--data-dir DIR] [--splits COUNT] [TABLE ...]

Tables: adult and higgs (4 bags of 600 rows, no noise), mnist (20 bags of 3,000 and 2,200 rows, private counts at
(.05, .05)), small (400 bags of 30 rows of adult, private counts). Errors are mean L1 distances to the ratios of
unlabelled sets, over sets of shifted ratios and fresh splits, with standard errors over the splits. QuaPy's methods see
the label of every row of the same bags; without QuaPy (the extra "benchmark") its rows are left out. Tables whose data
is missing are skipped with a message.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from aggregator.learners.class_ratios.catalogue import estimator_class
from benchmarks.bags import Bags, World, line, skewed
from benchmarks.common import bar, print_tables, standard_error
from federation.mechanisms.counts.calibration import CountNoise, calibrate

Method = Callable[[Bags], Callable[[np.ndarray], np.ndarray]]  # fitted to bags, it gives ratios of sets

DEFAULTS = ("whitened", "bag_classifier")  # what the bars are for: from embeddings, and from rows
ESTIMATORS = ("whitened", "class_means", "bag_classifier", "bag_classifier_em")
EPSILON = DELTA = 0.05
FRACTIONS = line(np.arange(1, 10) / 10)
CLASSES = 10  # of MNIST
ADULT = World("adult", ["scale"], lambda _: line(np.array([0.9, 0.9, 0.1, 0.1])), (600,) * 4, FRACTIONS, 600)
HIGGS = World("higgs", ["scale"], ADULT.shares, ADULT.sizes, FRACTIONS, 600)
SMALL = World("adult", ["scale"], lambda random: line(random.uniform(0.1, 0.9, 400)), (30,) * 400, FRACTIONS, 600)
MNIST = World(
    "mnist",
    [{"whiten": 50}],
    lambda _: np.concatenate([skewed(CLASSES, 0.05)] * 2),
    (3000,) * CLASSES + (2200,) * CLASSES,
    np.concatenate([skewed(CLASSES, small)[::3] for small in (0.02, 0.04, 0.06, 0.08, 0.1)]),
    1000,
    auxiliary=1000,  # of the scarcest class all but a few rows are in the bags
)


def ours(name: str, **parameters: Any) -> Method:
    """An estimator of this project."""

    def fitted(bags: Bags) -> Callable[[np.ndarray], np.ndarray]:
        return estimator_class(name)(**parameters).fit(bags.rows, bags.proportions, bags.noise).predict

    return fitted


def two(method: Method) -> Method:
    """On the first two of four bags that are ordered by their ratios: one of each."""

    def fitted(bags: Bags) -> Callable[[np.ndarray], np.ndarray]:
        few = [0, 2]
        return method(Bags([bags.rows[i] for i in few], [], bags.proportions[few], bags.noise, bags.sets, bags.ratios))

    return fitted


def quapy_methods() -> dict[str, Method]:
    """QuaPy's methods over logistic regression on labelled rows; none, with a message, where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from quapy.method.aggregative import ACC, CC, EMQ, PACC, HDy, KDEyML
    except ImportError:
        print("QuaPy is not installed (pip install '.[benchmark]'): its methods are left out")
        return {}

    def labelled(kind: Callable[..., Any]) -> Method:
        def fitted(bags: Bags) -> Callable[[np.ndarray], np.ndarray]:
            model = kind(LogisticRegression(max_iter=3000))
            model.fit(np.concatenate(bags.rows), np.concatenate(bags.labels))
            predict: Callable[[np.ndarray], np.ndarray] = model.predict
            return predict

        return fitted

    return {f"QuaPy {kind.__name__}, with labels": labelled(kind) for kind in (CC, ACC, PACC, EMQ, HDy, KDEyML)}


@dataclass
class Errors:
    """Mean L1 errors by method, one number per split, and the seconds that fits took."""

    found: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def measure(self, name: str, method: Method, bags: Bags) -> None:
        """Adds the mean over the sets of one split."""
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predict = method(bags)
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
            estimates = np.array([predict(rows) for rows in bags.sets])
        self.found.setdefault(name, []).append(float(np.abs(estimates - bags.ratios).sum(axis=1).mean()))

    def mean(self, name: str) -> float:
        """Over the splits."""
        return float(np.mean(self.found[name]))

    def best(self, names: Iterable[str]) -> str:
        """The name with the smallest mean."""
        return min(names, key=self.mean)

    def show(self, title: str) -> None:
        """Prints the table, smallest error first."""
        splits = len(next(iter(self.found.values())))
        print(f"\n{title}; {splits} splits\n{'':44}mean L1  s.e.   seconds per fit")
        for name in sorted(self.found, key=self.mean):
            error, seconds = standard_error(self.found[name]), self.seconds[name] / splits
            print(f"  {name:42}{self.mean(name):.4f}  {error:.4f}  {seconds:8.2f}", flush=True)


def four_bags(world: World, splits: Sequence[int], data_dir: str | None) -> Errors:
    """All estimators without noise, and QuaPy's with labels, on the same bags."""
    methods = {
        **{name: ours(name) for name in (*ESTIMATORS, "energy", "proportion_svm")},
        "whitened, gamma 1/4 / median": ours("whitened", bandwidth=0.25),
        "bag_classifier, 512 random features": ours("bag_classifier", features=512),
        "mmd, as published": ours("mmd"),
        "mmd, gamma 1 / median": ours("mmd", bandwidth=1.0),
        "mmd, gamma 1 / median, 2 bags": two(ours("mmd", bandwidth=1.0)),
        **quapy_methods(),
    }
    errors = Errors()
    for seed in splits:
        bags = world.split(seed, data_dir)
        for name, method in methods.items():
            errors.measure(name, method, bags)
    return errors


def adult(splits: Sequence[int], data_dir: str | None) -> None:
    """The bars of the default estimator."""
    errors = four_bags(ADULT, splits, data_dir)
    errors.show("adult, 4 bags of 600, no noise")
    others = [name for name in errors.found if name.startswith("QuaPy")]
    for name in DEFAULTS:
        bar(name, errors.mean(name), 0.042)
        if others:
            best = errors.best(others)
            bar(f"{name}, beside {best}", errors.mean(name), errors.mean(best) + 0.01)


def higgs(splits: Sequence[int], data_dir: str | None) -> None:
    """A hard data set: no bar."""
    four_bags(HIGGS, splits, data_dir).show("higgs, 4 bags of 600, no noise")


def mnist(splits: Sequence[int], data_dir: str | None) -> None:
    """Private counts by the best noise and by the published ones, on a quarter of the splits: they are large."""
    methods = {**{name: ours(name) for name in ESTIMATORS}, "mmd": ours("mmd", kernel="fourier")}
    noises: dict[str, CountNoise] = {"discrete Gaussian": "auto", "Laplace 2/epsilon": "published_laplace"}
    errors, labelled = Errors(), quapy_methods()
    for seed in splits[: max(1, len(splits) // 4)]:
        bags = MNIST.split(seed, data_dir)
        releases = {"no noise": bags, "Dirichlet, Eq. 9": bags.published(EPSILON, DELTA, seed)}
        for title, noise in noises.items():
            mechanism = calibrate(noise, classes=CLASSES, epsilon=EPSILON, delta=DELTA)
            releases[title] = bags.released(mechanism, seed)
        for title, released in releases.items():
            for name, method in methods.items():
                if title in ("no noise", "discrete Gaussian") or name in ("whitened", "mmd"):
                    errors.measure(f"{name}, {title}", method, released)
        for name in labelled:
            if "EMQ" in name:
                errors.measure(name, labelled[name], bags)
    errors.show(f"mnist, 20 bags, counts at ({EPSILON}, {DELTA})")
    for name in DEFAULTS:
        bar(f"{name}, discrete Gaussian", errors.mean(f"{name}, discrete Gaussian"), 0.09)


def small(splits: Sequence[int], data_dir: str | None) -> None:
    """Many small bags, where the noise of the counts is as large as what tells the bags apart."""
    methods = {
        **{name: ours(name) for name in ESTIMATORS},
        "whitened, not corrected": ours("whitened", corrected=False),
        "mmd, as published": ours("mmd"),
    }
    mechanism = calibrate("gaussian", classes=2, epsilon=EPSILON, delta=DELTA)
    errors = Errors()
    for seed in splits:
        bags = SMALL.split(seed, data_dir).released(mechanism, seed)
        for name, method in methods.items():
            errors.measure(name, method, bags)
    errors.show(f"adult, 400 bags of 30, discrete Gaussian counts at ({EPSILON}, {DELTA})")
    for name in DEFAULTS:
        bar(f"{name} over published", errors.mean(name) / errors.mean("mmd, as published"), 0.6)


TABLES = {"adult": adult, "higgs": higgs, "small": small, "mnist": mnist}


def show(name: str, arguments: argparse.Namespace) -> None:
    """Prints one table."""
    TABLES[name](range(arguments.first_seed, arguments.first_seed + arguments.splits), arguments.data_dir)


if __name__ == "__main__":
    print_tables(__doc__, TABLES, show, splits=12, first_seed=0)
