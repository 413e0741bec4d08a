"""Exact kernels: means over all pairs of rows, in O(N^2) time and the memory of the rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from aggregator.learners.kernels.distances import ROWS, NegativeSquares, tiles
from aggregator.learners.kernels.interface import Kernel, Support
from federation.contract.errors import InputError
from federation.numerics.rows import Floats, Integers


class ExactKernel(Kernel):
    """A function of the distance of two rows, evaluated for every pair."""

    at_zero: ClassVar[float]  # k(x, x)

    @property
    def scale(self) -> float:
        """The factor of the squared distances that `of_squares` takes: 1 unless a kernel says otherwise."""
        return 1.0

    @abstractmethod
    def of_squares(self, squares: Floats) -> Floats:
        """The kernel of pairs with -scale |x - y|^2 = `squares`, which may be overwritten."""

    def support(self, bags: Sequence[Floats]) -> ExactSupport:
        """A copy of the rows of M bags, one bag after another."""
        if not len(bags):
            raise InputError("bags must not be empty: at least one bag of rows is needed")
        columns = np.asanyarray(bags[0]).shape[-1] if np.ndim(bags[0]) else None
        rows = [np.concatenate(list(tiles(bag, f"bag {i}", columns))) for i, bag in enumerate(bags)]
        return ExactSupport(self, np.array([len(bag) for bag in rows]), np.concatenate(rows))


@dataclass(frozen=True, eq=False)
class GaussianKernel(ExactKernel):
    """k(x, y) = exp(-gamma |x - y|^2). Raises `InputError` unless gamma is positive and finite.

    Examples:
        >>> support = GaussianKernel(gamma=0.5).support([np.array([[0.0], [2.0]]), np.array([[1.0]])])
        >>> support.gram()  # mean kernels of the pairs of rows: (1 + exp(-2)) / 2 within the first bag
        array([[0.56766764, 0.60653066],
               [0.60653066, 1.        ]])
        >>> support.cross(np.array([[0.0]]))
        array([0.56766764, 0.60653066])
    """

    kind: ClassVar[str] = "exact"
    at_zero: ClassVar[float] = 1.0
    gamma: float

    def __post_init__(self) -> None:
        if not 0 < self.gamma < np.inf:
            raise InputError(f"gamma must be positive and finite, got {self.gamma}")

    @property
    def scale(self) -> float:
        """gamma of exp(-gamma |x - y|^2), in inverse squared units of the features."""
        return self.gamma

    def of_squares(self, squares: Floats) -> Floats:
        """exp(-gamma |x - y|^2)."""
        return np.exp(squares, out=squares)


@dataclass(frozen=True, eq=False)
class EnergyKernel(ExactKernel):
    """k(x, y) = -|x - y|, positive definite for weights that sum to zero: half of it is minus the energy distance.

    Székely and Rizzo 2013. It has no bandwidth.

    Examples:
        >>> EnergyKernel().support([np.array([[0.0], [2.0]]), np.array([[1.0]])]).gram()
        array([[-1., -1.],
               [-1., -0.]])
    """

    kind: ClassVar[str] = "energy"
    at_zero: ClassVar[float] = 0.0

    def of_squares(self, squares: Floats) -> Floats:
        """-|x - y|."""
        np.negative(squares, out=squares)
        np.sqrt(squares, out=squares)
        return np.negative(squares, out=squares)


@dataclass(frozen=True, eq=False)
class ExactSupport(Support):
    """Sizes (M,) of the bags and all their rows (N, d), one bag after another."""

    kind: ClassVar[str] = "rows"
    kernel: ExactKernel
    sizes: Integers
    rows: Floats

    def gram(self) -> Floats:
        """Each pair of different rows once, in tiles of 256 by 256."""
        diagonal, above = np.zeros((2, len(self.sizes), len(self.sizes)))
        for start, stop in self._spans:
            left = self._squares.left(self.rows[start:stop])
            for first, last in self._spans:
                if first < start:
                    continue
                squares = self._squares.between(left, first, last)
                if first == start:
                    np.fill_diagonal(squares, 0.0)  # rows have no distance from themselves, whatever the rounding
                bags, members = self._members(start, stop)
                others, other_members = self._members(first, last)
                sums = members.T @ (self.kernel.of_squares(squares) @ other_members)
                (diagonal if first == start else above)[bags, others] += sums
        sums = (diagonal + diagonal.T) / 2 + above + above.T
        return sums / np.outer(self.sizes, self.sizes)

    def self_terms(self) -> Floats:
        """k(x, x), which is the same for every row."""
        return np.full(len(self.sizes), self.kernel.at_zero)

    def embed(self, rows: Floats) -> Floats:
        """Mean kernels with each bag (M,), in O(n N) time."""
        sums, count = np.zeros(len(self.sizes)), 0
        for tile in tiles(rows, "rows", self.rows.shape[1]):
            left, count = self._squares.left(tile), count + len(tile)
            for first, last in self._spans:
                bags, members = self._members(first, last)
                values = self.kernel.of_squares(self._squares.between(left, first, last))
                sums[bags] += (np.ones(len(tile)) @ values) @ members
        return sums / (count * self.sizes)

    def products(self, embedding: Floats) -> Floats:
        """The embedding itself."""
        return np.asarray(embedding)

    @cached_property
    def _squares(self) -> NegativeSquares:
        return NegativeSquares(self.rows, self.kernel.scale)

    @property
    def _spans(self) -> list[tuple[int, int]]:
        return [(start, min(start + ROWS, len(self.rows))) for start in range(0, len(self.rows), ROWS)]

    @cached_property
    def _owners(self) -> Integers:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def _members(self, start: int, stop: int) -> tuple[slice, Floats]:
        """The bags that own the rows from start to stop, and who owns which: zero or one, (rows, bags)."""
        owners = self._owners[start:stop]
        bags = slice(owners[0], owners[-1] + 1)
        return bags, (owners[:, None] == np.arange(bags.start, bags.stop)).astype(np.float64)
