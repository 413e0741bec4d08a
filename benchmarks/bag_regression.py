"""Regression from weighted sums of bags on real data, beside theory and published designs, and what it costs.

Run from the repository root: python -m benchmarks.bag_regression [--data-dir DIR] [--draws COUNT] [TABLE ...]

Tables: closed (test error of least squares on Gaussian-weighted sums of housing, protein and census_weeks, beside
s^2 (1 + r / (m - r - 1))), network (test error of the 128-64-1 network on census_weeks from bags whose labels have
noise of standard deviation 1 on a fifth of their rows, which at a range of 52 is no protection), time (seconds of one
epoch over 80,000 rows of 121 columns, and of the sums of 2 million rows of 64 columns in memory and from a file, on
one thread). Splits are 80 to 20. Tables whose data is missing are skipped with a message.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.learners.bag_regression.linear import BagLeastSquares
from aggregator.learners.bag_regression.network import BagNetwork
from aggregator.trial.feature_fitting import fit
from benchmarks.common import bar, fastest, print_tables
from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits, generator
from federation.numerics.bag_weights import disjoint_bags, gaussian_weights, noisy_count, sign_weights, stratified_noise
from parties.responses.labels import label_sums, sketch
from scenarios.data.catalogue import load

CLOSED = {
    "housing": ((64, 64), (64, 250), (256, 60), (1000, 16)),
    "protein": ((64, 64), (64, 512), (256, 64), (1024, 32)),
    "census_weeks": ((512, 128), (1024, 64), (2048, 32)),
}
RANGE = (0.0, 52.0)  # weeks of a year
SHARE, SIGMA = 0.2, 1.0  # of the labels with noise, and its standard deviation
REFERENCE = {(256, 64): 142.6, (512, 64): 131.3, (1024, 64): 128.7, (2048, 32): 125.1}
LABELLED = 112.4  # from every label, by the same reference
PUBLISHED: dict[str, Any] = {"batch_size": 8192, "batch_unit": "rows", "restore_best": False, "average": False}


def expected_error(variance: float, rank: int, bags: int) -> float:
    """Expected squared error on new rows of least squares on m bags: s^2 (1 + r / (m - r - 1)), for every bag size.

    `variance` s^2 is the mean squared residual of the best linear model on rows, r the `rank` of the rows. Weighted
    sums with Gaussian weights are Gaussian given the bags, and the inverse of their Wishart matrix has this mean when
    bags have about the moments of all rows. Those of few rows do not: with r = 6 and m = 40 the part beyond s^2 is a
    sixth larger for bags of 10 rows, and 2.6 times as large for single rows times a Gaussian number. Infinite for
    m <= r + 1. Raises `InputError` for a negative variance, or rank or number of bags below 1.

    Examples:
        >>> round(expected_error(variance=1.0, rank=6, bags=40), 2)
        1.18
    """
    if not (variance >= 0 and rank >= 1 and bags >= 1):
        raise InputError(f"variance must be >= 0, rank and bags >= 1; got {variance}, {rank}, {bags}")
    return variance * (1 + rank / (bags - rank - 1)) if bags > rank + 1 else np.inf


@dataclass(frozen=True, eq=False)
class Split:
    """Features and labels of training and test rows."""

    rows: np.ndarray
    labels: np.ndarray
    test_rows: np.ndarray
    test_labels: np.ndarray

    def error(self, model: Any) -> float:
        """Mean squared error of a model on the test rows."""
        return float(np.mean((model.predict(self.test_rows) - self.test_labels) ** 2))


def split(source: str, features: list[Any], seed: int, data_dir: str | None) -> Split:
    """80 to 20; the feature map is fitted on the training rows, which are public here."""
    table = load(source, data_dir=data_dir)
    order = generator(seed, "benchmark regression").permutation(len(table))
    train, test = np.split(order, [len(table) * 4 // 5])
    rows = table.rows(train)
    feature_map = fit(features, rows, table.text)
    test_rows = feature_map.transform(table.rows(test))
    return Split(feature_map.transform(rows), table.labels[train], test_rows, table.labels[test])


def closed(draws: int, data_dir: str | None) -> None:
    """Both learn and are tested on the same rows in each split, from which the rest of the error is the bags' alone."""
    print("closed: data, m, k, rank, s^2, theory, measured, ratio, ratio of what exceeds s^2 (s.e.), that with signs")
    for source, settings in CLOSED.items():
        worlds = [split(source, ["standardise", "constant"], seed, data_dir) for seed in range(3)]
        models = [BagLeastSquares().fit(world.rows, world.labels) for world in worlds]
        leasts = np.array([[world.error(model)] for world, model in zip(worlds, models, strict=True)])
        least = float(leasts.mean())
        rank = models[0].rank_
        for count, size in settings:
            theory = expected_error(least, rank, count)
            found = {
                kind: np.array([[one(world, count, size, kind, seed) for seed in range(draws)] for world in worlds])
                for kind in ("gaussian", "signs")
            }
            mean = float(found["gaussian"].mean())
            excesses = [(values - leasts) / (theory - least) for values in found.values()]
            ratios = [f"{ratio.mean():7.3f} ({ratio.std() / np.sqrt(ratio.size):.3f})" for ratio in excesses]
            print(
                f"  {source:13}{count:5}{size:5}{rank:5}{least:9.4f}{theory:9.4f}{mean:9.4f}{mean / theory:7.3f}"
                f"{''.join(ratios)}",
                flush=True,
            )
            bar("error over theory, off by", abs(mean / theory - 1), 0.1)


