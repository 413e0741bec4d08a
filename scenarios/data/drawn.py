"""Generated data sets of any size: rows are drawn when they are asked for, and no process ever holds them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from federation.contract.randomness import generator
from federation.numerics.rows import Integers
from scenarios.data.data_sets import DataSet
from scenarios.data.tables import Table

_SEED = 1_000_000  # of the data sets, which are the same in every scenario
_CHUNK = 1024  # rows that are drawn together

Rows = NDArray[np.float32]
MakeRows = Callable[[NDArray[np.int64], np.random.Generator], Rows]


@dataclass(frozen=True, eq=False)
class Draws:
    """n independent labelled rows of d columns, of a name and an instance: each chunk of 1024 has draws of its own.

    Classes 0 to C - 1 have the probabilities `shares` (C,); `make` gives the rows (m, d) of labels (m,).
    """

    name: str
    n: int
    d: int
    shares: tuple[float, ...]
    make: MakeRows
    instance: int = 0

    @lru_cache(maxsize=2)  # noqa: B019 - the latest, for parties that are asked one by one; there are few such objects
    def labels(self, chunk: int) -> NDArray[np.int64]:
        """Those of rows 1024 chunk to 1024 chunk + 1023, whether there are so many or not."""
        random = generator(_SEED, f"{self.name} labels", chunk, self.instance)
        found: NDArray[np.int64] = np.searchsorted(np.cumsum(self.shares[:-1]), random.random(_CHUNK), side="right")
        return found

    @lru_cache(maxsize=2)  # noqa: B019
    def rows(self, chunk: int) -> Rows:
        """The rows, float32 (1024, d), of the same."""
        return self.make(self.labels(chunk), generator(_SEED, f"{self.name} rows", chunk, self.instance))

    def at(self, indices: Integers | range, read: Callable[[int], NDArray[Any]], out: NDArray[Any]) -> NDArray[Any]:
        """What `read` gives of chunks, at row numbers (m,), in `out`: each chunk is drawn once."""
        if isinstance(indices, range) and indices.step == 1:
            for chunk in range(indices.start // _CHUNK, -(-indices.stop // _CHUNK)) if len(indices) else ():
                start, stop = max(chunk * _CHUNK, indices.start), min((chunk + 1) * _CHUNK, indices.stop)
                first = start - chunk * _CHUNK
                out[start - indices.start : stop - indices.start] = read(chunk)[first : first + stop - start]
            return out
        wanted = np.asarray(indices)
        chunks = wanted // _CHUNK
        for chunk in np.unique(chunks).tolist():
            places = np.flatnonzero(chunks == chunk)
            out[places] = read(chunk)[wanted[places] - chunk * _CHUNK]
        return out


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """A block of a `Table` whose rows are drawn when they are read."""

    draws: Draws

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return self.draws.n, self.draws.d

    def __len__(self) -> int:
        return self.draws.n

    def __getitem__(self, indices: Integers | range) -> Rows:
        return self.draws.at(indices, self.draws.rows, np.empty((len(indices), self.draws.d), np.float32))


@dataclass(frozen=True, eq=False)
class DrawnLabels:
    """The labels of the same."""

    draws: Draws

    def __len__(self) -> int:
        return self.draws.n

    def __getitem__(self, indices: Integers | range) -> NDArray[np.int64]:
        return self.draws.at(indices, self.draws.labels, np.empty(len(indices), np.int64))


def drawn(draws: Draws, columns: tuple[str, ...], classes: tuple[str, ...]) -> Table:
    """The table of the draws."""
    # Whoever reads all labels at once, as of an array, would not want to of so many: it fails, and nothing else does.
    labels, rows = cast("NDArray[Any]", DrawnLabels(draws)), cast("NDArray[Any]", DrawnRows(draws))
    return Table(draws.name, columns, classes, labels, (rows,), drawn=True)


_CROWD, _CROWD_COLUMNS = 1_000_000_000, 10
_CROWD_OFFSET = 0.4  # of each class's centre from the origin, in every column


def _crowd(instance: int) -> Table:
    """Two equally probable classes, normal around +-0.4 in each of 10 columns: at best Phi(.4 sqrt 10) = .897 right."""

    def make(labels: NDArray[np.int64], random: np.random.Generator) -> Rows:
        rows = random.standard_normal((len(labels), _CROWD_COLUMNS), dtype=np.float32)
        rows += np.where(labels == 1, np.float32(_CROWD_OFFSET), np.float32(-_CROWD_OFFSET))[:, None]
        return rows

    draws = Draws("crowd", _CROWD, _CROWD_COLUMNS, (0.5, 0.5), make, instance)
    return drawn(draws, tuple(f"x{i}" for i in range(_CROWD_COLUMNS)), ("no", "yes"))


# Of KDD-99's shape: numbers, and three texts of 3, 67 and 11 values, one column each.
_INTRUSIONS, _NUMBERS, _TEXTS = 100_000_000, 38, {"protocol": 3, "service": 67, "flag": 11}
_KINDS, _ATTACKS = 12, 8  # kinds of connections, the last of which are attacks, equally probable within their class
_SPREAD = 0.4  # of the kinds' centres
_ATTACKED = 0.8  # share of attacks


@dataclass(frozen=True, eq=False)
class _Connections:
    """How connections of each kind look: the same for every instance."""

    centres: Rows  # (kinds, 38)
    ends: tuple[NDArray[np.float64], ...]  # (kinds, values) cumulated probabilities of each text

    @classmethod
    def draw(cls) -> _Connections:
        random = generator(_SEED, "intrusions")
        centres = (_SPREAD * random.standard_normal((_KINDS, _NUMBERS))).astype(np.float32)
        weights = (random.standard_exponential((_KINDS, size)) ** 4 for size in _TEXTS.values())  # a few are usual
        return cls(centres, tuple(np.cumsum(one / one.sum(axis=1, keepdims=True), axis=1) for one in weights))

    def __call__(self, labels: NDArray[np.int64], random: np.random.Generator) -> Rows:
        normal = _KINDS - _ATTACKS
        drawn_kind = random.random(len(labels))
        kinds = np.where(labels == 1, normal + (drawn_kind * _ATTACKS).astype(int), (drawn_kind * normal).astype(int))
        rows = np.zeros((len(labels), _NUMBERS + sum(_TEXTS.values())), np.float32)
        rows[:, :_NUMBERS] = random.standard_normal((len(labels), _NUMBERS), dtype=np.float32)
        rows[:, :_NUMBERS] += self.centres[kinds]
        first, everyone = _NUMBERS, np.arange(len(labels))
        for ends in self.ends:
            values = (ends[kinds, :-1] < random.random((len(labels), 1))).sum(axis=1)
            rows[everyone, first + values] = 1.0
            first += ends.shape[1]
        return rows


def _intrusions(instance: int) -> Table:
    """Connections of 12 kinds, 8 of them attacks, with 38 numbers, normal about the centre of the kind, and 3 texts."""
    columns = [f"n{i}" for i in range(_NUMBERS)]
    columns += [f"{name}={value}" for name, size in _TEXTS.items() for value in range(size)]
    shares = (1 - _ATTACKED, _ATTACKED)
    draws = Draws("intrusions", _INTRUSIONS, len(columns), shares, _Connections.draw(), instance)
    return drawn(draws, tuple(columns), ("normal", "attack"))


DRAWN_SETS = tuple(
    DataSet(
        name,
        f"{what}, drawn when they are read: {rows} rows, {columns} columns",
        make,
        origin="generated by this project",
        licence="Apache-2.0, as this project",
        generated=True,
    )
    for name, what, rows, columns, make in (
        ("crowd", "two generated classes, at best .897 accurate", _CROWD, _CROWD_COLUMNS, _crowd),
        ("intrusions", "generated connections of KDD-99's shape", _INTRUSIONS, 119, _intrusions),
    )
)
