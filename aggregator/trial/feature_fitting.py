"""Feature maps fitted on public rows, stage by stage, and the columns that such a map leaves out.

`fit` and `fit_rows` turn the stages of a plan into a feature map. The public rows alone decide everything in the map:

- `indicators` chooses the texts of a text column that become indicators.
- `identifiers` finds the columns of numbers that identify rows, by their names and public rows.
- `remarks` tells the user which columns say nothing: identifiers, useless text columns, and columns with one value.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from aggregator.learners.kernels.exact import median_squared_distance
from aggregator.trial.plan import PublicTable
from federation.contract.errors import InputError, nearest_name
from federation.contract.randomness import digest
from federation.features.feature_map import FeatureMap
from federation.features.steps import (
    DEGREE,
    DEGREES,
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
from federation.numerics.rows import Floats

# Columns whose largest range is beyond this many lower-quartile ranges do not share a unit. Data sets in one
# unit (pixels, HAR, iris) stay below 5, those in many (KDD-99, cardiotocography, wine) are above 75.
MIXED_UNITS_RATIO = 30.0
# Columns in mixed units that are more skewed than an exponential law are brought to a logarithmic scale.
_LARGEST_SKEWNESS = 2.0
# A column gets an indicator of its missing cells from this share of the public ones.
_FLAGGED_SHARE = 0.01
# Directions with less than this share of the largest variance hold rounding errors only.
_NEGLIGIBLE_VARIANCE = 1e-10
# Public, as everything in a map; any number does.
_FOURIER_SEED = _PROJECTION_SEED = 0


def fit(
    stages: Sequence[str | Mapping[str, Any]],
    rows: np.ndarray,
    text_columns: Sequence[int] = (),
    left_out: Sequence[int] = (),
) -> FeatureMap:
    """The map of `fit_rows`.

    Examples:
        >>> rows = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]])
        >>> fit([{"whiten": 1}], rows).transform(rows).round(4).ravel()
        array([-0.5537, -0.8501,  1.4038])
    """
    return fit_rows(stages, rows, text_columns, left_out)[0]


def fit_rows(
    stages: Sequence[str | Mapping[str, Any]],
    rows: np.ndarray,
    text_columns: Sequence[int] = (),
    left_out: Sequence[int] = (),
) -> tuple[FeatureMap, np.ndarray]:
    """The map that `stages` describe, fitted on public rows (N, d), which must be no party's private rows.

    And these rows (N, D) behind it, float64.

    Text columns (cells coded by `text_code`) first become indicators of the texts seen in `rows`; those whose texts are
    there all the same or nearly all different are left out (`aggregator.trial.feature_fitting`), and so are the columns
    `left_out`. Then:

    - "impute", which must be the first: a missing cell, NaN, becomes the median of the column's public values, 0 where
      it has none; and a column 1 % or more of whose public cells are missing gets an indicator of missing cells, which
      columns that are missing in the same public rows share. {"impute": {"flags": False}} makes no indicators.
    - "scale": nothing, unless the columns of the public rows as they came do not share units: the largest range of a
      column is more than 30 times the lower quartile of the ranges of the non-constant columns. If so, a column x of
      more than two values whose skewness is above 2 in size, and smaller behind it, becomes sign(x) ln(1 + |x|/s), s
      the median of |x| where x is not 0; then "standardise".
    - "standardise": each column minus its mean, over its standard deviation; constant ones become 0 in all rows, since
      nobody knows their scale, and the indicators of an "impute" before it are only centred: the directions of few
      dimensions are those of values.
    - {"pca": k}: centred, projected to the k directions of largest variance.
    - {"whiten": k}: the same, each component over its standard deviation: covariance Z'Z/N = I on `rows`.
      Both keep fewer when the rank is smaller, and turn each direction so that its largest entry is positive.
    - {"project": k}: a random projection to k of the columns, by normal numbers of variance 1/k; nothing is fitted.
      {"project": {"dimensions": k, "seed": s}} draws them with another public seed than 0.
    - "signed_log": sign(x) ln(1 + |x|).
    - "constant": a column of ones. "unit_norm": rows of norm 1 (zero rows stay zero).
    - "max_norm": divided by the largest norm among `rows`, then clipped to norm 1.
    - {"fourier": D}: D random features (an even number) of the kernel exp(-gamma |x - y|^2) with gamma = 1 / median
      |x - y|^2 over public rows, drawn with a public seed; rows of norm 1.
    - {"polynomial": p}: all monomials of degree p, 2 or 3, weighted such that phi(x)'phi(z) = (x'z)^p; nothing is
      fitted, at most 20,000 features.

    Raises `InputError` for unknown stages, no rows, rows that are not finite (with "impute" they may be NaN, but not
    all), numbers whose squares overflow, and rows that cannot be fitted.

    Examples:
        >>> from federation.features.feature_map import text_code
        >>> colours = np.array([[text_code(name)] for name in ("red", "blue", "red")])
        >>> fit_rows([], colours, text_columns=[0])[1]
        array([[0., 1.],
               [1., 0.],
               [0., 1.]])
    """
    missing = imputes(stages)
    named = "public rows" if missing else "public rows without the stage impute"
    rows = finite_rows(rows, named, missing=missing)
    if rows.size == 0:
        raise InputError(f"public rows must not be empty, got shape {rows.shape}; raise data.auxiliary")
    if imputes(stages[1:]):
        raise InputError(f"features: impute must be the first stage, got {list(stages)}")
    _require_finite_squares(rows)
    plain = [stage for stage in takewhile(lambda stage: isinstance(stage, str), stages) if isinstance(stage, str)]
    held = digest(json.dumps([list(map(int, text_columns)), list(map(int, left_out))]), {"rows": rows})
    keys = [(held, *plain[:count]) for count in range(len(plain) + 1)]
    with np.errstate(over="ignore", invalid="ignore"):
        if keys[-1] not in _latest:
            begun = max((count for count, key in enumerate(keys) if key in _latest), default=None)
            fitted = _begin(rows, text_columns, left_out) if begun is None else _latest[keys[begun]]
            while len(_latest) >= _MOST_KEPT:
                _latest.pop(next(iter(_latest)))
            _latest[keys[-1]] = _further(fitted, plain[begun or 0 :])
        found = _further(_latest[keys[-1]], stages[len(plain) :])
        return FeatureMap(rows.shape[1], found.steps), found.rows


class _Fitted(NamedTuple):
    """Steps fitted so far, the public rows behind them, and what later stages must know of earlier ones."""

    steps: tuple[Step, ...]
    rows: np.ndarray
    mixed: bool
    flags: int


# By public rows and the stages without a size at the beginning, which the maps of a world have in common: those of its
# releases, and those of its baselines.
_latest: dict[tuple[str, ...], _Fitted] = {}
_MOST_KEPT = 3


def _begin(rows: np.ndarray, text_columns: Sequence[int], left_out: Sequence[int]) -> _Fitted:
    steps: tuple[Step, ...] = ()
    if len(text_columns) or len(left_out):
        steps = (indicators(rows, text_columns, left_out),)
        rows = steps[0].apply(rows)
    return _Fitted(steps, rows, mixed_units(rows), 0)  # before any stage: a logarithm would hide the units


def _further(fitted: _Fitted, stages: Sequence[str | Mapping[str, Any]]) -> _Fitted:
    for stage in stages:
        for fitter in _fitters(stage, fitted.mixed, fitted.flags):
            step = fitter(fitted.rows)
            if step is not None:
                rows = finite_rows(step.apply(fitted.rows), "features of the public rows")
                fitted = _Fitted((*fitted.steps, step), rows, fitted.mixed, _flags_behind(step, fitted.flags))
    return fitted


def imputes(stages: Sequence[str | Mapping[str, Any]]) -> bool:
    """Whether a map of these stages takes rows with missing cells.

    Examples:
        >>> imputes(["impute", "scale"]), imputes([{"impute": {"flags": False}}]), imputes(["scale"])
        (True, True, False)
    """
    return any("impute" in (stage if isinstance(stage, Mapping) else [stage]) for stage in stages)


def _require_finite_squares(rows: np.ndarray) -> None:
    """Refuse numbers so large that a deviation, a covariance or a norm would be infinite, and its column lost."""
    rows = np.nan_to_num(rows)  # of missing cells
    if not np.isfinite(np.einsum("nd,nd->", rows, rows)):
        largest = np.abs(rows).max(axis=0)
        column = int(np.argmax(largest))
        raise InputError(
            f"column {column} (counted from 0) of the public rows holds numbers up to {largest[column]:.3g}, too large "
            "to compute with; rescale or remove it"
        )


def mixed_units(rows: np.ndarray) -> bool:
    """Whether the columns of public rows (N, d) differ so much in range that they cannot share a unit.

    Missing cells, NaN, count for nothing.

    Examples:
        >>> mixed_units(np.array([[0.0, 0.0], [1.0, 2.0]])), mixed_units(np.array([[0.0, 0.0], [1.0, 1000.0]]))
        (False, True)
    """
    ranges = np.fmax.reduce(rows, axis=0) - np.fmin.reduce(rows, axis=0)
    ranges = ranges[ranges > 0]
    return len(ranges) > 0 and bool(ranges.max() > MIXED_UNITS_RATIO * np.quantile(ranges, 0.25, method="lower"))


def _impute(rows: np.ndarray, flags: bool = True) -> Impute:
    missing = np.isnan(rows)
    known = ~missing.all(axis=0)
    if not known.any():
        raise InputError(
            "features: impute needs a column with a public value, and every cell of the public rows is missing; raise "
            "data.auxiliary or add a column"
        )
    fill = np.zeros(rows.shape[1])
    fill[known] = np.nanmedian(rows[:, known], axis=0)
    often = np.flatnonzero(known & (missing.mean(axis=0) >= _FLAGGED_SHARE)) if flags else ()
    first = {missing[:, column].tobytes(): column for column in reversed(often)}  # of the columns missing together
    return Impute(fill, np.array(sorted(first.values()), dtype=np.int64))


def _flags_behind(step: Step, flags: int) -> int:
    """How many of the last columns are indicators of missing cells behind a step, given how many were before it."""
    if isinstance(step, Impute):
        return len(step.flags)
    by_column = isinstance(step, SignedLog) or (isinstance(step, Affine) and step.factor.ndim == 1)
    return flags if by_column else 0


def _log_skewed(rows: np.ndarray) -> SignedLog | None:
    """The logarithm of the columns that `fit` describes; None where there are none."""
    several = ((rows > rows.min(axis=0)) & (rows < rows.max(axis=0))).any(axis=0)
    skewness = _skewness(rows)
    scales = np.zeros(rows.shape[1])
    for column in np.flatnonzero(several & (skewness > _LARGEST_SKEWNESS)):
        sizes = np.abs(rows[:, column])
        scales[column] = np.median(sizes[sizes > 0])
    if not scales.any():
        return None
    scales[~(_skewness(SignedLog(scales).apply(rows)) < skewness)] = 0.0
    return SignedLog(scales) if scales.any() else None


def _skewness(rows: np.ndarray) -> np.ndarray:
    """|m3| / m2^1.5 (d,) of central moments; 0 for constant columns, NaN where numbers are too large."""
    standard = _standardise(rows).apply(rows)
    return np.asarray(np.abs(np.mean(standard * standard * standard, axis=0)))  # a power takes five times as long


def _standardise(rows: np.ndarray, flags: int = 0) -> Affine:
    """All columns but the last `flags`, which are only centred; constant ones become 0 whatever a row says."""
    deviation = np.where(np.ptp(rows, axis=0) > 0, rows.std(axis=0), 0.0)
    # Below the smallest normal number a deviation is as good as constant, and its inverse overflows.
    factor = np.zeros(len(deviation))
    np.divide(1.0, deviation, out=factor, where=deviation > np.finfo(float).tiny)
    factor[rows.shape[1] - flags :] = 1.0
    return Affine(rows.mean(axis=0), factor)


def _max_norm(rows: np.ndarray) -> ClipNorm:
    largest = float(np.linalg.norm(rows, axis=1).max())
    if largest == 0:
        raise InputError("features: max_norm needs a public row that is not zero; leave the stage out")
    return ClipNorm(largest)


def _multiple(unit: int, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= unit and value % unit == 0


def _fourier(rows: np.ndarray, features: int) -> Fourier:
    return Fourier.draw(rows.shape[1], 1.0 / median_squared_distance(rows), features, _FOURIER_SEED)


def _randomly_project(rows: np.ndarray, options: int | Mapping[str, int]) -> Affine:
    """By scikit-learn, whose generator gives one seed the same numbers in every release of numpy."""
    from sklearn.random_projection import GaussianRandomProjection

    known = options if isinstance(options, Mapping) else {"dimensions": options}
    columns, dimensions = rows.shape[1], known["dimensions"]
    if dimensions >= columns:
        raise InputError(
            f"features: project must make fewer columns than there are, got {dimensions} of {columns}; leave it out"
        )
    random = np.random.RandomState(np.random.MT19937(np.random.SeedSequence(known.get("seed", _PROJECTION_SEED))))
    drawn = GaussianRandomProjection(dimensions, random_state=random).fit(np.zeros((1, columns)))
    return Affine(np.zeros(columns), drawn.components_.T)


def _is_projection(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return _multiple(1, value)
    whole = all(isinstance(number, int) and not isinstance(number, bool) for number in value.values())
    return {"dimensions"} <= {*value} <= {"dimensions", "seed"} and whole and value["dimensions"] >= 1


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
    "impute": _impute,
    "constant": lambda rows: Append(1.0),
    "signed_log": lambda rows: SignedLog(),
    "unit_norm": lambda rows: UnitNorm(),
    "max_norm": _max_norm,
}
# By name: how to write it, the value that it needs and whether one is of that kind, and how to fit it.
_SIZED: dict[str, tuple[str, str, Callable[[Any], bool], Callable[[np.ndarray, Any], Step]]] = {
    "pca": ("k", "a whole number of dimensions from 1", partial(_multiple, 1), partial(_project, whiten=False)),
    "whiten": ("k", "a whole number of dimensions from 1", partial(_multiple, 1), partial(_project, whiten=True)),
    "project": ("k", "a whole number of dimensions from 1", _is_projection, _randomly_project),
    "fourier": ("D", "an even number of features from 2", partial(_multiple, 2), _fourier),
    "polynomial": ("p", DEGREE, DEGREES.__contains__, lambda rows, degree: Polynomial(degree)),
    "impute": (
        "{flags: false}",
        "the section {flags: true} or {flags: false}",
        lambda value: isinstance(value, Mapping) and list(value) == ["flags"] and isinstance(value["flags"], bool),
        lambda rows, options: _impute(rows, **options),
    ),
}


def _fitters(stage: str | Mapping[str, Any], mixed: bool, flags: int) -> Sequence[_Fitter]:
    """The fitting functions of one stage, of rows in `mixed` units or not, whose last columns are `flags`.

    Raises `InputError` naming all stages.
    """
    name, value = next(iter(stage.items())) if isinstance(stage, Mapping) and len(stage) == 1 else (stage, None)
    standardise = partial(_standardise, flags=flags)
    if name == "standardise" and value is None:
        return [standardise]
    if name == "scale" and value is None:
        return [_log_skewed, standardise] if mixed else []
    if isinstance(name, str) and name in _SIMPLE and value is None:
        return [_SIMPLE[name]]
    if not isinstance(name, str) or name not in _SIZED:
        words = ["scale", "standardise", *_SIMPLE]
        sized = [f"{{{name}: {letter}}}" for name, (letter, *_) in _SIZED.items()]
        raise InputError(
            f"features: {stage!r} is not a stage; allowed: {', '.join([*words, *sized])}"
            + nearest_name(str(name), [*words, *_SIZED])
        )
    _, needed, allowed, fitter = _SIZED[name]
    if not allowed(value):
        raise InputError(f"features: {name} needs {needed}, got {value!r}")
    return [lambda rows: fitter(rows, value)]


# A text column with more values is a key or free text, not a category.
LARGEST_VOCABULARY = 1000
# Texts with more values than this and than half of the public rows tell these rows apart, and nothing else.
_FEW, _SHARE = 20, 1 / 2


def indicators(rows: np.ndarray, text_columns: Sequence[int], left_out: Sequence[int] = ()) -> OneHot:
    """The step that turns text columns of public rows (N, d) into indicators of the texts seen in them.

    A column whose public texts are all the same, or nearly all different (more than 20 and than half of the rows), gets
    no indicators, and neither do the columns `left_out`, whatever they hold. Raises `InputError` for columns that there
    are not, for more than 1,000 different texts in a column that stays, and where no column would be left.

    Examples:
        >>> colours, places = [1.0, 2.0, 1.0], [5.0, 5.0, 5.0]
        >>> indicators(np.array([colours, places]).T, [0, 1]).codes
        array([1., 2.])
    """
    columns = np.array([*text_columns, *left_out], dtype=np.int64)
    if columns.min() < 0 or columns.max() >= rows.shape[1]:
        raise InputError(f"text columns must lie in 0..{rows.shape[1] - 1}, got {columns.tolist()}")
    vocabularies = [np.unique(rows[:, column]) for column in columns]
    kept = [np.empty(0) if _why_useless(len(found), len(rows)) else found for found in vocabularies]
    kept[len(text_columns) :] = [np.empty(0) for _ in left_out]
    for column, vocabulary in zip(columns, kept, strict=True):
        if len(vocabulary) > LARGEST_VOCABULARY:
            raise InputError(
                f"text column {column} (counted from 0) has {len(vocabulary)} different texts in the public "
                f"rows, at most {LARGEST_VOCABULARY} are allowed; leave it out with data.drop or make it a number"
            )
    if len(columns) == rows.shape[1] and not any(map(len, kept)):
        raise InputError(
            f"the {len(rows)} public rows have no column that tells anything: in every one the texts are all the same "
            "or nearly all different, or it is an identifier; raise data.auxiliary or add a column"
        )
    starts = np.cumsum([0, *map(len, kept)]).astype(np.int64)
    return OneHot(columns, np.concatenate(kept), starts)


def _why_useless(different: int, rows: int) -> str | None:
    """Why a column with so many different texts in the public rows says nothing; None for one that does."""
    if different == 1:
        return f"its texts are the same in all {rows} public rows"
    if different > max(_FEW, rows * _SHARE):
        return f"it has {different} different texts in {rows} public rows"
    return None


_IDENTIFIER = re.compile(r"(^|[^a-z])(id|ids|key|index|uuid|nr|number|row)([^a-z]|$)|^unnamed|^rownum")
ROWS_OF_IDENTIFIERS = 20  # in fewer, different whole numbers may be anything
_FIRST = 1 << 16  # rows that most columns need not be read beyond


def names_somebody(column: str) -> bool:
    """Whether a column bears the name of an identifier.

    Examples:
        >>> [names_somebody(name) for name in ("patient_id", "ID", "Unnamed: 0", "width", "idle")]
        [True, True, True, False, False]
    """
    return _IDENTIFIER.search(column.lower()) is not None


def are_identifiers(name: str, cells: Floats) -> bool:
    """Whether the numbers (n,) of a column are all different and whole, and numbered through or so named.

    Examples:
        >>> are_identifiers("x", np.arange(20.0)), are_identifiers("x", 1e6 * np.arange(20))
        (True, False)
        >>> are_identifiers("Patient ID", 1e6 * np.arange(20)), are_identifiers("x", np.arange(19.0))
        (True, False)
    """

    def differ(some: Floats) -> bool:
        return bool((some == np.floor(some)).all()) and len(np.unique(some)) == len(some)  # no missing ones, either

    first = cells[:_FIRST]
    if len(cells) < ROWS_OF_IDENTIFIERS or not differ(first) or (len(first) < len(cells) and not differ(cells)):
        return False
    return bool(np.ptp(cells) < 2 * len(cells)) or names_somebody(name)


def identifiers(table: PublicTable) -> tuple[int, ...]:
    """The columns that are so named, and hold whole numbers of which no two public rows share one."""
    return tuple(
        i
        for i in _numbers(table)
        if names_somebody(table.columns[i]) and are_identifiers(table.columns[i], table.rows[:, i])
    )


def remarks(table: PublicTable, features: Sequence[str | Mapping[str, Any]], mixed: bool) -> Iterator[str]:
    """A sentence for each column that is left out, or is the same to a map of these stages whatever it says.

    Text columns come first: those without indicators, and how they would get some. Columns of numbers follow.

    `mixed`: the columns do not share a unit. Where they do, as pixels, many may have one value, and none is scaled.
    """
    for column in table.text_columns:
        different = len(np.unique(table.rows[:, column]))
        if why := _why_useless(different, len(table.rows)):
            yield (
                f"the text column '{table.columns[column]}' is left out: {why}; to keep it, use more public rows "
                "(data.auxiliary), or write fewer different texts or a number in it"
            )
    left_out = identifiers(table)
    for i in left_out:
        yield (
            f"the column '{table.columns[i]}' is left out: it is named as an identifier, and no two of the "
            f"{len(table.rows)} public rows share a number in it; if it says whose row it is, name it in data.person, "
            "and rename it to keep it"
        )
    if "standardise" in features or (mixed and "scale" in features):
        for i in (i for i in _numbers(table) if i not in left_out):
            cells = table.rows[:, i]
            if (cells == cells[0]).all():
                yield (
                    f"the column '{table.columns[i]}' says nothing: it is {cells[0]:g} in all {len(cells)} public "
                    "rows, so that nobody knows its scale; to use it, use more public rows (data.auxiliary)"
                )


def _numbers(table: PublicTable) -> list[int]:
    return [i for i in range(table.rows.shape[1]) if i not in table.text_columns]
