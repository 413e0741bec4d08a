"""The data sets of the catalogue that come with scikit-learn or lie in npz files."""

import gzip
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from federation.contract.errors import InputError
from scenarios.data.files import official_split, read_table
from scenarios.data.readers import Archive
from scenarios.data.tables import DataSet, Table

_HUNDRED_THOUSAND = 1e5  # dollars
_HOUSING_RANGE = (0.15, 5.0)
_HOUSING_CODES = (14999.0, 500001.0)  # for values below 15000 and above 500000 dollars
_DIABETES_RANGE = (25.0, 346.0)
_DIGITS_FILE = "datasets/data/digits.csv.gz"  # in scikit-learn's folder
_UCI = "https://archive.ics.uci.edu/dataset"


def _bundled(
    name: str, dtype: type[np.generic] = np.float64, label_range: tuple[float, float] | None = None, **options: Any
) -> Table:
    """What `sklearn.datasets.load_NAME` gives; with a `label_range` the labels are real numbers."""
    from sklearn import datasets

    bundle = getattr(datasets, f"load_{name}")(**options)
    classes = () if label_range else tuple(map(str, bundle.target_names))
    labels = bundle.target.astype(np.float64 if label_range else np.int64)
    columns = tuple(map(str, bundle.feature_names))
    return Table(name, columns, classes, labels, (bundle.data.astype(dtype),), label_range=label_range)


def _digits() -> Table:
    """What `sklearn.datasets.load_digits` gives, from the file that it reads.

    To import scikit-learn takes longer than all else that the data of a first run needs. Where a release of it keeps
    the file elsewhere, it is asked itself.
    """
    package = find_spec("sklearn")
    path = Path(package.origin if package and package.origin else "").parent / _DIGITS_FILE
    if not path.is_file():
        return _bundled("digits", np.uint8)
    with gzip.open(path, "rt", encoding="ascii") as file:
        cells = np.loadtxt(file, delimiter=",", dtype=np.uint8)
    columns = tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8))
    rows, labels = np.ascontiguousarray(cells[:, :-1]), cells[:, -1].astype(np.int64)
    return Table("digits", columns, tuple("0123456789"), labels, (rows,))


def _labelled(known: DataSet, path: Path, *, classes: tuple[str, ...] = (), label: str = "y", first: int = 0) -> Table:
    """X, and the array `label` of codes of the classes, counted from `first`, or of numbers in the documented range."""
    archive = Archive(path)
    [rows] = archive.tables("X")
    labels = archive.vector(label, len(rows))
    lo, hi = known.label_range or (first, first + len(classes) - 1)
    number = labels.dtype.kind in "iufb"
    if not number or not ((labels >= lo) & (labels <= hi)).all() or (classes and (labels % 1 != 0).any()):
        raise known.refusal(path, "another label")
    values = labels.astype(np.int64) - first if classes else labels.astype(np.float64)
    columns = archive.column_names("feature_names", rows, needed=bool(classes))
    return Table(known.name, columns, classes, values, (rows,), label_range=known.label_range)


def _housing(known: DataSet, path: Path) -> Table:
    archive = Archive(path)
    rows = archive["X"]
    if rows.ndim != 2 or rows.dtype.kind != "f" or np.isinf(rows).any() or np.isnan(rows).any(axis=1).all():
        raise known.refusal(path, f"X as {rows.dtype} of shape {rows.shape}")
    columns = archive.column_names("feature_names", rows)
    dollars = archive.vector("y", len(rows)).astype(np.float64)
    if not ((dollars >= _HOUSING_CODES[0]) & (dollars <= _HOUSING_CODES[1])).all():
        raise known.refusal(path, f"a value outside {_HOUSING_CODES}")
    # Which rows are whole depends on public features only.
    whole = ~np.isnan(rows).any(axis=1)
    values = np.clip(dollars[whole] / _HUNDRED_THOUSAND, *_HOUSING_RANGE)
    return Table(known.name, columns, (), values, (rows[whole],), label_range=_HOUSING_RANGE)


