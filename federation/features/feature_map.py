"""Public feature maps and norm bounds, which every party applies to its own rows before it responds.

A map is fitted on public rows only. It is a list of steps in plain arrays, and it travels inside a query and inside a
released model. It therefore contains no private data. Anybody can apply it with numpy alone (`FeatureMap.to_arrays`
documents how).

`Ball` is the ball into which the aggregator or each party brings the vectors of parties before they are added.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from itertools import accumulate
from typing import Any

import numpy as np

from federation.contract.errors import InputError, refusing
from federation.contract.query import MOST_COLUMNS, MOST_FEATURES, MOST_STEPS, whole
from federation.contract.validation import required
from federation.features.steps import (
    Affine,
    Append,
    ClipNorm,
    Fourier,
    Impute,
    OneHot,
    Polynomial,
    SignedLog,
    Step,
    UnitNorm,
    finite_rows,
)
from federation.numerics.rows import Floats, keep_freed_memory

# Rows transformed at a time, so that what lies between two steps stays in cache.
_TILE = 1024

_KNOWN_STEPS = (OneHot, Impute, Affine, Append, UnitNorm, ClipNorm, SignedLog, Fourier, Polynomial)
_STEPS: dict[str, type[Any]] = {step.kind: step for step in _KNOWN_STEPS}


def text_code(text: str) -> float:
    """The number that stands for a text cell: the first six bytes of its SHA-256, exact in float64.

    Examples:
        >>> text_code("red")
        195666266627869.0
    """
    return float(int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big"))


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Raw rows (n, columns) to features (n, dimension); built by `aggregator.trial.feature_fitting.fit` or
    `from_arrays`.

    Raises `InputError` when the steps do not fit each other.

    Examples:
        >>> rows = np.array([[1.0, 10.0], [3.0, 30.0]])
        >>> features = FeatureMap(2, (Append(10.0), UnitNorm()))
        >>> features
        FeatureMap(2 -> 3: append, unit_norm)
        >>> features.transform(rows).round(4)
        array([[0.0705, 0.7053, 0.7053],
               [0.0944, 0.9444, 0.3148]])
    """

    columns: int
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        whole("columns of a feature map", self.columns, 1, MOST_COLUMNS)
        for width in self.widths[1:]:  # before anything so wide is made
            whole("features of a map, and columns between its steps,", width, 1, MOST_FEATURES)

    def __repr__(self) -> str:
        return f"FeatureMap({self.columns} -> {self.dimension}: {', '.join(s.kind for s in self.steps)})"

    @property
    def dimension(self) -> int:
        """Number of features D."""
        return self.widths[-1]

    @property
    def imputes(self) -> bool:
        """Whether it takes rows with missing cells, which are NaN."""
        return any(isinstance(step, Impute) for step in self.steps)

    @property
    def widths(self) -> list[int]:
        """Numbers of columns before, between and after the steps."""
        return list(accumulate(self.steps, lambda columns, step: step.width(columns), initial=self.columns))

    def parted(self) -> "tuple[FeatureMap, FeatureMap]":
        """Two maps that are this one when they follow each other: what keeps columns apart, and the rest.

        Maps that differ in how many directions they keep have the first in common.

        Examples:
            >>> FeatureMap(2, (SignedLog(), Affine(np.zeros(2), np.ones((2, 1))), UnitNorm())).parted()
            (FeatureMap(2 -> 2: signed_log), FeatureMap(2 -> 1: affine, unit_norm))
        """
        mixing = (i for i, step in enumerate(self.steps) if not isinstance(step, OneHot | Impute | SignedLog | Affine))
        directions = (i for i, step in enumerate(self.steps) if isinstance(step, Affine) and step.factor.ndim == 2)
        end = min(next(mixing, len(self.steps)), next(directions, len(self.steps)))
        first = FeatureMap(self.columns, self.steps[:end])
        return first, FeatureMap(first.dimension, self.steps[end:])

    def apply(self, rows: np.ndarray) -> np.ndarray:
        """All steps in turn on rows (n, columns), whatever comes out; `transform` refuses what is not finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            for step in self.steps:
                rows = step.apply(rows)
        return rows

    def transform(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Features (n, D), float64 and C-contiguous, of raw rows (n, columns); n may be 0. Written to `out` if given.

        Each row's features are the same bits whatever rows come with it. Raises `InputError` for another
        number of columns, for rows that are not finite (but NaN, a missing cell, where the map `imputes`), and for
        rows so large that a feature is not finite.
        """
        imputes = self.imputes
        named = "rows" if imputes else "rows for a feature map without the stage impute"
        rows = finite_rows(rows, named, self.columns, missing=imputes)
        out = np.empty((len(rows), self.dimension)) if out is None else out
        for start in range(0, len(rows), _TILE):
            out[start : start + _TILE] = self.apply(rows[start : start + _TILE])
        return finite_rows(out, "features")

    def mean(self, rows: np.ndarray) -> np.ndarray:
        """Mean features (D,) of raw rows (n, columns), n >= 1, in memory for 1,024 rows of features.

        Summed in the order of the rows, in tiles: equal rows give equal bits. When every row's features have norm 1,
        replacing one row moves the mean by at most 2/n (and rounding, below 1e-15 n). Raises `InputError` for no rows,
        and as `transform`, which counts rows from the start of their tile of 1,024.

        Examples:
            >>> FeatureMap(2, (UnitNorm(),)).mean(np.array([[3.0, 4.0], [0.0, 2.0]]))
            array([0.3, 0.9])
        """
        if np.ndim(rows) != 2 or len(rows) == 0:
            raise InputError(f"a mean embedding needs rows on two axes, at least one, got shape {np.shape(rows)}")
        keep_freed_memory()
        total = np.zeros(self.dimension)
        for start in range(0, len(rows), _TILE):
            total += self.transform(rows[start : start + _TILE]).sum(axis=0)
        return total / len(rows)

    def to_arrays(self) -> tuple[str, dict[str, np.ndarray]]:
        """The map as JSON text and named arrays; `from_arrays` is the exact inverse.

        The text is {"columns": d, "steps": [{"kind": ..., FIELD: NUMBER OR ARRAY NAME, ...}, ...]}. To apply
        it to rows x (n, d), take the steps in order:

        - one_hot: drop the columns `columns`; then for each i append 1.0 * (old[:, [columns[i]]] == v) with
          v = codes[starts[i]:starts[i + 1]]. A text cell's number is `text_code` of the text.
        - impute: replace each NaN of column j by fill[j]; then append for each j of `flags` a column, 1.0 where there
          was a NaN and 0.0 elsewhere.
        - affine: (x - offset) * factor when factor has one axis, (x - offset) @ factor when it has two.
        - append: append one column of `value`.
        - unit_norm: divide each row by its Euclidean norm; zero rows stay zero.
        - clip_norm: divide by `largest`; then divide each row whose Euclidean norm is above 1 by that norm.
        - signed_log: sign(x) ln(1 + |x| / scales[j]) in every column j whose scale is not 0; a single scale is that of
          all columns, and no scale at all is 1.
        - fourier: [cos z, sin z] / sqrt(K) for z = x @ frequencies, K the number of columns of z.
        - polynomial: for each tuple i <= j (<= k) of `degree` column numbers, tuples in lexicographic order, the
          product of these columns times sqrt(degree! / (m1! m2! ...)), m1, m2, ... how often each column is in it.
        """
        arrays: dict[str, np.ndarray] = {}
        steps = []
        for i, step in enumerate(self.steps):
            values = vars(step)
            named = {name: f"features_{i}_{name}" for name, value in values.items() if isinstance(value, np.ndarray)}
            arrays.update({key: values[name] for name, key in named.items()})
            steps.append({"kind": step.kind, **values, **named})
        return json.dumps({"columns": self.columns, "steps": steps}), arrays

    @classmethod
    def from_arrays(cls, description: str, arrays: Mapping[str, np.ndarray]) -> "FeatureMap":
        """Inverse of `to_arrays`; other arrays may be present. Raises `InputError` for anything else."""
        with refusing("the description of a feature map cannot be read"):
            record = json.loads(description)
            whole("steps of a feature map", len(record["steps"]), 0, MOST_STEPS)
            steps = []
            for entry in record["steps"]:
                kind = _STEPS[entry["kind"]]
                given = [field for field in fields(kind) if field.name in entry or field.default_factory is MISSING]
                steps.append(kind(**{field.name: _read(field, entry[field.name], arrays) for field in given}))
            if type(record["columns"]) is not int:
                raise TypeError(f"columns must be a whole number, got {record['columns']!r}")
            return cls(record["columns"], tuple(steps))


