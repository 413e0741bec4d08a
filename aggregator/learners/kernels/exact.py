"""Exact kernels: means over all pairs of rows, in O(N^2) time and the memory of the rows.

`Kernel` is the interface of all kernels, exact or not: means of k(x, y) between sets of rows, from a state of plain
arrays. `GaussianKernel` and `EnergyKernel` are the exact ones. `tiles` takes rows one tile at a time, so that
intermediate results need no memory proportional to the number of rows.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from federation.contract.errors import InputError
from federation.contract.randomness import digest, generator
from federation.numerics.rows import Floats, Integers, keep_freed_memory, require_finite


class Stored(ABC):
    """A frozen dataclass whose fields are arrays, numbers, None, and others of its sort."""

    kind: ClassVar[str]

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        """JSON values and arrays by field name; `aggregator.learners.kernels.features.from_arrays` is the inverse."""
        description: dict[str, Any] = {"kind": self.kind}
        arrays: dict[str, Floats] = {}
        for field in fields(self):  # type: ignore[arg-type]  # of the subclasses, which are dataclasses
            value = getattr(self, field.name)
            if isinstance(value, Stored):
                description[field.name], inner = value.to_arrays()
                arrays.update({f"{field.name}_{name}": array for name, array in inner.items()})
            elif isinstance(value, np.ndarray):
                arrays[field.name] = value
            else:
                description[field.name] = value
        return description, arrays

    def digest(self) -> str:
        """Equal for equal contents, in hexadecimal."""
        description, arrays = self.to_arrays()
        return digest(json.dumps(description, sort_keys=True), arrays)


class Kernel(Stored):
    """A positive definite function k(x, y) of two rows (the energy kernel: for weights that sum to zero).

    All that it holds is public: nothing in it may come from private rows.
    """

    @abstractmethod
    def support(self, bags: Sequence[Floats]) -> "Support":
        """The state of M bags, each an array (n_i, d) of finite rows, n_i >= 1. Raises `InputError` otherwise."""


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

    def support(self, bags: Sequence[Floats]) -> "ExactSupport":
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
        >>> support.embed(np.array([[0.0]]))
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


class Support(Stored):
    """What a kernel keeps of M bags of rows."""

    sizes: Integers  # (M,) rows of each bag

    @abstractmethod
    def gram(self) -> Floats:
        """Mean of k(x, y) over x in bag i and y in bag j, (M, M), a row with itself included (V-statistics)."""

    @abstractmethod
    def self_terms(self) -> Floats:
        """Mean of k(x, x) over the rows of each bag, (M,)."""

    def unbiased_gram(self) -> Floats:
        """`gram` without the pairs of a row with itself (U-statistics); it may have negative eigenvalues.

        Raises `InputError` for a bag of one row, which has no such pair.
        """
        if self.sizes.min() < 2:
            bag = int(np.argmin(self.sizes))
            raise InputError(f"bag {bag} must have at least two rows to be debiased, got {self.sizes[bag]}")
        gram = self.gram()
        diagonal: Floats = np.diag(gram)
        return np.asarray(gram - np.diag((self.self_terms() - diagonal) / (self.sizes - 1.0)))


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

    @cached_property
    def _squares(self) -> "NegativeSquares":
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


ROWS = 256  # of 512 features: 1 MiB, which stays in a core's own cache
_SAMPLE = 1000  # rows: half a million pairs, whose median is known to about a thousandth of the distribution


def tiles(rows: Floats, what: str, columns: int | None = None) -> Iterator[Floats]:
    """The rows (n, d) in order as C-contiguous float64 tiles (at most 256, d); a memory map is read tile by tile.

    Raises `InputError` (naming them as `what`) unless they are finite numbers on two axes, at least one row and one
    column, and, when `columns` is given, so many columns.

    Examples:
        >>> [tile.shape for tile in tiles(np.ones((600, 3)), "rows")]
        [(256, 3), (256, 3), (88, 3)]
    """
    keep_freed_memory()
    if not hasattr(rows, "shape"):
        rows = np.asarray(rows)
    if rows.ndim != 2 or 0 in rows.shape:
        raise InputError(f"{what} must have two axes (rows, columns), none of them empty; got shape {rows.shape}")
    if rows.dtype.kind not in "fiub":
        raise InputError(f"{what} must be numbers, got {rows.dtype}")
    if columns is not None and rows.shape[1] != columns:
        raise InputError(f"{what} must have {columns} columns, as those before have; got {rows.shape[1]}")
    for start in range(0, len(rows), ROWS):
        tile = np.ascontiguousarray(rows[start : start + ROWS], dtype=np.float64)
        require_finite(tile, what, start)
        yield tile


class NegativeSquares:
    """-scale |x - y|^2 of rows x in tiles to the rows y (N, d) of a fixed set, by one matrix product a tile.

    Expanded about the mean of the set: the error is about 1e-16 of the largest squared distance from that mean.

    Examples:
        >>> squares = NegativeSquares(np.array([[0.0, 0.0], [3.0, 4.0]]), scale=2.0)
        >>> squares.between(squares.left(np.array([[3.0, 0.0]])))
        array([[-18., -32.]])
    """

    def __init__(self, rows: Floats, scale: float) -> None:
        self._centre = rows.mean(axis=0)
        self._scale = scale
        centred, squares = self._centred(rows)
        self._right = np.hstack([centred, np.ones((len(rows), 1)), squares[:, None]])

    def left(self, rows: Floats) -> Floats:
        """Rows (n, d) as (n, d + 2), made ready for `between`. Raises `InputError` where their squares overflow."""
        centred, squares = self._centred(rows)
        return self._scale * np.hstack([2 * centred, -squares[:, None], np.full((len(rows), 1), -1.0)])

    def between(self, left: Floats, start: int = 0, stop: int | None = None) -> Floats:
        """-scale |x - y|^2, at most 0, of ready rows x (n, d + 2) and the set's rows from start to stop."""
        found = left @ self._right[start:stop].T
        return np.minimum(found, 0.0, out=found)

    def _centred(self, rows: Floats) -> tuple[Floats, Floats]:
        with np.errstate(over="ignore", invalid="ignore"):
            centred = rows - self._centre
            squares = np.einsum("nd,nd->n", centred, centred)
            if not np.isfinite(squares * self._scale).all():
                raise InputError("rows must have finite squared distances; rescale them")
        return centred, squares