def _in_two_parts(known: DataSet, path: Path, *, codes: str, groups: tuple[str, ...] = ()) -> Table:
    """Rows with an official split, whose classes have `codes` of one digit, and names if the file has `class_names`."""
    table, archive = read_table(path, None, groups), Archive(path)
    if table.official is None or not set(table.classes) <= set(codes):
        raise known.refusal(path, f"the classes {', '.join(table.classes)}")
    classes = table.classes
    if "class_names" in archive:
        found = archive["class_names"].astype(np.str_).ravel()
        if len(found) != int(max(codes)) + 1:
            raise InputError(f"{path}: array 'class_names' must hold {int(max(codes)) + 1} names, the first one empty")
        classes = tuple(str(found[int(code)]) for code in classes)
    return replace(table, name=known.name, classes=classes)


def _connections(known: DataSet, path: Path) -> Table:
    archive = Archive(path)
    numeric_parts = archive.tables("numeric_train", "numeric_test")
    onehot_parts = archive.tables("onehot_train", "onehot_test")
    sizes = [len(part) for part in numeric_parts]
    labels = archive.joined("y", ("_train", "_test"), numeric_parts)
    if [len(part) for part in onehot_parts] != sizes or not np.isin(labels, (0, 1)).all():
        raise known.refusal(path)
    numeric, onehot = np.concatenate(numeric_parts), np.concatenate(onehot_parts)
    columns = [*archive.column_names("numeric_names", numeric)]
    for name in ("src_bytes", "dst_bytes"):
        column = columns.index(name) if name in columns else -1
        if column < 0 or numeric[:, column].min() < 0:
            raise InputError(f"{path}: numeric_names must include {name}, a column of counts from 0")
        # Bytes are heavy-tailed: one transfer of a gigabyte would otherwise set the scale of all others.
        numeric[:, column] = np.log1p(numeric[:, column])
        columns[column] = f"log1p({name})"
    names = (*columns, *archive.column_names("onehot_names", onehot))
    official = official_split(*sizes)
    return Table(known.name, names, ("normal", "attack"), labels.astype(np.int64), (numeric, onehot), official=official)


def _of_uci(number: int) -> dict[str, Any]:
    """Where a data set of the UCI Machine Learning Repository is, and what its owners allow."""
    return {"url": f"{_UCI}/{number}", "licence": "CC BY 4.0"}