def _read(field: Field[Any], value: Any, arrays: Mapping[str, np.ndarray]) -> np.ndarray | float:
    """A step's field, of the type that the step declares: an array that `value` names, or `value` itself.

    Raises `TypeError` for anything else, and `KeyError` and `OverflowError` for what there is not.
    """
    if field.type is np.ndarray:
        array = arrays[value]
        if array.dtype.kind not in "iuf":
            raise TypeError(f"{field.name} must hold real numbers, got {array.dtype}")
        with np.errstate(over="ignore"):  # numbers beyond double precision become infinite, which no step takes
            return array.astype(np.float64 if array.dtype.kind == "f" else np.int64, copy=False)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{field.name} must be a number, got {value!r}")
    return float(value)


def with_fourier(feature_map: FeatureMap, gamma: float, features: int, seed: int) -> FeatureMap:
    """The map followed by `features` random features of the kernel exp(-gamma |x - y|^2) on what it gives.

    Raises `InputError` as `federation.features.steps.Fourier.draw`.

    Examples:
        >>> with_fourier(FeatureMap(3, ()), gamma=0.5, features=8, seed=0)
        FeatureMap(3 -> 8: fourier)
    """
    step = Fourier.draw(feature_map.dimension, gamma, features, seed)
    return FeatureMap(feature_map.columns, (*feature_map.steps, step))


