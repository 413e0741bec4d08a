"""The data sets of the catalogue whose labels are real numbers, each with the range that its documentation gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from federation.contract.errors import InputError
from scenarios.data.archives import Archive
from scenarios.data.census_1940 import CENSUS_1940
from scenarios.data.criteo import CRITEO
from scenarios.data.data_sets import Bundled, Filed
from scenarios.data.tables import Table

_HUNDRED_THOUSAND = 1e5  # dollars
_HOUSING_RANGE = (0.15, 5.0)
_HOUSING_CODES = (14999.0, 500001.0)  # for values below 15000 and above 500000 dollars
_PROTEIN_RANGE = (0.0, 21.0)
_WEEKS_RANGE = (0.0, 52.0)
_DIABETES_RANGE = (25.0, 346.0)


def _diabetes() -> Table:
    from sklearn.datasets import load_diabetes

    bundle = load_diabetes(scaled=False)
    columns = tuple(map(str, bundle.feature_names))
    return Table("diabetes", columns, (), bundle.target, (bundle.data,), label_range=_DIABETES_RANGE)


def _housing(path: Path) -> Table:
    archive = Archive(path)
    rows = archive.array("X")
    if rows.ndim != 2 or rows.dtype.kind != "f" or np.isinf(rows).any():
        raise InputError(f"{path} must hold {_HOUSING.holds}; got X as {rows.dtype} of shape {rows.shape}")
    columns = tuple(map(str, archive.vector("feature_names", rows.shape[1]).tolist()))
    dollars = archive.vector("y", len(rows)).astype(np.float64)
    if not ((dollars >= _HOUSING_CODES[0]) & (dollars <= _HOUSING_CODES[1])).all():
        raise InputError(f"{path} must hold {_HOUSING.holds}; got a value outside {_HOUSING_CODES}")
    # Which rows are whole depends on public features only.
    whole = ~np.isnan(rows).any(axis=1)
    values = np.clip(dollars[whole] / _HUNDRED_THOUSAND, *_HOUSING_RANGE)
    return Table("housing", columns, (), values, (rows[whole],), label_range=_HOUSING_RANGE)


def _protein(path: Path) -> Table:
    return _documented(Archive(path), "protein", _PROTEIN)


def _census_weeks(path: Path) -> Table:
    return _documented(Archive(path), "census_weeks", _CENSUS_WEEKS)


def _documented(archive: Archive, name: str, entry: Filed) -> Table:
    """X and y of an archive with labels in the documented range, and column names if it has them."""
    [rows] = archive.tables("X")
    labels = archive.vector("y", len(rows))
    assert entry.label_range is not None, "its documentation gives one"
    lo, hi = entry.label_range
    if labels.dtype.kind not in "iuf" or not ((labels >= lo) & (labels <= hi)).all():
        raise InputError(f"{archive.path} must hold {entry.holds}; got another label")
    named = "feature_names" in archive
    columns = archive.vector("feature_names", rows.shape[1]).tolist() if named else range(rows.shape[1])
    names = tuple(str(column) if named else f"x{column}" for column in columns)
    return Table(name, names, (), labels.astype(np.float64), (rows,), label_range=entry.label_range)


_HOUSING = Filed(
    "median house values of Californian districts in 100000 dollars, 0.15 to 5: 20433 rows, 8 columns (207 rows "
    "without a number of bedrooms are left out; values coded as beyond an end are that end)",
    _housing,
    "california_housing.npz",
    "X (20640, 8), in which NaN is a missing number of bedrooms, feature_names (8,) and y in dollars, 14999 for less "
    "than 15000 and 500001 for more than 500000",
    "'California Housing' of the 1990 census (Pace and Barry 1997), in the form of Geron's 'Hands-On Machine Learning'",
    regression=True,
    label_range=_HOUSING_RANGE,
)
_PROTEIN = Filed(
    "error of predicted protein structures in angstrom, 0 to 21: 45730 rows, 9 columns",
    _protein,
    "protein.npz",
    "X (45730, 9), y from 0 to 21 and perhaps feature_names (9,)",
    "'Physicochemical Properties of Protein Tertiary Structure' of the UCI Machine Learning Repository",
    regression=True,
    label_range=_PROTEIN_RANGE,
)
_CENSUS_WEEKS = Filed(
    "weeks worked in a year, 0 to 52: 99762 rows, 121 columns",
    _census_weeks,
    "census_weeks.npz",
    "X (99762, 121) of numbers and indicators, y from 0 to 52 and perhaps feature_names (121,)",
    "'Census-Income (KDD)' of the UCI Machine Learning Repository, the rows for testing",
    regression=True,
    label_range=_WEEKS_RANGE,
)
REAL_SETS: dict[str, Bundled | Filed] = {
    "diabetes": Bundled(
        "progress of diabetes after a year, 25 to 346: 442 rows, 10 columns", _diabetes, True, _DIABETES_RANGE
    ),
    "housing": _HOUSING,
    "protein": _PROTEIN,
    "census_weeks": _CENSUS_WEEKS,
    "census_1940": CENSUS_1940,
    "criteo_sscl": CRITEO,
}
