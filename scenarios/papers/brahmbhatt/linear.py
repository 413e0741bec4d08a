"""Table 1: wtd-LBA with linear regression, trained as in the paper and in closed form, and on every label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from aggregator.learners.bag_regression.least_squares import BagLeastSquares
from federation.contract.randomness import generator
from scenarios.papers.brahmbhatt.adam import trained
from scenarios.papers.brahmbhatt.substitutes import BATCH, CENSUS, CRITEO, SOURCES, World, gaussian_sums, world
from scenarios.reproductions.paper import Observation

SPLITS = 3
MOST = {CRITEO: 2**18, CENSUS: 2**19}  # rows of a cell that is measured: larger ones take minutes


def table_1(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Errors of the cells that are measured; a quick run takes the fewest bags only."""
    for setting in SOURCES:
        yield from of_set(setting, quick, data_dir)


def of_set(setting: str, quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Those of one set, all splits of a cell side by side."""
    _, _, counts, sizes = SOURCES[setting]
    worlds = [one for split in range(SPLITS) if (one := world(setting, split, data_dir)) is not None]
    for count in counts[:1] if quick else counts:
        for size in sizes:
            if worlds and count * size <= MOST[setting]:
                yield from cell(setting, worlds, count, size)


def cell(setting: str, worlds: list[World], count: int, size: int) -> Iterator[Observation]:
    """Of m = `count` bags of k = `size` rows in every split: Adam as published, and our least squares on equal sums."""
    random = generator(count * size, f"sums of {setting}, {count} bags")
    draws = [gaussian_sums(one, count, size, random) for one in worlds]
    reached = trained(draws, size, BATCH[setting], random)
    for split, (one, sums) in enumerate(zip(worlds, draws, strict=True)):
        exact = BagLeastSquares().fit(sums.rows, sums.labels)
        default = np.clip(exact.predict(one.test_rows), *one.label_range)
        yield Observation(
            setting, f"m = {count}", "published", str(size), split, one.error(one.test_rows @ reached[split])
        )
        yield Observation(setting, f"m = {count}", "default", str(size), split, one.error(default))