DIGITS = DataSet(
    "digits",
    "handwritten digits of 8 x 8 pixels, 10 classes: 1797 rows, 64 columns",
    _digits,
    origin="'Optical Recognition of Handwritten Digits' of the UCI Machine Learning Repository, its test rows, which "
    "come with scikit-learn",
    **_of_uci(80),
)
BREAST_CANCER = DataSet(
    "breast_cancer",
    "tumours, malignant or benign: 569 rows, 30 columns",
    partial(_bundled, "breast_cancer"),
    origin="'Breast Cancer Wisconsin (Diagnostic)' of the UCI Machine Learning Repository, which comes with "
    "scikit-learn",
    **_of_uci(17),
)
DIABETES = DataSet(
    "diabetes",
    "progress of diabetes after a year, 25 to 346: 442 rows, 10 columns",
    partial(_bundled, "diabetes", label_range=_DIABETES_RANGE, scaled=False),
    origin="the diabetes study of Efron et al. 2004, 'Least Angle Regression', which comes with scikit-learn",
    url="https://www4.stat.ncsu.edu/~boos/var.select/diabetes.html",
    licence="none is stated",
    regression=True,
    label_range=_DIABETES_RANGE,
)
CLASS_ARCHIVES = (
    DataSet(
        "acoustic",
        "sounds of military vehicles, of two kinds or noise: 78823 + 19705 rows, 50 columns",
        partial(_in_two_parts, codes="123"),
        "acoustic.npz",
        "X_train (78823, 50), X_test (19705, 50), y_train and y_test (1 to 3)",
        "'SensIT Vehicle (acoustic)' of the LIBSVM data sets (Duarte and Hu 2004)",
        url="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html",
        licence="none is stated",
    ),
    DataSet(
        "adult",
        "census incomes, above $50K or not: 48842 rows, 108 columns, of which 6 numeric and 102 indicators",
        partial(_labelled, classes=("<=50K", ">50K")),
        "adult.npz",
        "X (48842, 108), feature_names (108,) and y (1 is above $50K)",
        "'Adult' of the UCI Machine Learning Repository",
        **_of_uci(2),
    ),
    DataSet(
        "ctg",
        "cardiotocograms of foetuses, normal (77.8 %), suspect or pathologic: 2126 rows, 21 columns",
        partial(_labelled, classes=("normal", "suspect", "pathologic"), label="y_nsp", first=1),
        "ctg.npz",
        "X (2126, 21), feature_names (21,) such as LB for the heart rate, and y_nsp (1 is normal, 2 suspect, "
        "3 pathologic)",
        "'Cardiotocography' of the UCI Machine Learning Repository",
        **_of_uci(193),
    ),
    DataSet(
        "har",
        "smartphone sensors, 6 activities of 30 people: 7352 + 2947 rows, 561 columns, groups: subject",
        partial(_in_two_parts, codes="123456", groups=("subject",)),
        "har.npz",
        "X_train (7352, 561), X_test (2947, 561), y_train and y_test (1 to 6), subject_train and subject_test, "
        "and perhaps feature_names (561,) and class_names (7, the first one empty)",
        "'Human Activity Recognition Using Smartphones' of the UCI Machine Learning Repository",
        url=f"{_UCI}/240",
        licence="CC BY 4.0 at the repository; the notice in the original archive forbids commercial use",
    ),
    DataSet(
        "higgs",
        "particle collisions, Higgs signal or background, a sample: 25972 rows, 28 columns",
        partial(_labelled, classes=("background", "signal")),
        "higgs_sample.npz",
        "X (25972, 28), feature_names (28,) and y (1 is signal)",
        "'HIGGS' of the UCI Machine Learning Repository, of which any rows serve",
        **_of_uci(280),
    ),
    DataSet(
        "kdd99",
        "network connections, normal or attack: 494021 + 311029 rows, 119 columns",
        _connections,
        "kdd99.npz",
        "numeric_train (494021, 38), numeric_test (311029, 38), numeric_names (38,), onehot_train and "
        "onehot_test (81 indicators of protocol, service and flag), onehot_names (81,), y_train and y_test "
        "(1 is an attack)",
        "'KDD Cup 1999' of the UCI KDD Archive: kddcup.data_10_percent and corrected (the test rows)",
        **_of_uci(130),
    ),
    DataSet(
        "mnist",
        "handwritten digits of 28 x 28 pixels, 10 classes: 60000 + 10000 rows, 784 columns",
        partial(_in_two_parts, codes="0123456789"),
        "mnist.npz",
        "X_train (60000, 784), X_test (10000, 784), y_train and y_test (0 to 9)",
        "'The MNIST database of handwritten digits' (LeCun, Cortes and Burges)",
        url="http://yann.lecun.com/exdb/mnist",
        licence="CC BY-SA 3.0, as those say who hand it on; its own page states none",
    ),
)
REAL_ARCHIVES = (
    DataSet(
        "housing",
        "median house values of Californian districts in 100000 dollars, 0.15 to 5: 20433 rows, 8 columns (207 rows "
        "without a number of bedrooms are left out; values coded as beyond an end are that end)",
        _housing,
        "california_housing.npz",
        "X (20640, 8), in which NaN is a missing number of bedrooms, feature_names (8,) and y in dollars, 14999 for "
        "less than 15000 and 500001 for more than 500000",
        "'California Housing' of the 1990 census (Pace and Barry 1997), in the form of Geron's 'Hands-On Machine "
        "Learning'",
        url="https://github.com/ageron/handson-ml2",
        licence="none is stated for the census figures; the file is handed on under Apache-2.0",
        regression=True,
        label_range=_HOUSING_RANGE,
    ),
    DataSet(
        "protein",
        "error of predicted protein structures in angstrom, 0 to 21: 45730 rows, 9 columns",
        _labelled,
        "protein.npz",
        "X (45730, 9), y from 0 to 21 and perhaps feature_names (9,)",
        "'Physicochemical Properties of Protein Tertiary Structure' of the UCI Machine Learning Repository",
        **_of_uci(265),
        regression=True,
        label_range=(0.0, 21.0),
    ),
    DataSet(
        "census_weeks",
        "weeks worked in a year, 0 to 52: 99762 rows, 121 columns",
        _labelled,
        "census_weeks.npz",
        "X (99762, 121) of numbers and indicators, y from 0 to 52 and perhaps feature_names (121,)",
        "'Census-Income (KDD)' of the UCI Machine Learning Repository, the rows for testing",
        **_of_uci(117),
        regression=True,
        label_range=(0.0, 52.0),
    ),
)
