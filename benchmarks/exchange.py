"""Accuracies of classifiers learned from error marginals, beside published ones (Lacombe et al. 2021, Table 2).

Run from the repository root: python -m benchmarks.exchange [--data-dir DIR] [--splits COUNT] [TABLE ...]

Tables: ctg_a (cardiotocograms, normal or not; half of the rows are the public source, 700 others answer and the rest
test), ctg_b (the source is chosen by heart rate), and a to e (generated). Features are standardised on the source.
Noise is for epsilon 1 (Gaussian: delta 1e-5) and one row added or removed, so that their number is private; the
published form protects one label. Accuracies are means over splits, in percent, with standard deviations. Tables whose
data is missing are skipped with a message.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from aggregator.learners.error_marginals.estimation import ExchangeSettings
from aggregator.learners.error_marginals.learner import ErrorMarginalsLearner
from benchmarks.common import print_tables
from federation.contract.guarantee import Adjacency, Unit
from federation.contract.randomness import NoiseBits, generator
from federation.mechanisms.marginals.noise import MarginalKind, MarginalNoise, calibrate
from federation.mechanisms.marginals.published import PublishedRates
from scenarios.data.catalogue import load

EPSILON, DELTA = 1.0, 1e-5
HEART_RATE = "LB"
PUBLISHED = {  # the constant of the larger class, without noise, and at epsilon 1
    "ctg_a": (77.7, 87.8, 73.0),
    "ctg_b": (75.5, 86.1, 70.1),
    "a": (56.2, 76.8, 74.0),
    "b": (52.9, 58.5, 53.8),
    "c": (55.6, 88.8, 85.8),
    "d": (54.6, 82.2, 75.1),
    "e": (54.0, 72.3, 63.0),
}
BARS = {("ctg_a", "published"): (70.0, 76.0), ("ctg_a", "pure, T=1"): (80.0, 100.0)}
BARS |= {("ctg_a", "pure, T=2"): (80.0, 100.0), ("ctg_a", "off, hard"): (86.0, 100.0)}


@dataclass(frozen=True, eq=False)
class World:
    """Source rows (n, d), rows and labels of those who answer, and of the test."""

    source: np.ndarray
    rows: np.ndarray
    labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


@dataclass(frozen=True)
class Variant:
    """What is learned from which answers; `noise` None without any, and "published" for published error rates."""

    noise: MarginalKind | None
    settings: ExchangeSettings
    published: bool = False


def variants(shifted: bool, hidden: tuple[int, ...]) -> dict[str, Variant]:
    """By name; `shifted` says that importance weights are needed."""
    soft = ExchangeSettings(importance=shifted, hidden=hidden)
    hard = replace(soft, labels="least_squares", rounding="hard")
    found = {"off, hard": Variant(None, hard), "off": Variant(None, soft)}
    found["published"] = Variant("pure", replace(hard, noisy_totals=False, bins="four_deviations"), published=True)
    kinds: tuple[MarginalKind, ...] = ("pure", "gaussian")
    for kind in kinds:
        found |= {f"{kind}, T={rounds}": Variant(kind, replace(soft, rounds=rounds)) for rounds in (1, 2, 3)}
        found[f"{kind}, T=2, guard"] = Variant(kind, replace(soft, guard=True))
        found[f"{kind}, T=1, linear"] = Variant(kind, replace(soft, rounds=1, learner="linear"))
    return found


def ctg(shifted: bool, seed: int, data_dir: str | None) -> World:
    """One split of the cardiotocograms."""
    table = load("ctg", data_dir=data_dir, positive=["normal"])
    random = generator(seed, "benchmark exchange")
    order = random.permutation(len(table))
    rows, labels = table.rows(order), table.labels[order]
    public = np.arange(len(table)) < len(table) // 2
    if shifted:
        rate = rows[:, table.columns.index(HEART_RATE)]
        public = random.random(len(rows)) < 0.1 + 0.8 * (rate - rate.min()) / np.ptp(rate)
    source, (held, tested) = rows[public], np.split(np.flatnonzero(~public), [700])
    return standardised(source, rows[held], labels[held], rows[tested], labels[tested])


def generated(name: str, seed: int, data_dir: str | None) -> World:
    """One instance of a generated data set."""
    table = load(f"expril_{name}", data_dir=data_dir, instance=seed)
    assert table.official is not None
    assert table.public is not None
    held, tested = table.official
    parts = table.rows(table.public), table.rows(held), table.rows(tested)
    return standardised(parts[0], parts[1], table.labels[held], parts[2], table.labels[tested])


def standardised(
    source: np.ndarray, rows: np.ndarray, labels: np.ndarray, test: np.ndarray, test_labels: np.ndarray
) -> World:
    """By the source's means and standard deviations."""
    centre, spread = source.mean(axis=0), source.std(axis=0)
    spread[spread == 0] = 1
    source, rows, test = ((part - centre) / spread for part in (source, rows, test))
    return World(source, rows, labels, test, test_labels)


