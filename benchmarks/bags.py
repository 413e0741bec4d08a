"""Worlds for estimators of class ratios: bags of rows with label counts, and unlabelled sets of known ratios."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aggregator.trial.feature_fitting import fit
from federation.contract.randomness import NoiseBits, generator
from federation.mechanisms.counts.additive import CountMechanism
from federation.mechanisms.counts.calibration import published_release
from scenarios.data.catalogue import load
from scenarios.data.tables import Table


@dataclass(frozen=True, eq=False)
class Bags:
    """M bags of rows, what was released of their label counts, and unlabelled sets with their ratios.

    `labels` are those of every row, for methods that need them; `noise` (M, C, C) is the covariance of the noise in
    `proportions` (M, C), None without any.
    """

    rows: list[np.ndarray]
    labels: list[np.ndarray]
    proportions: np.ndarray
    noise: np.ndarray | None
    sets: list[np.ndarray]
    ratios: np.ndarray

    def counts(self) -> np.ndarray:
        """True label counts (M, C)."""
        return np.array([np.bincount(labels, minlength=self.ratios.shape[1]) for labels in self.labels])

    def released(self, mechanism: CountMechanism, seed: int) -> Bags:
        """With proportions from private counts."""
        counts, sizes = self.counts(), np.array([len(rows) for rows in self.rows])
        bits = NoiseBits(seed, "benchmark counts")
        shares = [mechanism.release(one, bits)[0] / size for one, size in zip(counts, sizes, strict=True)]
        covariances = {size: mechanism.covariance(int(size)) / size**2 for size in np.unique(sizes)}
        return replace(self, proportions=np.stack(shares), noise=np.stack([covariances[size] for size in sizes]))

    def published(self, epsilon: float, delta: float, seed: int) -> Bags:
        """With proportions from the scaled Dirichlet law with its scale from each bag's own counts."""
        bits, counts = NoiseBits(seed, "benchmark dirichlet"), self.counts()
        shares = [published_release(one, epsilon, delta, bits)[0] / one.sum() for one in counts]
        return replace(self, proportions=np.stack(shares), noise=None)


@dataclass(frozen=True)
class World:
    """A data set, the shares of classes in its bags and sets, and their sizes.

    `auxiliary` public rows fit the feature map; `shares` draws (M, C) from a generator.
    """

    source: str
    features: Sequence[Any]
    shares: Callable[[np.random.Generator], np.ndarray]
    sizes: tuple[int, ...]
    targets: np.ndarray
    target_size: int
    auxiliary: int = 4000

    def split(self, seed: int, data_dir: str | None) -> Bags:
        """One split: auxiliary rows, bags and sets share no row; the sets are drawn from the same rows, each by itself.

        Where the data set has test rows of its own, sets are drawn from those.
        """
        table, random = load(self.source, data_dir=data_dir), generator(seed, "benchmark bags")
        train, test = table.official if table.official is not None else (np.arange(len(table)), None)
        order = random.permutation(train)
        feature_map = fit(self.features, table.rows(order[: self.auxiliary]), table.text)
        classes = len(table.classes)
        pools = [Pool(table, order[self.auxiliary :], y) for y in range(classes)]
        shares = self.shares(random)
        places = [
            np.concatenate([pool.take(n) for pool, n in zip(pools, rounded(share, size), strict=True)])
            for share, size in zip(shares, self.sizes, strict=True)
        ]
        left = [pool.left() if test is None else Pool(table, test, y).left() for y, pool in enumerate(pools)]
        sets = [
            np.concatenate([random.choice(rows, n, replace=False) for rows, n in zip(left, counts, strict=True)])
            for counts in (rounded(target, self.target_size) for target in self.targets)
        ]
        labels = [table.labels[indices] for indices in places]
        return Bags(
            [feature_map.transform(table.rows(indices)) for indices in places],
            labels,
            np.array([np.bincount(one, minlength=classes) / len(one) for one in labels]),
            None,
            [feature_map.transform(table.rows(indices)) for indices in sets],
            np.array([np.bincount(table.labels[indices], minlength=classes) / len(indices) for indices in sets]),
        )


class Pool:
    """Rows of one class, given out once each."""

    def __init__(self, table: Table, order: np.ndarray, label: int) -> None:
        self._rows: Iterator[int] = iter(order[table.labels[order] == label].tolist())

    def take(self, count: int) -> np.ndarray:
        """The next `count` rows. Raises `ValueError` when there are fewer."""
        taken = [row for _, row in zip(range(count), self._rows, strict=False)]
        if len(taken) < count:
            raise ValueError(f"{count} rows of a class are needed, {len(taken)} are left")
        return np.array(taken, dtype=np.int64)

    def left(self) -> np.ndarray:
        """All that is left."""
        return np.array(list(self._rows), dtype=np.int64)


def rounded(shares: np.ndarray, size: int) -> np.ndarray:
    """Counts (C,) of sum `size`, each within 1 of its share (C,) of it."""
    return np.diff(np.rint(np.cumsum(shares) * size).astype(np.int64), prepend=0)


def skewed(classes: int, small: float) -> np.ndarray:
    """Shares (C, C): all but one class have `small`, another one in every row (Iyer et al. 2016, section 4.2)."""
    return np.where(np.eye(classes, dtype=bool), 1 - (classes - 1) * small, small)


def line(fractions: np.ndarray) -> np.ndarray:
    """Shares (n, 2) of two classes, of which the second has the fractions (n,)."""
    return np.stack([1 - fractions, fractions], axis=1)
