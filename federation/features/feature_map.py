"""Public feature maps: fitted on public rows only, applied by every party to its own rows.

A map is a list of steps in plain arrays. It travels inside a question and inside a released model, so it says
nothing about private data, and anybody can apply it with numpy alone (`FeatureMap.to_arrays` documents how).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from federation.contract.errors import InputError, nearest_name
from federation.contract.limits import MOST_COLUMNS, MOST_FEATURES, MOST_STEPS, whole
from federation.features.steps import (
    DEGREE,
    DEGREES,
    Affine,
    Append,
    ClipNorm,
    Fourier,
    OneHot,
    Polynomial,
    SignedLog,
    Step,
    UnitNorm,
    finite_rows,
)
from federation.numerics.distances import median_squared_distance
from federation.numerics.memory import keep_freed_memory

# Columns whose largest range is beyond this many lower-quartile ranges do not share a unit. Data sets in one
# unit (pixels, HAR, iris) stay below 5, those in many (KDD-99, cardiotocography, wine) are above 75.
MIXED_UNITS_RATIO = 30.0
# Directions with less than this share of the largest variance hold rounding errors only.
_NEGLIGIBLE_VARIANCE = 1e-10
# A text column with more values is a key or free text, not a category.
_LARGEST_VOCABULARY = 1000
# Public, as everything in a map; any number does.
_FOURIER_SEED = 0
# Rows transformed at a time, so that what lies between two steps stays in cache.
_TILE = 1024

_KNOWN_STEPS = (OneHot, Affine, Append, UnitNorm, ClipNorm, SignedLog, Fourier, Polynomial)
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
    """Raw rows (n, columns) to features (n, dimension); built by `fit` or `from_arrays`.

    Raises `InputError` when the steps do not fit each other.

    Examples:
        >>> rows = np.array([[1.0, 10.0], [3.0, 30.0]])
        >>> features = fit(["standardise", "constant", "unit_norm"], rows)
        >>> features
        FeatureMap(2 -> 3: affine, append, unit_norm)
        >>> features.transform(rows).round(4)
        array([[-0.5774, -0.5774,  0.5774],
               [ 0.5774,  0.5774,  0.5774]])
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
    def widths(self) -> list[int]:
        """Numbers of columns before, between and after the steps."""
        return list(accumulate(self.steps, lambda columns, step: step.width(columns), initial=self.columns))

    def apply(self, rows: np.ndarray) -> np.ndarray:
        """All steps in turn on rows (n, columns), whatever comes out; `transform` refuses what is not finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            for step in self.steps:
                rows = step.apply(rows)
        return rows

    def transform(self, rows: np.ndarray) -> np.ndarray:
        """Features (n, D), float64 and C-contiguous, of raw rows (n, columns); n may be 0.

        Each row's features are the same bits whatever rows come with it. Raises `InputError` for another
        number of columns, for rows that are not finite, and for finite rows so large that a feature is not.
        """
        rows = finite_rows(rows, "rows", self.columns)
        out = np.empty((len(rows), self.dimension))
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
        - affine: (x - offset) * factor when factor has one axis, (x - offset) @ factor when it has two.
        - append: append one column of `value`.
        - unit_norm: divide each row by its Euclidean norm; zero rows stay zero.
        - clip_norm: divide by `largest`; then divide each row whose Euclidean norm is above 1 by that norm.
        - signed_log: sign(x) ln(1 + |x|).
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
    def from_arrays(cls, description: str, arrays: Mapping[str, np.ndarray]) -> FeatureMap:
        """Inverse of `to_arrays`; other arrays may be present. Raises `InputError` for anything else."""
        try:
            record = json.loads(description)
            whole("steps of a feature map", len(record["steps"]), 0, MOST_STEPS)
            steps = []
            for entry in record["steps"]:
                kind = _STEPS[entry["kind"]]
                steps.append(kind(**{field.name: _read(field, entry[field.name], arrays) for field in fields(kind)}))
            if type(record["columns"]) is not int:
                raise TypeError(f"columns must be a whole number, got {record['columns']!r}")
            return cls(record["columns"], tuple(steps))
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError(f"the description of a feature map cannot be read: {error!r}") from error


def _read(field: Field[Any], value: Any, arrays: Mapping[str, np.ndarray]) -> np.ndarray | float:
    """A step's field, of the type that the step declares: an array that `value` names, or `value` itself.

    Raises `TypeError` for anything else, and `KeyError` and `OverflowError` for what there is not.
    """
    if field.type == "np.ndarray":
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
        >>> with_fourier(fit([], np.eye(3)), gamma=0.5, features=8, seed=0)
        FeatureMap(3 -> 8: fourier)
    """
    step = Fourier.draw(feature_map.dimension, gamma, features, seed)
    return FeatureMap(feature_map.columns, (*feature_map.steps, step))


def with_polynomial(feature_map: FeatureMap, degree: int) -> FeatureMap:
    """The map followed by all monomials of `degree`, 2 or 3: explicit features of the kernel (x'z)^degree.

    Raises `InputError` for another degree and for more than 20,000 features.

    Examples:
        >>> with_polynomial(fit([], np.eye(2)), 2).transform(np.array([[2.0, 3.0]]))  # x^2, sqrt(2) x z, z^2
        array([[4.        , 8.48528137, 9.        ]])
    """
    return FeatureMap(feature_map.columns, (*feature_map.steps, Polynomial(degree)))


