"""Table 1: wtd-LBA with linear regression, trained as in the paper and in closed form, and on every label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from aggregator.learners.bag_regression.linear import BagLeastSquares, trained
from federation.contract.randomness import generator
from scenarios.papers.brahmbhatt.substitutes import BATCH, SOURCES, World, gaussian_sums, world
from scenarios.reproductions.paper import Observation

LINEAR = "Table 1, linear"
SPLITS, FEW = 5, 3  # and of a quick run; the paper's are 10


def table_1(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Errors of all cells; a quick run takes the fewest bags only."""
    for setting in SOURCES:
        yield from of_set(setting, quick, data_dir)


def of_set(setting: str, quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Those of one set, all splits of a cell side by side."""
    _, _, counts, sizes = SOURCES[setting]
    worlds = [one for split in range(FEW if quick else SPLITS) if (one := world(setting, split, data_dir)) is not None]
    for count in counts[:1] if quick else counts:
        for size in sizes:
            if worlds:
                yield from cell(setting, worlds, count, size)


def cell(setting: str, worlds: list[World], count: int, size: int) -> Iterator[Observation]:
    """Of m = `count` bags of k = `size` rows in every split: Adam as published, and our least squares on equal sums."""
    random = generator(count * size, f"sums of {setting}, {count} bags")
    draws = [gaussian_sums(one, count, size, random) for one in worlds]
    rows, labels = np.stack([one.rows for one in draws]), np.stack([one.labels for one in draws])
    reached = trained(rows, labels, size, random, batch_rows=BATCH[setting])
    for split, (one, sums) in enumerate(zip(worlds, draws, strict=True)):
        exact = BagLeastSquares().fit(sums.rows, sums.labels)
        default = np.clip(exact.predict(one.test_rows), *one.label_range)
        yield Observation(
            setting, f"m = {count}", "published", str(size), split, one.error(one.test_rows @ reached[split])
        )
        yield Observation(setting, f"m = {count}", "default", str(size), split, one.error(default))


def labelled(setting: str, of: World, split: int) -> Iterator[Observation]:
    """The error of least squares on every label, without any protection."""
    exact = BagLeastSquares().fit(of.rows, of.labels)
    yield Observation(setting, LINEAR, "published", "", split, of.error(exact.predict(of.test_rows)))
