"""The steps that a public feature map applies to rows, each a plain function of arrays.

Every step treats each row alone, with the same floating-point operations however many rows come together. A party's
features therefore do not depend on which other parties share its batch.
"""

import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import ClassVar

import numpy as np

from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.numerics.rows import numbers, require_finite

DEGREES = (2, 3)
DEGREE = f"the degree {' or '.join(map(str, DEGREES))}"  # that a polynomial needs
MOST_MONOMIALS = 20_000


class Step(ABC):
    """What a feature map is made of. The fields of a step are arrays or plain numbers.

    Raises `InputError` for fields that do not fit each other.
    """

    kind: ClassVar[str]

    def width(self, columns: int) -> int:
        """Columns after the step, given those before. Raises `InputError` when the step does not fit them."""
        return columns

    @abstractmethod
    def apply(self, rows: np.ndarray) -> np.ndarray:
        """Rows (n, columns) to rows (n, width), both C-contiguous float64."""

    def _require(self, holds: bool | np.bool, expected: str) -> None:
        if not holds:
            raise InputError(
                f"the {self.kind} step of a feature map needs {expected}; fit the map again or fetch it again"
            )


@dataclass(frozen=True, eq=False)
class OneHot(Step):
    """Text columns become one indicator per known code; an unknown code becomes zeros.

    The result has the other columns, in order, followed for the i-th of `columns` (c,) by the indicators of
    codes[starts[i]:starts[i + 1]], which are sorted; `starts` has shape (c + 1,).

    Examples:
        >>> OneHot(np.array([0]), np.array([3.0, 7.0]), np.array([0, 2])).apply(np.array([[7.0, 0.5], [4.0, 0.6]]))
        array([[0.5, 0. , 1. ],
               [0.6, 0. , 0. ]])
    """

    kind: ClassVar[str] = "one_hot"
    columns: np.ndarray
    codes: np.ndarray
    starts: np.ndarray

    def __post_init__(self) -> None:
        self._require(self.columns.ndim == self.codes.ndim == self.starts.ndim == 1, "arrays of one axis")
        self._require(self.columns.dtype.kind in "iu" and self.starts.dtype.kind in "iu", "integer indices")
        self._require(np.isfinite(self.codes).all(), "finite codes")
        self._require(len(set(self.columns.tolist())) == len(self.columns) > 0, "distinct columns")
        bounds = self.starts.tolist()
        self._require(
            len(bounds) == len(self.columns) + 1
            and bounds == sorted(bounds)
            and (bounds[0], bounds[-1]) == (0, len(self.codes))
            and all(np.all(np.diff(self._vocabulary(i)) > 0) for i in range(len(self.columns))),
            "sorted codes per column",
        )

    def _vocabulary(self, i: int) -> np.ndarray:
        return self.codes[self.starts[i] : self.starts[i + 1]]

    def width(self, columns: int) -> int:
        self._require(self.columns.min() >= 0 and self.columns.max() < columns, f"columns below {columns}")
        return columns - len(self.columns) + len(self.codes)

    def apply(self, rows: np.ndarray) -> np.ndarray:
        numeric = np.delete(rows, self.columns, axis=1)
        out = np.zeros((len(rows), self.width(rows.shape[1])))
        out[:, : numeric.shape[1]] = numeric
        for i, column in enumerate(self.columns):
            vocabulary = self._vocabulary(i)
            if len(vocabulary) == 0:
                continue
            position = np.minimum(np.searchsorted(vocabulary, rows[:, column]), len(vocabulary) - 1)
            known = np.flatnonzero(vocabulary[position] == rows[:, column])
            out[known, numeric.shape[1] + self.starts[i] + position[known]] = 1.0
        return out


