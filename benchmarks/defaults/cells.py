"""Arithmetic of tables: cells, what is close to the best of a cell, falls with epsilon, and what the noise allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.defaults.records import Record
from federation.mechanisms.noise import gaussian

BANDS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, math.inf)  # of rho
GAUSSIAN = "gaussian"


class Cell(NamedTuple):
    """One setting, over all splits."""

    set: str
    world: str
    noise: str
    epsilon: float

    @property
    def parties(self) -> int:
        """Of a world that is named by its number of parties."""
        return int(self.world.removeprefix("K="))

    def __str__(self) -> str:
        return f"{self.set} {self.world}{' ' * bool(self.noise)}{self.noise} at {self.epsilon:g}"


class Fall(NamedTuple):
    """Between two epsilons of a set, world and noise: by how much a larger one is worse, and its standard error."""

    amount: float
    error: float
    low: Cell
    high: Cell

    @property
    def clear(self) -> float:
        """The amount less two standard errors, or as it is where there are none."""
        return _clear(self.amount, self.error)


@dataclass(frozen=True)
class Mean:
    """A mean over cells and its standard error over splits; NaN of a single split."""

    value: float
    error: float

    @property
    def clear(self) -> float:
        """The value less two standard errors, or as it is where there are none."""
        return _clear(self.value, self.error)


class Table:
    """Values by cell, variant, metric and split, from the records of one part."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._values: dict[tuple[Cell, str, str], dict[int, float]] = {}
        for one in records:
            cell = Cell(one.set, one.world, one.noise, one.epsilon)
            self._values.setdefault((cell, one.variant, one.metric), {})[one.split] = one.value

    def cells(self, variants: Collection[str], metric: str) -> list[Cell]:
        """Those that have the metric of all variants, in the order of their records."""
        found = dict.fromkeys(cell for cell, _, of in self._values if of == metric)
        return [cell for cell in found if all((cell, name, metric) in self._values for name in variants)]

    def by_split(self, cell: Cell, variant: str, metric: str) -> dict[int, float]:
        """The values by split; none where nothing was measured."""
        return self._values.get((cell, variant, metric), {})

    def reference(self, cell: Cell, variant: str, metric: str) -> float:
        """Mean over splits of what has no noise and no epsilon, beside a cell; NaN where nothing was measured."""
        return self.value(Cell(cell.set, cell.world, "", math.inf), variant, metric)

    def value(self, cell: Cell, variant: str, metric: str) -> float:
        """Mean over splits; NaN where nothing was measured."""
        return _mean(self.by_split(cell, variant, metric).values())

    def mean(self, cells: Sequence[Cell], variant: str, metric: str) -> Mean:
        """Over cells, with the deviation between the means of splits; a cell without the metric does not count."""
        per_split: dict[int, list[float]] = {}
        for cell in cells:
            for split, value in self.by_split(cell, variant, metric).items():
                per_split.setdefault(split, []).append(value)
        return Mean(
            _mean(self.value(cell, variant, metric) for cell in cells if self.by_split(cell, variant, metric)),
            _error([float(np.mean(values)) for values in per_split.values()]),
        )

    def gaps(
        self, cells: Sequence[Cell], variant: str, variants: Sequence[str], metric: str = "accuracy"
    ) -> list[Mean]:
        """By how much the variant is below the best of the variants in each cell.

        Which one is best is decided on the other splits, so that it is not chosen for its luck; on a single split by
        that split. A gap is negative where the variant is better than the one chosen.
        """
        return [self._gap(cell, variant, variants, metric) for cell in cells]

    def _gap(self, cell: Cell, variant: str, variants: Sequence[str], metric: str) -> Mean:
        found = [self.by_split(cell, name, metric) for name in variants]
        splits = [split for split in found[0] if all(split in values for values in found)]
        values = np.array([[one[split] for split in splits] for one in found])  # (variants, splits)
        own = values[list(variants).index(variant)]
        others = values.sum(axis=1, keepdims=True) - values if len(splits) > 1 else values
        best = np.take_along_axis(values, others.argmax(axis=0)[None], axis=0)[0]
        return Mean(_mean(best - own), _error((best - own).tolist()))

    def falls(self, cells: Sequence[Cell], variant: str, metric: str = "accuracy") -> list[Fall]:
        """The largest fall with epsilon of each set, world and noise, from the largest on; negative without any."""
        groups: dict[tuple[str, str, str], list[Cell]] = {}
        for cell in cells:
            groups.setdefault((cell.set, cell.world, cell.noise), []).append(cell)
        found = []
        for group in groups.values():
            ordered = sorted(group, key=lambda cell: cell.epsilon)
            pairs = [(low, high) for i, low in enumerate(ordered) for high in ordered[i + 1 :]]
            if pairs:
                found.append(max(self._fall(low, high, variant, metric) for low, high in pairs))
        return sorted(found, reverse=True)

    def _fall(self, low: Cell, high: Cell, variant: str, metric: str) -> Fall:
        before, after = (self.by_split(cell, variant, metric) for cell in (low, high))
        differences = [before[split] - after[split] for split in before.keys() & after.keys()]
        return Fall(_mean(differences), _error(differences), low, high)

    def below_reference(
        self, cells: Sequence[Cell], variant: str, reference: str, metric: str = "accuracy"
    ) -> NDArray[np.float64]:
        """By how much the variant is below a reference without noise in each cell (cells,); negative above it."""
        return np.array([self.reference(c, reference, metric) - self.value(c, variant, metric) for c in cells])


def rho(noise: str, parties: int, epsilon: float, coordinates: int, delta: float) -> float:
    """The largest mean of unit shares over the expected norm of its noise, for so many released coordinates.

    M epsilon / (2 D) for pure noise, M mu / (2 sqrt(D)) for Gaussian noise of (epsilon, delta).

    Examples:
        >>> rho("pure", 100, 1.0, 10, 0.0), rho("gaussian", 100, 1.0, 10, 1e-6)
        (5.0, 3.73)
    """
    if noise == GAUSSIAN:
        return parties * gaussian.mu(epsilon, delta) / (2 * math.sqrt(coordinates))
    return parties * epsilon / (2 * coordinates)


def in_bands(values: Sequence[float]) -> list[NDArray[np.intp]]:
    """The positions of the values in each of `BANDS`, from its lower end (included) to its upper one."""
    bands = np.digitize(values, BANDS[1:-1])
    return [np.flatnonzero(bands == band) for band in range(len(BANDS) - 1)]


def share(condition: NDArray[np.bool_]) -> float:
    """Of true ones; NaN of none."""
    return float(condition.mean()) if condition.size else math.nan


def grouped(cells: Iterable[Cell], key: Callable[[Cell], str | int | float]) -> dict[str | int | float, list[Cell]]:
    """Cells by a key, in the order in which keys come."""
    found: dict[str | int | float, list[Cell]] = {}
    for cell in cells:
        found.setdefault(key(cell), []).append(cell)
    return found


def _clear(value: float, error: float) -> float:
    return value if math.isnan(error) else value - 2 * error


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return float(np.mean(listed)) if listed else math.nan


def _error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