def accuracy(world: World, variant: Variant, seed: int) -> tuple[float, bool]:
    """Of the hypothesis that is released, in percent; and whether a repeated one ended the exchange early."""
    settings, features = variant.settings, world.source.shape[1]
    rates = PublishedRates(features, settings.queries, EPSILON)
    noise = (
        None if variant.noise is None else rates.additive if variant.published else pure_or_gaussian(variant, features)
    )
    bits = NoiseBits(seed, "benchmark exchange")
    known = variant.published or noise is None
    learner = ErrorMarginalsLearner(
        world.source,
        settings,
        deviation=noise.deviation if noise else 0.0,
        rows=len(world.rows) if known else None,
        seed=seed,
    )
    while (query := learner.query()) is not None:
        indicators = query.bins.indicators(world.rows)
        totals = indicators @ np.ones(len(world.rows))
        if query.hypothesis is None:
            learner.take(None, totals if known else noisy(totals, noise, bits))
            continue
        errors = indicators @ (query.hypothesis.predict(world.rows) != world.labels).astype(float)
        if variant.published:
            learner.take(rates.release(errors.astype(int), totals.astype(int), bits) * totals, totals)
        else:
            released = noisy(errors, noise, bits)
            learner.take(released, released + noisy(totals - errors, noise, bits))
    right = learner.chosen.predict(world.test) == world.test_labels
    return 100 * float(right.mean()), learner.repeated


def pure_or_gaussian(variant: Variant, features: int) -> MarginalNoise:
    """For all queries, and one row that is added or removed."""
    assert variant.noise is not None
    return calibrate(
        variant.noise,
        features=features,
        queries=variant.settings.queries,
        epsilon=EPSILON,
        delta=DELTA,
        unit=Unit.ROW,
        adjacency=Adjacency.ADD_REMOVE,
    )


def noisy(cells: np.ndarray, noise: MarginalNoise | None, bits: NoiseBits) -> np.ndarray:
    """Counts (K,), as released."""
    return cells if noise is None else noise.release(cells.astype(int), bits)


# Worlds by seed and data directory, whether their source rows are shifted, and the hidden layers.
Setting = tuple[Callable[[int, str | None], World], bool, tuple[int, ...]]
SETTINGS: dict[str, Setting] = {
    "ctg_a": (partial(ctg, False), False, (16, 256, 256, 16)),
    "ctg_b": (partial(ctg, True), True, (16, 256, 256, 16)),
    **{name: (partial(generated, name), False, (16, 256, 256, 16)) for name in "ab"},
    **{name: (partial(generated, name), True, (32, 32)) for name in "cde"},
}


def show(name: str, splits: Sequence[int], data_dir: str | None) -> None:
    """Prints the table of one data set."""
    world_of, shifted, hidden = SETTINGS[name]
    worlds = [world_of(seed, data_dir) for seed in splits]
    constant = np.mean([100 * max(world.test_labels.mean(), 1 - world.test_labels.mean()) for world in worlds])
    published = PUBLISHED[name]
    print(
        f"\n{name}, {len(worlds)} splits; published: constant {published[0]}, off {published[1]}, noisy {published[2]}"
    )
    print(f"{'constant':24} {constant:6.1f}")
    for variant_name, variant in variants(shifted, hidden).items():
        start = time.perf_counter()
        found = [accuracy(world, variant, seed) for seed, world in zip(splits, worlds, strict=True)]
        seconds = (time.perf_counter() - start) / len(worlds)
        values = np.array([value for value, _ in found])
        ended = sum(repeated for _, repeated in found)
        row = f"{variant_name:24} {values.mean():6.1f} +- {values.std():4.1f}  {seconds:5.1f} s, {ended} ended early"
        if (name, variant_name) in BARS:
            least, most = BARS[name, variant_name]
            row += f"  {least:g} to {most:g}: {'met' if least <= values.mean() <= most else 'MISSED'}"
        print(row)


if __name__ == "__main__":
    print_tables(__doc__, SETTINGS, lambda name, chosen: show(name, range(chosen.splits), chosen.data_dir), splits=10)