@dataclass(frozen=True, eq=False)
class Affine(Step):
    """(x - offset) * factor when `factor` is (d,), or (x - offset) @ factor when it is (d, D).

    Examples:
        >>> Affine(np.array([1.0, 2.0]), np.array([10.0, 0.5])).apply(np.array([[2.0, 4.0]]))
        array([[10.,  1.]])
    """

    kind: ClassVar[str] = "affine"
    offset: np.ndarray
    factor: np.ndarray

    def __post_init__(self) -> None:
        for name in ("offset", "factor"):
            # Column order makes a row's product the same whatever way the array came here.
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64, order="F"))
        offset, factor = self.offset, self.factor
        self._require(offset.ndim == 1 and factor.ndim in (1, 2), "offset (d,), factor (d,) or (d, D)")
        self._require(len(offset) == len(factor) and factor.size > 0, "offset and factor of equal length")
        self._require(np.isfinite(offset).all() and np.isfinite(factor).all(), "finite numbers")

    def width(self, columns: int) -> int:
        self._require(len(self.offset) == columns, f"{columns} columns")
        return int(self.factor.shape[-1])

    def apply(self, rows: np.ndarray) -> np.ndarray:
        centred = rows - self.offset
        if self.factor.ndim == 1:
            return np.asarray(centred * self.factor)
        # One vector-matrix product per row: the kernel of one big product, and with it the rounding, would
        # change with the number of rows.
        return np.asarray(np.matmul(centred[:, None, :], self.factor)[:, 0, :])


@dataclass(frozen=True, eq=False)
class Append(Step):
    """A constant column at the end: a regularised intercept."""

    kind: ClassVar[str] = "append"
    value: float

    def __post_init__(self) -> None:
        self._require(np.isfinite(self.value), "a finite value")

    def width(self, columns: int) -> int:
        return columns + 1

    def apply(self, rows: np.ndarray) -> np.ndarray:
        return np.hstack([rows, np.full((len(rows), 1), self.value)])


@dataclass(frozen=True, eq=False)
class UnitNorm(Step):
    """x / |x|_2; zero rows stay zero.

    Examples:
        >>> UnitNorm().apply(np.array([[3.0, 4.0], [0.0, 0.0]]))
        array([[0.6, 0.8],
               [0. , 0. ]])
    """

    kind: ClassVar[str] = "unit_norm"

    def apply(self, rows: np.ndarray) -> np.ndarray:
        # Divided by the largest entry first: squares of extreme numbers would overflow or vanish.
        largest = np.abs(rows).max(axis=1, keepdims=True)
        scaled = rows / np.where(largest > 0, largest, 1.0)
        norms = np.linalg.norm(scaled, axis=1, keepdims=True)
        return scaled / np.where(norms > 0, norms, 1.0)


@dataclass(frozen=True, eq=False)
class ClipNorm(Step):
    """x / largest, then divided by its own Euclidean norm where that is above 1.

    Examples:
        >>> ClipNorm(5.0).apply(np.array([[3.0, 0.0], [30.0, 40.0]]))
        array([[0.6, 0. ],
               [0.6, 0.8]])
    """

    kind: ClassVar[str] = "clip_norm"
    largest: float

    def __post_init__(self) -> None:
        self._require(np.isfinite(self.largest) and self.largest > 0, "a positive finite norm")

    def apply(self, rows: np.ndarray) -> np.ndarray:
        scaled = rows / self.largest
        outside = np.linalg.norm(scaled, axis=1) > 1.0
        scaled[outside] = UnitNorm().apply(scaled[outside])
        return scaled


@dataclass(frozen=True, eq=False)
class SignedLog(Step):
    """sign(x) ln(1 + |x|/s): counts and amounts that span magnitudes, on a scale where a few do not outweigh the rest.

    `scales` s (d,) are one for each column; a column of scale 0 stays as it is. Of shape (1,) it is for all columns.

    Examples:
        >>> SignedLog().apply(np.array([[-1.0, 0.0, 999.0]])).round(4)
        array([[-0.6931,  0.    ,  6.9078]])
        >>> SignedLog(np.array([0.0, 1.0, 100.0])).apply(np.array([[-1.0, 0.0, 999.0]])).round(4)
        array([[-1.    ,  0.    ,  2.3969]])
    """

    kind: ClassVar[str] = "signed_log"
    scales: np.ndarray = field(default_factory=lambda: np.ones(1))

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", np.asarray(self.scales, dtype=np.float64))
        self._require(self.scales.ndim == 1 and self.scales.size > 0, "scales (d,)")
        self._require(np.isfinite(self.scales).all() and (self.scales >= 0).all(), "finite scales from 0")

    def width(self, columns: int) -> int:
        self._require(len(self.scales) in (1, columns), f"{columns} columns")
        return columns

    def apply(self, rows: np.ndarray) -> np.ndarray:
        scales = np.broadcast_to(self.scales, rows.shape[1:])
        chosen = np.flatnonzero(scales)
        # Taken together first: logarithms of scattered numbers are rounded in another way.
        values = np.take(rows, chosen, axis=1)
        out = rows.copy()
        out[:, chosen] = np.copysign(np.log1p(np.abs(values) / scales[chosen]), values)
        return out