def with_polynomial(feature_map: FeatureMap, degree: int) -> FeatureMap:
    """The map followed by all monomials of `degree`, 2 or 3: explicit features of the kernel (x'z)^degree.

    Raises `InputError` for another degree and for more than 20,000 features.

    Examples:
        >>> with_polynomial(FeatureMap(2, ()), 2).transform(np.array([[2.0, 3.0]]))  # x^2, sqrt(2) x z, z^2
        array([[4.        , 8.48528137, 9.        ]])
    """
    return FeatureMap(feature_map.columns, (*feature_map.steps, Polynomial(degree)))


def completed(feature_map: FeatureMap) -> FeatureMap:
    """The map with "constant" and "unit_norm" after it, unless its rows have norm at most 1 (up to rounding) already.

    They do behind unit_norm, max_norm and fourier, and behind a polynomial of such rows: |phi(x)| = |x|^degree. A map
    that appends a constant gets no second one.

    Examples:
        >>> completed(FeatureMap(2, ())), completed(FeatureMap(2, (UnitNorm(),)))
        (FeatureMap(2 -> 3: append, unit_norm), FeatureMap(2 -> 2: unit_norm))
    """
    if bounds_norms(feature_map):
        return feature_map
    constant = () if any(isinstance(step, Append) for step in feature_map.steps) else (Append(1.0),)
    return FeatureMap(feature_map.columns, (*feature_map.steps, *constant, UnitNorm()))


def bounds_norms(feature_map: FeatureMap) -> bool:
    """Whether every row behind the map has norm at most 1, up to rounding, by its last steps.

    Examples:
        >>> [bounds_norms(FeatureMap(2, (UnitNorm(), last))) for last in (Polynomial(2), Append(1.0))]
        [True, False]
    """
    steps = list(feature_map.steps)
    while steps and isinstance(steps[-1], Polynomial):
        steps.pop()
    return bool(steps) and isinstance(steps[-1], UnitNorm | ClipNorm | Fourier)


UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True)
class Ball:
    """Vectors of L2 norm at most `norm` > 0; where they are `scaled`, every vector but zero takes that norm.

    Raises `InputError` for a norm that is not positive and finite.

    Examples:
        >>> vectors = np.array([[3.0, 4.0], [0.5, 0.0]])
        >>> Ball(2.0).of(vectors), Ball(2.0, scaled=True).of(vectors)
        (array([[1.2, 1.6],
               [0.5, 0. ]]), array([[1.2, 1.6],
               [2. , 0. ]]))
    """

    norm: float
    scaled: bool = False

    def __post_init__(self) -> None:
        required("norm", self.norm, "be a positive finite number", lambda value: 0 < value < np.inf)

    def units(self, vectors: Floats) -> Floats:
        """Finite vectors (P, D) in units of the norm, each by itself: those beyond it are shortened to it."""
        found: Floats = UnitNorm().apply(vectors)
        if not self.scaled:
            with np.errstate(over="ignore"):  # beyond the range of doubles is beyond the ball
                whole = vectors / self.norm
                inside = np.linalg.norm(whole, axis=1) <= 1
            found[inside] = whole[inside]
        return found

    def of(self, vectors: Floats) -> Floats:
        """As `units`, in the vectors' own units."""
        return self.units(vectors) * self.norm

    def excess(self, dimension: int) -> float:
        """By how much, relative to the norm, double precision may exceed it: (D + 9) u with the product of `of`."""
        return (dimension + 9) * UNIT_ROUNDOFF

    @property
    def told(self) -> str:
        """What is done to every vector, in words."""
        return f"scaled to norm {self.norm:.9g}" if self.scaled else f"shortened to norm {self.norm:.9g} at most"
