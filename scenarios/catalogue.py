"""Data sets by name, and one's own files: every process loads a table once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from federation.errors import InputError, nearest_name
from scenarios.archives import Archive
from scenarios.files import SUFFIXES, official_split, read_table
from scenarios.gaussians import gaussians
from scenarios.tables import Table


@dataclass(frozen=True)
class Bundled:
    """A data set that needs no file: it is generated or comes with scikit-learn."""

    description: str
    read: Callable[[], Table]


@dataclass(frozen=True)
class Filed:
    """A data set whose `file` lies in the data directory.

    `holds` says which arrays the file must hold, `origin` where the original can be had.
    """

    description: str
    read: Callable[[Path], Table]
    file: str
    holds: str
    origin: str


def names() -> dict[str, str]:
    """Name and one-line description of every data set of the catalogue."""
    return {name: entry.description for name, entry in _CATALOGUE.items()}


def load(
    source: str,
    *,
    label: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    classes: Sequence[str] | None = None,
    groups: Sequence[str] = (),
) -> Table:
    """The table of a catalogue name, or of one's own csv, npz or Parquet file (`scenarios.files.read_table`).

    Files are looked for in `data_dir`, else in the folder that FEDERATION_DATA names; one's own file also at
    its path. `label` and `groups` name columns of one's own file; `classes` declares the class names in order.
    Raises `InputError` when a file is missing or damaged, or a name is unknown.
    """
    path = _path(source, data_dir)
    declared = tuple(classes) if classes is not None else None
    entry = _CATALOGUE.get(source)
    if entry is None:
        assert path is not None, "one's own data always lies in a file"
        return _read_own(path, _stamp(path), label, tuple(groups), declared)
    if label is not None:
        raise InputError(f"data.label is for one's own files; '{source}' has its labels: remove data.label")
    if isinstance(entry, Bundled):
        table = _read_bundled(entry)
    else:
        assert path is not None, "this entry lies in a file"
        table = _read_filed(entry, path, _stamp(path))
    return table if declared is None else table.with_classes(declared)


def digest(source: str, data_dir: str | os.PathLike[str] | None = None) -> str | None:
    """SHA-256 of the file behind a source, None for a bundled data set: equal contents, equal digests.

    Raises `InputError` like `load`.
    """
    path = _path(source, data_dir)
    return None if path is None else _digest(path, _stamp(path))


def _path(source: str, data_dir: str | os.PathLike[str] | None) -> Path | None:
    """Where the file behind a source is; None for a bundled data set."""
    folder = data_dir if data_dir is not None else os.environ.get("FEDERATION_DATA")
    directory = Path(folder).expanduser() if folder else None
    entry = _CATALOGUE.get(source)
    if entry is None:
        return _own_file(source, directory)
    return _catalogue_file(source, entry, directory) if isinstance(entry, Filed) else None


@lru_cache(maxsize=4)
def _digest(path: Path, stamp: tuple[int, int]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamp(path: Path) -> tuple[int, int]:
    """Changes when the file does, so that a table kept from before is not used."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4)
def _read_own(
    path: Path,
    stamp: tuple[int, int],
    label: str | None,
    groups: tuple[str, ...],
    classes: tuple[str, ...] | None,
) -> Table:
    return read_table(path, label, groups, classes)


@lru_cache(maxsize=4)
def _read_bundled(entry: Bundled) -> Table:
    return entry.read()


@lru_cache(maxsize=4)
def _read_filed(entry: Filed, path: Path, stamp: tuple[int, int]) -> Table:
    return entry.read(path)


def _own_file(source: str, directory: Path | None) -> Path:
    path = Path(source).expanduser()
    candidates = [path] if directory is None else [path, directory / path]
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve()
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"data.source '{source}' is neither a data set ({', '.join(_CATALOGUE)}) nor a "
            f"{' or '.join(SUFFIXES)} file{nearest_name(source, _CATALOGUE)}"
        )
    folders = " or ".join(dict.fromkeys(str(candidate.parent.absolute()) for candidate in candidates))
    raise InputError(
        f"data.source: there is no such file: {path.name} in {folders}; correct the path, or name the folder with "
        "--data-dir or the environment variable FEDERATION_DATA"
    )


def _catalogue_file(name: str, entry: Filed, directory: Path | None) -> Path:
    if directory is not None and (directory / entry.file).is_file():
        return (directory / entry.file).resolve()
    where = f"there is no {entry.file} in {directory}" if directory else "no data directory is given"
    raise InputError(
        f"data set '{name}' needs the file {entry.file}, but {where}; name its folder with --data-dir or the "
        f"environment variable FEDERATION_DATA. The file holds {entry.holds}; the original is {entry.origin}"
    )


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
_CATALOGUE: dict[str, Bundled | Filed] = {
    "digits": Bundled("handwritten digits of 8 x 8 pixels, 10 classes: 1797 rows, 64 columns", _digits),
    "breast_cancer": Bundled("tumours, malignant or benign: 569 rows, 30 columns", _breast_cancer),
    "gaussians": Bundled("three generated classes, at best .866 accurate: 600000 rows, 10 columns", gaussians),
    "adult": _ADULT,
    "har": _HAR,
    "higgs": _HIGGS,
    "kdd99": _KDD99,
    "mnist": _MNIST,
}