@dataclass(frozen=True, eq=False)
class Impute(Step):
    """A missing cell (NaN) of column j becomes fill_j, and some columns get an indicator of missing cells at the end.

    `fill` (d,) are finite numbers; the columns `flags` (f,), which differ, get a 1 where the cell is missing, else 0.

    Examples:
        >>> Impute(np.array([5.0, 7.0]), np.array([1])).apply(np.array([[1.0, np.nan], [np.nan, 2.0]]))
        array([[1., 7., 1.],
               [5., 2., 0.]])
    """

    kind: ClassVar[str] = "impute"
    fill: np.ndarray
    flags: np.ndarray

    def __post_init__(self) -> None:
        self._require(self.fill.ndim == self.flags.ndim == 1, "arrays of one axis")
        self._require(self.flags.dtype.kind in "iu" or self.flags.size == 0, "integer indices")
        object.__setattr__(self, "fill", np.asarray(self.fill, dtype=np.float64))
        object.__setattr__(self, "flags", np.asarray(self.flags, dtype=np.int64))
        self._require(np.isfinite(self.fill).all(), "finite numbers")
        self._require(len(set(self.flags.tolist())) == len(self.flags), "distinct columns")

    def width(self, columns: int) -> int:
        known = self.flags.min(initial=0) >= 0 and self.flags.max(initial=-1) < columns
        self._require(len(self.fill) == columns and known, f"{columns} columns")
        return columns + len(self.flags)

    def apply(self, rows: np.ndarray) -> np.ndarray:
        missing = np.isnan(rows)
        return np.hstack([np.where(missing, self.fill, rows), missing[:, self.flags]])


@dataclass(frozen=True, eq=False)
class Polynomial(Step):
    """All monomials of one `degree`, 2 or 3: explicit features of the kernel (x'z)^degree.

    The product of columns i <= j (<= k), tuples in lexicographic order, is multiplied by the square root of the number
    of orders in which these columns can be multiplied. Then phi(x)'phi(z) = (x'z)^degree, so |phi(x)| = |x|^degree, and
    rows of norm 1 keep it up to rounding.

    Examples:
        >>> phi = Polynomial(2).apply(np.array([[1.0, 2.0], [3.0, 1.0]]))
        >>> float(phi[0] @ phi[1])  # (1 * 3 + 2 * 1)^2
        25.0
    """

    kind: ClassVar[str] = "polynomial"
    degree: int

    def __post_init__(self) -> None:
        self._require(self.degree in DEGREES, DEGREE)
        object.__setattr__(self, "degree", int(self.degree))

    def width(self, columns: int) -> int:
        monomials = math.comb(columns + self.degree - 1, self.degree)
        if monomials > MOST_MONOMIALS:
            raise InputError(
                f"features: polynomial makes {monomials} features of degree {self.degree} from {columns} columns, at "
                f"most {MOST_MONOMIALS} are allowed; reduce the columns first, as with pca, or the degree"
            )
        return monomials

    def apply(self, rows: np.ndarray) -> np.ndarray:
        self.width(rows.shape[1])
        products = rows
        for degree in range(2, self.degree + 1):
            products = _times_later(rows, products, degree)
        products *= _roots_of_orders(rows.shape[1], self.degree)
        return products


def _times_later(rows: np.ndarray, products: np.ndarray, degree: int) -> np.ndarray:
    """Monomials of `degree` from those of one degree less: column i times all that begin with column i or later."""
    count, columns = rows.shape
    out = np.empty((count, math.comb(columns + degree - 1, degree)))
    start = 0
    for i in range(columns):
        later = math.comb(columns - i + degree - 2, degree - 1)
        np.multiply(rows[:, i : i + 1], products[:, -later:], out=out[:, start : start + later])
        start += later
    return out


