"""Coordinates of many small weight vectors, one party after another along the leading axis.

The minimiser of a regularised risk lies in the span of the party's rows, because the penalty removes every
component that no row sees. A party with fewer rows than features is therefore solved in coefficients of its
rows, w = X' v, where all that the solver needs is the Gram matrix X X', of any rank.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Coordinates(Protocol):
    """Coordinates v (T, C, unknowns) of the weights of T parties; scores are (T, C, n)."""

    unknowns: int

    def scores(self, v: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Scores (T, C, n) of the rows under the weights with coordinates v."""

    def pull_back(self, values: np.ndarray) -> np.ndarray:
        """Coordinates of sum_i values_i x_i, for values (T, C, n)."""

    def inner(self, v: np.ndarray, scores: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Inner products (T,) of the weights of v, whose scores are given, and the weights of u."""

    def take(self, parties: np.ndarray) -> Coordinates:
        """The coordinates of some of the parties."""

    def single(self) -> Coordinates:
        """The same in single precision."""


class FeatureCoordinates:
    """The weights themselves; `rows` is (T, n, d)."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows
        self.unknowns = rows.shape[2]

    def scores(self, v: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        return np.matmul(v, self.rows.transpose(0, 2, 1), out=out)

    def pull_back(self, values: np.ndarray) -> np.ndarray:
        return np.matmul(values, self.rows)

    def inner(self, v: np.ndarray, scores: np.ndarray, u: np.ndarray) -> np.ndarray:
        return dots(v, u)

    def take(self, parties: np.ndarray) -> FeatureCoordinates:
        return FeatureCoordinates(self.rows[parties])

    def single(self) -> FeatureCoordinates:
        return FeatureCoordinates(self.rows.astype(np.float32))


class RowCoordinates:
    """Coefficients of the rows; `gram` (T, n, n) holds their inner products."""

    def __init__(self, gram: np.ndarray) -> None:
        self.gram = gram
        self.unknowns = gram.shape[1]

    def scores(self, v: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        return np.matmul(v, self.gram, out=out)

    def pull_back(self, values: np.ndarray) -> np.ndarray:
        return values

    def inner(self, v: np.ndarray, scores: np.ndarray, u: np.ndarray) -> np.ndarray:
        return dots(scores, u)

    def take(self, parties: np.ndarray) -> RowCoordinates:
        return RowCoordinates(self.gram[parties])

    def single(self) -> RowCoordinates:
        return RowCoordinates(self.gram.astype(np.float32))


def dots(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Inner products (T,) of the items of two contiguous arrays (T, C, m)."""
    return np.vecdot(u.reshape(len(u), -1), v.reshape(len(v), -1))