def one(world: Split, count: int, size: int, kind: str, seed: int) -> float:
    """Test error of least squares on sums of one draw of bags and weights."""
    bits = NoiseBits(seed, "benchmark sums")
    bags = disjoint_bags(len(world.rows), count, size, bits)
    weights = (gaussian_weights if kind == "gaussian" else sign_weights)(count, size, bits)
    sums = sketch(world.rows, world.labels, bags, weights)
    return world.error(BagLeastSquares().fit(sums.rows, sums.labels))


def network(draws: int, data_dir: str | None) -> None:
    """A tenth as many draws as the closed form takes: they are slow."""
    seeds = range(max(1, draws // 10))
    print("network: m, k, weights, design, test MSE (s.d.), epochs, beside a reference of this design")
    worlds = [split("census_weeks", ["scale"], seed, data_dir) for seed in seeds]
    for (count, size), reference in REFERENCE.items():
        for draw in (sign_weights, gaussian_weights):
            for design, options in (("default", {}), ("published", PUBLISHED)):
                found = [learned(world, count, size, draw, options, seed) for seed, world in enumerate(worlds)]
                errors, epochs = np.array(found).T
                print(
                    f"  {count:5}{size:4} {draw.__name__:17}{design:10}{errors.mean():7.1f} ({errors.std():.1f})"
                    f"{epochs.mean():7.1f}{reference:8.1f}",
                    flush=True,
                )
                if (count, size) == (1024, 64):
                    bar("mean test MSE", errors.mean(), reference + 3)
    errors = [world.error(BagNetwork(RANGE).fit_labels(world.rows, world.labels)) for world in worlds]
    print(f"  every label{'':27}{np.mean(errors):7.1f} ({np.std(errors):.1f}){'':7}{LABELLED:8.1f}")


def learned(
    world: Split, count: int, size: int, draw: Callable[..., np.ndarray], options: dict[str, Any], seed: int
) -> tuple[float, int]:
    """Test error and epochs of a network on stratified bags."""
    bits = NoiseBits(seed, "benchmark bags")
    bags, weights = disjoint_bags(len(world.rows), count, size, bits), draw(count, size, bits)
    noisy = stratified_noise(count, size, noisy_count(SHARE, size))
    noise = SIGMA * gaussian_weights(count, size, NoiseBits(seed, "benchmark label noise"))
    sums = label_sums(world.labels, bags, weights) + (weights * noise * noisy).sum(axis=1)
    model = BagNetwork(RANGE, seed=seed, **options).fit(world.rows, bags, weights, sums)
    return world.error(model), len(model.losses_)


def seconds(call: Callable[[], object]) -> float:
    """Processor time of the fastest of a few calls."""
    return fastest(call, 3, time.process_time)[0]


def epoch(count: int, size: int) -> float:
    """Seconds of one more epoch of the network over count x size rows of 121 columns."""
    random, bits = generator(0, "benchmark epoch"), NoiseBits(0, "benchmark epoch")
    rows = random.normal(size=(count * size, 121)).astype(np.float32)
    bags, weights = disjoint_bags(len(rows), count, size, bits), sign_weights(count, size, bits)
    sums = random.normal(size=count)

    def trained(epochs: int) -> object:
        return BagNetwork(RANGE, epochs=epochs, validation=0).fit(rows, bags, weights, sums)

    return (seconds(lambda: trained(6)) - seconds(lambda: trained(1))) / 5


def times(draws: int, data_dir: str | None) -> None:
    """Needs no data."""
    print("time, on one thread")
    for count, size in ((1250, 64), (156, 512), (80_000, 1)):
        bar(f"seconds of an epoch over {count} bags of {size} rows", epoch(count, size), 0.25)
    random, bits, shape = generator(0, "benchmark sums"), NoiseBits(0, "benchmark sums"), (2_000_000, 64)
    rows, labels = random.standard_normal(shape), random.standard_normal(shape[0])
    with tempfile.TemporaryDirectory() as folder:
        rows.tofile(Path(folder) / "rows")
        mapped = np.memmap(Path(folder) / "rows", np.float64, "r", shape=shape)
        for count in (100, 8000, 200_000):
            size = shape[0] // count
            drawn = disjoint_bags(shape[0], count, size, bits), gaussian_weights(count, size, bits)
            memory = seconds(lambda: sketch(rows, labels, *drawn))  # noqa: B023
            file = seconds(lambda: sketch(mapped, labels, *drawn))  # noqa: B023
            drawing = seconds(lambda: (disjoint_bags(shape[0], count, size, bits), gaussian_weights(count, size, bits)))  # noqa: B023
            bar(f"seconds of the sums of {count} bags (from a file {file:.2f}, drawing {drawing:.2f})", memory, 2.0)


TABLES = {"closed": closed, "network": network, "time": times}


if __name__ == "__main__":
    print_tables(__doc__, TABLES, lambda name, chosen: TABLES[name](chosen.draws, chosen.data_dir), draws=100)
