"""Public data in place of the paper's: splits of it with labels, and bags of rows drawn from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError
from federation.contract.randomness import generator
from scenarios.data.catalogue import load

CRITEO, CENSUS = "Criteo", "US census"
SOURCES = {  # of each set of the paper: what stands for it, its features, and the bags of the paper's grid
    CRITEO: ("protein", "standardise", (512, 1024, 2048, 4096), (32, 64, 128, 256)),
    CENSUS: ("census_weeks", "scale", (1024, 2048, 4096, 8192), (64, 128, 256, 512)),
}
BATCH = {CRITEO: 1024, CENSUS: 8192}  # instances in a step of the paper's training
OTHER_DATA = (
    "Criteo's clicks and the IPUMS census of 1940 cannot be had: 45,730 deviations of predicted protein structures "
    "stand for the one, in their own units, and weeks worked of 99,762 people in 1994 and 1995 for the other; where no "
    "bag is involved (first lines of the tables, below) errors differ as much"
)


@dataclass(frozen=True, eq=False)
class World:
    """Features, the last one a constant, and labels of training and test rows; `label_range` is the declared one."""

    rows: np.ndarray
    labels: np.ndarray
    test_rows: np.ndarray
    test_labels: np.ndarray
    label_range: tuple[float, float]

    @cached_property
    def table(self) -> csr_array:
        """Rows with their labels as the last column; most features of people are 0."""
        return csr_array(np.column_stack([self.rows, self.labels]))

    def error(self, predicted: np.ndarray) -> float:
        """Mean squared error of predictions for the test rows."""
        return float(np.mean((predicted - self.test_labels) ** 2))


def world(setting: str, split: int, data_dir: Path | None) -> World | None:
    """A split, four fifths of the rows for training; None where the data is not here."""
    source, features, _, _ = SOURCES[setting]
    try:
        table = load(source, data_dir=data_dir)
    except InputError:
        return None
    order = generator(split, "rows of a paper's split").permutation(len(table))
    train, test = np.split(order, [len(table) * 4 // 5])
    rows = table.rows(train)
    known = fit([features, "constant"], rows, table.text)
    assert table.label_range is not None
    test_rows = known.transform(table.rows(test))
    return World(known.transform(rows), table.labels[train], test_rows, table.labels[test], table.label_range)


class Sums(NamedTuple):
    """Weighted sums of bags: of rows (m, d) and of labels (m,)."""

    rows: np.ndarray
    labels: np.ndarray


def gaussian_sums(of: World, count: int, size: int, random: np.random.Generator) -> Sums:
    """What wtd-LBA releases of m = `count` bags of k = `size` rows that are drawn with replacement from all.

    So bags hold no more of the others' rows than those of a set without end, which the paper's nearly is.
    """
    chosen = random.integers(len(of.labels), size=count * size)
    starts = np.arange(0, count * size + 1, size)
    weights = csr_array((random.normal(size=count * size), chosen, starts), shape=(count, len(of.labels)))
    summed = (weights @ of.table).toarray()
    return Sums(summed[:, :-1], summed[:, -1])