def completed(feature_map: FeatureMap) -> FeatureMap:
    """The map with "constant" and "unit_norm" after it, unless its rows have norm at most 1 (up to rounding) already.

    They do behind unit_norm, max_norm and fourier, and behind a polynomial of such rows: |phi(x)| = |x|^degree. A map
    that appends a constant gets no second one.

    Examples:
        >>> completed(fit(["standardise"], np.eye(2))), completed(fit(["max_norm"], np.eye(2)))
        (FeatureMap(2 -> 3: affine, append, unit_norm), FeatureMap(2 -> 2: clip_norm))
    """
    steps = list(feature_map.steps)
    while steps and isinstance(steps[-1], Polynomial):
        steps.pop()
    if steps and isinstance(steps[-1], UnitNorm | ClipNorm | Fourier):
        return feature_map
    constant = () if any(isinstance(step, Append) for step in feature_map.steps) else (Append(1.0),)
    return FeatureMap(feature_map.columns, (*feature_map.steps, *constant, UnitNorm()))


def fit(stages: Sequence[str | Mapping[str, int]], rows: np.ndarray, text_columns: Sequence[int] = ()) -> FeatureMap:
    """The map that `stages` describe, fitted on public rows (N, d), which must be no party's private rows.

    Text columns (cells coded by `text_code`) first become indicators of the texts seen in `rows`. Then:

    - "scale": "standardise", but only when the columns do not share units: when the largest range of a column
      is more than 30 times the lower quartile of the ranges of the non-constant columns.
    - "standardise": each column minus its mean, over its standard deviation; constant ones are only centred.
    - {"pca": k}: centred, projected to the k directions of largest variance.
    - {"whiten": k}: the same, each component over its standard deviation: covariance Z'Z/N = I on `rows`.
      Both keep fewer when the rank is smaller, and turn each direction so that its largest entry is positive.
    - "signed_log": sign(x) ln(1 + |x|).
    - "constant": a column of ones. "unit_norm": rows of norm 1 (zero rows stay zero).
    - "max_norm": divided by the largest norm among `rows`, then clipped to norm 1.
    - {"fourier": D}: D random features (an even number) of the kernel exp(-gamma |x - y|^2) with gamma = 1 / median
      |x - y|^2 over public rows, drawn with a public seed; rows of norm 1.
    - {"polynomial": p}: all monomials of degree p, 2 or 3, weighted such that phi(x)'phi(z) = (x'z)^p; nothing is
      fitted, at most 20,000 features.

    Raises `InputError` for unknown stages, no rows, rows that are not finite, numbers whose squares overflow,
    and rows that cannot be fitted.

    Examples:
        >>> rows = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]])
        >>> fit([{"whiten": 1}], rows).transform(rows).round(4).ravel()
        array([-0.5537, -0.8501,  1.4038])
        >>> colours = np.array([[text_code(name)] for name in ("red", "blue", "red")])
        >>> fit([], colours, text_columns=[0]).transform(colours)
        array([[0., 1.],
               [1., 0.],
               [0., 1.]])
    """
    rows = finite_rows(rows, "public rows")
    if rows.size == 0:
        raise InputError(f"public rows must not be empty, got shape {rows.shape}; raise data.auxiliary")
    _require_finite_squares(rows)
    columns, steps = rows.shape[1], []
    fitters = [_stage(stage) for stage in stages]
    if len(text_columns):
        fitters.insert(0, partial(_one_hot, text_columns=text_columns))
    with np.errstate(over="ignore", invalid="ignore"):
        for fitter in fitters:
            step = fitter(rows)
            if step is not None:
                steps.append(step)
                rows = finite_rows(step.apply(rows), "features of the public rows")
    return FeatureMap(columns, tuple(steps))


def _require_finite_squares(rows: np.ndarray) -> None:
    """Refuse numbers so large that a deviation, a covariance or a norm would be infinite, and its column lost."""
    if not np.isfinite(np.einsum("nd,nd->", rows, rows)):
        largest = np.abs(rows).max(axis=0)
        column = int(np.argmax(largest))
        raise InputError(
            f"column {column} (counted from 0) of the public rows holds numbers up to {largest[column]:.3g}, too large "
            "to compute with; rescale or remove it"
        )


def mixed_units(rows: np.ndarray) -> bool:
    """Whether the columns of public rows (N, d) differ so much in range that they cannot share a unit.

    Examples:
        >>> mixed_units(np.array([[0.0, 0.0], [1.0, 2.0]])), mixed_units(np.array([[0.0, 0.0], [1.0, 1000.0]]))
        (False, True)
    """
    ranges = np.ptp(rows, axis=0)
    ranges = ranges[ranges > 0]
    return len(ranges) > 0 and bool(ranges.max() > MIXED_UNITS_RATIO * np.quantile(ranges, 0.25, method="lower"))