@lru_cache(maxsize=4)
def _roots_of_orders(columns: int, degree: int) -> np.ndarray:
    """sqrt(degree! / (m1! m2! ...)) per monomial, m how often it has each column."""
    tuples = combinations_with_replacement(range(columns), degree)
    repeats = [math.prod(map(math.factorial, Counter(each).values())) for each in tuples]
    return np.sqrt(math.factorial(degree) / np.array(repeats))


@dataclass(frozen=True, eq=False)
class Fourier(Step):
    """[cos(x'F), sin(x'F)] / sqrt(D/2) for frequencies F (d, D/2): D features, each row of norm 1 up to rounding.

    Examples:
        >>> phi = Fourier.draw(columns=2, gamma=0.5, features=10_000, seed=0).apply(np.array([[0.0, 0.0], [1.0, 1.0]]))
        >>> round(float(phi[0] @ phi[1]), 2)  # about exp(-1)
        0.37
    """

    kind: ClassVar[str] = "fourier"
    frequencies: np.ndarray

    def __post_init__(self) -> None:
        # One memory order: see Affine.
        object.__setattr__(self, "frequencies", np.ascontiguousarray(self.frequencies, dtype=np.float64))
        self._require(self.frequencies.ndim == 2 and self.frequencies.size > 0, "frequencies (d, D/2)")
        self._require(np.isfinite(self.frequencies).all(), "finite numbers")

    @classmethod
    def draw(cls, columns: int, gamma: float, features: int, seed: int) -> "Fourier":
        """D = `features` random features of exp(-gamma |x - y|^2): frequencies N(0, 2 gamma I) from a public seed.

        One seed gives the same draws up to scale for every gamma. Raises `InputError` unless gamma is positive and
        finite, D is even, and there are a seed and columns.
        """
        if not 0 < gamma < np.inf:
            raise InputError(f"gamma must be positive and finite, got {gamma}")
        if features < 2 or features % 2:
            raise InputError(f"features must be an even number from 2, a cosine and a sine each, got {features}")
        if columns < 1 or seed is None:
            raise InputError(f"random features need columns and a public seed, got {columns} columns, seed {seed}")
        drawn = generator(seed, "fourier frequencies").normal(size=(features // 2, columns))
        return cls(np.sqrt(2 * gamma) * drawn.T)

    def width(self, columns: int) -> int:
        self._require(len(self.frequencies) == columns, f"{columns} columns")
        return 2 * int(self.frequencies.shape[1])

    def apply(self, rows: np.ndarray) -> np.ndarray:
        return np.hstack(waves(np.matmul(rows[:, None, :], self.frequencies)[:, 0, :]))


def waves(phases: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """cos z / sqrt(K) and sin z / sqrt(K) of phases z (n, K), which are overwritten.

    By t = tan(z/2), which costs a tenth of the two: cos z = 2/(1 + t^2) - 1 and sin z = 2t/(1 + t^2). Their squares add
    up to 1 whatever the error of t, and no t is so large that its square overflows. Each number errs by less than
    1e-15 / sqrt(K) and depends on its phase alone.
    """
    scale = 1.0 / np.sqrt(phases.shape[1])
    phases *= 0.5
    tangents = np.tan(phases, out=phases)
    cosines = np.multiply(tangents, tangents)
    cosines += 1.0
    np.divide(2 * scale, cosines, out=cosines)
    sines = np.multiply(tangents, cosines, out=tangents)
    cosines -= scale
    return cosines, sines


def finite_rows(rows: np.ndarray, what: str, columns: int | None = None, *, missing: bool = False) -> np.ndarray:
    """`rows` as C-contiguous float64 of shape (n, d).

    Raises `InputError` (naming them as `what`) unless they are numbers, two-dimensional, finite or, if cells may be
    `missing`, NaN and, when `columns` is given, of that width.
    """
    rows = np.ascontiguousarray(numbers(rows, what))
    if rows.ndim != 2:
        raise InputError(f"{what} must have two axes (rows, columns), got shape {rows.shape}")
    if columns is not None and rows.shape[1] != columns:
        raise InputError(f"{what} must have {columns} columns, as the feature map has; got {rows.shape[1]}")
    require_finite(rows, what, missing=missing)
    return rows
