"""The data sets of the catalogue whose rows have classes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from federation.contract.errors import InputError
from scenarios.data.archives import Archive
from scenarios.data.data_sets import Bundled, Filed
from scenarios.data.files import official_split, read_table
from scenarios.data.gaussians import gaussians
from scenarios.data.tables import Table


def _digits() -> Table:
    from sklearn.datasets import load_digits

    bundle = load_digits()
    pixels = tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8))
    labels = bundle.target.astype(np.int64)
    return Table("digits", pixels, tuple(map(str, range(10))), labels, (bundle.data.astype(np.uint8),))


def _breast_cancer() -> Table:
    from sklearn.datasets import load_breast_cancer

    bundle = load_breast_cancer()
    columns, classes = tuple(map(str, bundle.feature_names)), tuple(map(str, bundle.target_names))
    return Table("breast_cancer", columns, classes, bundle.target.astype(np.int64), (bundle.data,))


def _har(path: Path) -> Table:
    table, archive = read_table(path, None, ("subject",)), Archive(path)
    if table.official is None or not set(table.classes) <= set("123456"):
        raise InputError(f"{path} must hold {_HAR.holds}; got the classes {', '.join(table.classes)}")
    if "class_names" in archive:
        activities = archive.array("class_names").astype(np.str_).ravel()
        if len(activities) != 7:
            raise InputError(f"{path}: array 'class_names' must hold 7 names, the first one empty")
        table = replace(table, classes=tuple(str(activities[int(code)]) for code in table.classes))
    return replace(table, name="har")


def _kdd99(path: Path) -> Table:
    archive = Archive(path)
    numeric_parts = archive.tables("numeric_train", "numeric_test")
    sizes = [len(part) for part in numeric_parts]
    onehot_parts = archive.tables("onehot_train", "onehot_test")
    labels = np.concatenate([archive.vector("y_train", sizes[0]), archive.vector("y_test", sizes[1])])
    if [len(part) for part in onehot_parts] != sizes or not np.isin(labels, (0, 1)).all():
        raise InputError(f"{path} must hold {_KDD99.holds}")
    numeric, onehot = np.concatenate(numeric_parts), np.concatenate(onehot_parts)
    columns = archive.vector("numeric_names", numeric.shape[1]).tolist()
    for name in ("src_bytes", "dst_bytes"):
        column = columns.index(name) if name in columns else -1
        if column < 0 or numeric[:, column].min() < 0:
            raise InputError(f"{path}: numeric_names must include {name}, a column of counts from 0")
        # Bytes are heavy-tailed: one transfer of a gigabyte would otherwise set the scale of all others.
        numeric[:, column] = np.log1p(numeric[:, column])
        columns[column] = f"log1p({name})"
    columns += archive.vector("onehot_names", onehot.shape[1]).tolist()
    return Table(
        "kdd99",
        tuple(columns),
        ("normal", "attack"),
        labels.astype(np.int64),
        (numeric, onehot),
        official=official_split(*sizes),
    )


def _adult(path: Path) -> Table:
    archive = Archive(path)
    [rows] = archive.tables("X")
    columns = tuple(map(str, archive.vector("feature_names", rows.shape[1]).tolist()))
    return Table("adult", columns, ("<=50K", ">50K"), _binary(archive, len(rows), _ADULT), (rows,))


def _higgs(path: Path) -> Table:
    archive = Archive(path)
    [rows] = archive.tables("X")
    columns = tuple(map(str, archive.vector("feature_names", rows.shape[1]).tolist()))
    return Table("higgs", columns, ("background", "signal"), _binary(archive, len(rows), _HIGGS), (rows,))


def _mnist(path: Path) -> Table:
    table = read_table(path, None)
    if table.official is None or table.classes != tuple("0123456789"):
        raise InputError(f"{path} must hold {_MNIST.holds}; got the classes {', '.join(table.classes)}")
    return replace(table, name="mnist")


def _ctg(path: Path) -> Table:
    archive = Archive(path)
    [rows] = archive.tables("X")
    states = archive.vector("y_nsp", len(rows))
    if not np.isin(states, (1, 2, 3)).all():
        raise InputError(f"{path} must hold {_CTG.holds}; got another state")
    columns = tuple(map(str, archive.vector("feature_names", rows.shape[1]).tolist()))
    return Table("ctg", columns, ("normal", "suspect", "pathologic"), states.astype(np.int64) - 1, (rows,))


def _binary(archive: Archive, rows: int, entry: Filed) -> np.ndarray:
    """The labels 0 and 1 of an archive, int64 (n,)."""
    labels = archive.vector("y", rows)
    if not np.isin(labels, (0, 1)).all():
        raise InputError(f"{archive.path} must hold {entry.holds}")
    return labels.astype(np.int64)


_ADULT = Filed(
    "census incomes, above $50K or not: 48842 rows, 108 columns, of which 6 numeric and 102 indicators",
    _adult,
    "adult.npz",
    "X (48842, 108), feature_names (108,) and y (1 is above $50K)",
    "'Adult' of the UCI Machine Learning Repository",
)
_CTG = Filed(
    "cardiotocograms of foetuses, normal (77.8 %), suspect or pathologic: 2126 rows, 21 columns",
    _ctg,
    "ctg.npz",
    "X (2126, 21), feature_names (21,) such as LB for the heart rate, and y_nsp (1 is normal, 2 suspect, 3 pathologic)",
    "'Cardiotocography' of the UCI Machine Learning Repository",
)
_HIGGS = Filed(
    "particle collisions, Higgs signal or background, a sample: 25972 rows, 28 columns",
    _higgs,
    "higgs_sample.npz",
    "X (25972, 28), feature_names (28,) and y (1 is signal)",
    "'HIGGS' of the UCI Machine Learning Repository, of which any rows serve",
)
_MNIST = Filed(
    "handwritten digits of 28 x 28 pixels, 10 classes: 60000 + 10000 rows, 784 columns",
    _mnist,
    "mnist.npz",
    "X_train (60000, 784), X_test (10000, 784), y_train and y_test (0 to 9)",
    "'The MNIST database of handwritten digits' (LeCun, Cortes and Burges)",
)
_HAR = Filed(
    "smartphone sensors, 6 activities of 30 people: 7352 + 2947 rows, 561 columns, groups: subject",
    _har,
    "har.npz",
    "X_train (7352, 561), X_test (2947, 561), y_train and y_test (1 to 6), subject_train and subject_test, "
    "and perhaps feature_names (561,) and class_names (7, the first one empty)",
    "'Human Activity Recognition Using Smartphones' of the UCI Machine Learning Repository",
)
_KDD99 = Filed(
    "network connections, normal or attack: 494021 + 311029 rows, 119 columns",
    _kdd99,
    "kdd99.npz",
    "numeric_train (494021, 38), numeric_test (311029, 38), numeric_names (38,), onehot_train and "
    "onehot_test (81 indicators of protocol, service and flag), onehot_names (81,), y_train and y_test "
    "(1 is an attack)",
    "'KDD Cup 1999' of the UCI KDD Archive: kddcup.data_10_percent and corrected (the test rows)",
)
CLASS_SETS: dict[str, Bundled | Filed] = {
    "digits": Bundled("handwritten digits of 8 x 8 pixels, 10 classes: 1797 rows, 64 columns", _digits),
    "breast_cancer": Bundled("tumours, malignant or benign: 569 rows, 30 columns", _breast_cancer),
    "gaussians": Bundled("three generated classes, at best .866 accurate: 600000 rows, 10 columns", gaussians),
    "adult": _ADULT,
    "ctg": _CTG,
    "har": _HAR,
    "higgs": _HIGGS,
    "kdd99": _KDD99,
    "mnist": _MNIST,
}