def some_rows(rows: Floats, most: int, seed: int, purpose: str) -> Floats:
    """At most `most` of public rows (N, d) in their order, drawn with a public seed where there are more.

    Raises `InputError` as `tiles`.
    """
    rows = np.asanyarray(rows)
    if rows.ndim == 2 and len(rows) > most:
        rows = rows[np.sort(generator(seed, purpose).choice(len(rows), most, replace=False))]
    return np.concatenate(list(tiles(rows, "public rows")))


def median_squared_distance(rows: Floats, seed: int = 0) -> float:
    """Median of |x - y|^2 over the pairs of different rows among at most 1,000 of the public rows (N, d), N >= 2.

    Bandwidths of Gaussian kernels are multiples of its inverse: gamma = 2^k / median |x - y|^2. More rows are sampled
    with the public seed: equal rows and seeds give equal medians. Rows that are equal do not count as a pair, so the
    median is positive. Raises `InputError` unless two rows differ and all are finite numbers.

    Examples:
        >>> median_squared_distance(np.array([[0.0], [1.0], [3.0]]))  # of 1, 4 and 9
        4.0
    """
    rows = some_rows(rows, _SAMPLE, seed, "bandwidth")
    largest = np.abs(rows).max()
    if largest > 0:
        rows = rows / largest  # squares of extreme numbers would overflow or vanish
    # imported here because scipy's distances load slowly
    from scipy.spatial.distance import pdist

    squares = pdist(rows, "sqeuclidean")
    squares = squares[squares > 0]
    with np.errstate(over="ignore"):
        median = float(np.median(squares) * largest**2) if len(squares) else 0.0
    if not np.finfo(float).tiny < median < np.inf:
        raise InputError(
            f"a bandwidth needs two different public rows at a distance that can be squared, got {len(rows)} rows with "
            f"median {median}; rescale them or raise data.auxiliary"
        )
    return median