def _one_hot(rows: np.ndarray, text_columns: Sequence[int]) -> OneHot:
    columns = np.asarray(text_columns, dtype=np.int64)
    if columns.min() < 0 or columns.max() >= rows.shape[1]:
        raise InputError(f"text columns must lie in 0..{rows.shape[1] - 1}, got {list(text_columns)}")
    vocabularies = [np.unique(rows[:, column]) for column in columns]
    for column, vocabulary in zip(columns, vocabularies, strict=True):
        if len(vocabulary) > _LARGEST_VOCABULARY:
            raise InputError(
                f"text column {column} (counted from 0) has {len(vocabulary)} different texts in the public "
                f"rows, at most {_LARGEST_VOCABULARY} are allowed; remove the column or make it a number"
            )
    starts = np.cumsum([0, *(len(v) for v in vocabularies)]).astype(np.int64)
    return OneHot(columns, np.concatenate(vocabularies), starts)


def _standardise(rows: np.ndarray) -> Affine:
    deviation = np.where(np.ptp(rows, axis=0) > 0, rows.std(axis=0), 1.0)
    # Below the smallest normal number a deviation is as good as constant, and its inverse overflows.
    return Affine(rows.mean(axis=0), 1.0 / np.where(deviation > np.finfo(float).tiny, deviation, 1.0))


def _max_norm(rows: np.ndarray) -> ClipNorm:
    largest = float(np.linalg.norm(rows, axis=1).max())
    if largest == 0:
        raise InputError("features: max_norm needs a public row that is not zero; leave the stage out")
    return ClipNorm(largest)


def _multiple(unit: int, value: Any) -> bool:
    return isinstance(value, int) and value >= unit and value % unit == 0


def _fourier(rows: np.ndarray, features: int) -> Fourier:
    return Fourier.draw(rows.shape[1], 1.0 / median_squared_distance(rows), features, _FOURIER_SEED)


def _project(rows: np.ndarray, dimensions: int, whiten: bool) -> Affine:
    """Principal directions from the covariance X'X/N, or from the Gram matrix XX'/N when that is smaller."""
    mean = rows.mean(axis=0)
    centred = rows - mean
    count, columns = rows.shape
    if columns <= count:
        variances, directions = np.linalg.eigh(centred.T @ centred / count)
    else:
        variances, left = np.linalg.eigh(centred @ centred.T / count)
        directions = centred.T @ left
    rank = int(np.sum(variances > _NEGLIGIBLE_VARIANCE * variances[-1])) if variances[-1] > 0 else 0
    if rank == 0:
        raise InputError(
            f"features: the {count} public rows are all equal, so they have no principal direction; "
            "raise data.auxiliary"
        )
    kept = slice(-1, -1 - min(dimensions, rank), -1)
    variances, directions = variances[kept], directions[:, kept]
    directions = directions / np.linalg.norm(directions, axis=0)
    leading = np.argmax(np.abs(directions), axis=0)
    directions = directions * np.sign(directions[leading, np.arange(len(leading))])
    return Affine(mean, directions / np.sqrt(variances) if whiten else directions)


_Fitter = Callable[[np.ndarray], Step | None]
_SIMPLE: dict[str, _Fitter] = {
    "scale": lambda rows: _standardise(rows) if mixed_units(rows) else None,
    "standardise": _standardise,
    "constant": lambda rows: Append(1.0),
    "signed_log": lambda rows: SignedLog(),
    "unit_norm": lambda rows: UnitNorm(),
    "max_norm": _max_norm,
}
# By name: how to write it, the value that it needs and whether one is of that kind, and how to fit it.
_SIZED: dict[str, tuple[str, str, Callable[[Any], bool], Callable[[np.ndarray, Any], Step]]] = {
    "pca": ("k", "a whole number of dimensions from 1", partial(_multiple, 1), partial(_project, whiten=False)),
    "whiten": ("k", "a whole number of dimensions from 1", partial(_multiple, 1), partial(_project, whiten=True)),
    "fourier": ("D", "an even number of features from 2", partial(_multiple, 2), _fourier),
    "polynomial": ("p", DEGREE, DEGREES.__contains__, lambda rows, degree: Polynomial(degree)),
}


def _stage(stage: str | Mapping[str, int]) -> _Fitter:
    """The fitting function of one stage. Raises `InputError` naming the allowed stages."""
    name, value = next(iter(stage.items())) if isinstance(stage, Mapping) and len(stage) == 1 else (stage, None)
    if isinstance(name, str) and name in _SIMPLE and value is None:
        return _SIMPLE[name]
    if not isinstance(name, str) or name not in _SIZED:
        sized = [f"{{{name}: {letter}}}" for name, (letter, *_) in _SIZED.items()]
        raise InputError(
            f"features: {stage!r} is not a stage; allowed: {', '.join([*_SIMPLE, *sized])}"
            + nearest_name(str(name), [*_SIMPLE, *_SIZED])
        )
    _, needed, allowed, fitter = _SIZED[name]
    if isinstance(value, bool) or not allowed(value):
        raise InputError(f"features: {name} needs {needed}, got {value!r}")
    return lambda rows: fitter(rows, value)
