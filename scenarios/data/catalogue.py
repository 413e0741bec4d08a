"""Data sets by name, and one's own files: every process loads a table once."""

import hashlib
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeGuard

from federation.contract.errors import InputError, nearest_name
from scenarios.data.archive_sets import BREAST_CANCER, CLASS_ARCHIVES, DIABETES, DIGITS, REAL_ARCHIVES
from scenarios.data.files import SUFFIXES, read_table
from scenarios.data.generated_sets import DRAWN_SETS, DRIFTING, EXPRIL_SETS, GAUSSIANS
from scenarios.data.hashing import Hashing
from scenarios.data.readers import files_of, is_there
from scenarios.data.tables import DataSet, Outside, Table
from scenarios.data.text_sets import CENSUS_1940, CRITEO, TEXT_SETS

# What is needed of real labels before anything can be said of their privacy.
NO_RANGE = "real labels need a declared public range [lo, hi]: one that is taken from the data is not private"
_CLASS_SETS = (DIGITS, BREAST_CANCER, GAUSSIANS, *DRAWN_SETS, DRIFTING, *CLASS_ARCHIVES, *TEXT_SETS, *EXPRIL_SETS)
_REAL_SETS = (DIABETES, *REAL_ARCHIVES, CENSUS_1940, CRITEO)
_CATALOGUE = {known.name: known for known in (*_CLASS_SETS, *_REAL_SETS)}


def names() -> dict[str, str]:
    """Name and one-line description of every data set of the catalogue.

    Examples:
        >>> names()["breast_cancer"]
        'tumours, malignant or benign: 569 rows, 30 columns'
    """
    return {name: known.description for name, known in _CATALOGUE.items()}


def load(
    source: str,
    *,
    label: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    classes: Sequence[str] | None = None,
    positive: Sequence[str] | None = None,
    groups: Sequence[str] = (),
    label_range: tuple[float, float] | None = None,
    outside: Outside = "refuse",
    instance: int = 0,
    missing: bool = False,
    drop: Sequence[str] = (),
    hashes: Sequence[int | Mapping[str, Any]] = (),
) -> Table:
    """The table of a catalogue name, or of one's own csv, npz, Parquet or svmlight file (`files.read_table`).

    Files are looked for in `data_dir`, else in the folder that FEDERATION_DATA names; one's own file also at its path.
    `label` and `groups` name columns of one's own file; `classes` declares the class names in order, `positive` names
    those that together are the positive one of two (`Table.with_positive`), and `label_range` that labels are real
    numbers in [lo, hi] (`Table.with_range`). `instance` numbers the instances of a data set that is generated anew for
    every split (`DataSet.generated`) and makes no difference to others. Cells of one's own file may be missing, and
    those of its columns that `drop` names are no features. `hashes` are the values of the stages {hash: ...} of
    data.features.
    Raises `InputError` when a file is missing or damaged, a name is unknown, or real labels have no declared range:
    none is ever taken from the data.

    Examples:
        >>> load("breast_cancer")
        Table('breast_cancer': 569 rows, 30 columns, 2 classes)
        >>> load("digits", positive=["3", "8"]).classes
        ('0+1+2+4+5+6+7+9', '3+8')
        >>> load("diabetes", label_range=(50, 200), outside="clip").label_range
        (50.0, 200.0)
    """
    path, known = _path(source, data_dir), entry(source)
    declared, hashed = tuple(classes) if classes is not None else None, tuple(map(Hashing.of, hashes))
    if known is not None:
        if label is not None:
            raise InputError(f"data.label is for one's own files; '{source}' has its labels: remove data.label")
        if drop:
            raise InputError(f"data.drop is for one's own files; '{source}' is as it is: remove data.drop")
        known.require_hashable(hashed)
        table = _read(known.read, path, _stamp(path), instance if known.generated else 0, hashed)
        table = table if declared is None else table.with_classes(declared)
    elif declared is not None and label_range is not None:
        raise InputError("data.range is for real labels and data.classes for class names; remove one of them")
    else:
        real = label_range is not None
        table = _read(
            read_table, path, _stamp(path), label, tuple(groups), declared, real, missing, tuple(drop), hashed
        )
    if positive is not None:
        table = table.with_positive(positive)
    if label_range is not None:
        return table.with_range(label_range, outside)
    if not table.classes and table.label_range is None:
        raise InputError(f"data.range: {NO_RANGE}, and '{source}' documents none")
    return table


def public_path(auxiliary: str, data_dir: str | os.PathLike[str] | None = None) -> Path:
    """Where a file of public rows is, looked for as `load` does. Raises `InputError` where there is none."""
    path = _path(auxiliary, data_dir, "data.auxiliary")
    assert path is not None  # no data set has the name of a file
    return path


def is_file_name(auxiliary: object) -> TypeGuard[str]:
    """Whether the setting data.auxiliary names a file, rather than rows of the data itself.

    Examples:
        >>> is_file_name("public.csv"), is_file_name("official"), is_file_name(0.25)
        (True, False, False)
    """
    return isinstance(auxiliary, str) and Path(auxiliary).suffix.lower() in SUFFIXES


def entry(source: str) -> DataSet | None:
    """The data set of that name; None for one's own file."""
    return _CATALOGUE.get(source)


def citations(sources: str | Sequence[str]) -> list[str]:
    """Where data sets of the catalogue come from and what their owners allow, a line each; none for one's own files.

    Examples:
        >>> citations(["gaussians", "my.csv"])
        ['gaussians: generated by this project; licence: Apache-2.0, as this project']
    """
    named = [sources] if isinstance(sources, str) else sources
    return [known.citation for name in named if (known := entry(name)) is not None]


def digest(source: str, data_dir: str | os.PathLike[str] | None = None) -> str | None:
    """SHA-256 of the file behind a source, None for a data set without one: equal contents, equal digests.

    Raises `InputError` like `load`.
    """
    path = _path(source, data_dir)
    return None if path is None else _digest(path, _stamp(path))


def contents(source: str, auxiliary: object, data_dir: str | os.PathLike[str] | None = None) -> str | None:
    """The `digest` of a source, beside that of the file of its public rows where `auxiliary` names one.

    Raises `InputError` like `load`.
    """
    found = digest(source, data_dir)
    if not is_file_name(auxiliary):
        return found
    path = public_path(auxiliary, data_dir)
    return f"{found or source} {_digest(path, _stamp(path))}"


def directory_of(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """The folder of files: the one that is given, else the one that FEDERATION_DATA names; None without either."""
    folder = data_dir if data_dir is not None else os.environ.get("FEDERATION_DATA")
    return Path(os.path.expanduser(folder)) if folder else None


def _path(source: str, data_dir: str | os.PathLike[str] | None, key: str = "data.source") -> Path | None:
    """Where the file behind a source is; None for a data set without one.

    Raises `InputError`, which names the setting `key`, when it is missing.
    """
    directory = directory_of(data_dir)
    known = entry(source)
    if known is not None and known.file is None:
        return None
    path = Path(os.path.expanduser((source if known is None else known.file) or ""))
    candidates = [path] if known is None else []
    candidates += [] if directory is None else [directory / path]
    for candidate in candidates:
        if is_there(candidate):
            return candidate.resolve()
    if known is not None:
        where = f"there is no {known.file} in {directory}" if directory else "no data directory is given"
        raise InputError(
            f"data set '{source}' needs the file {known.file}, but {where}; name its folder with --data-dir or the "
            f"environment variable FEDERATION_DATA. The file holds {known.holds}; federation data {source} says "
            f"where the original is, {known.origin}, and how to make the file from it"
        )
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{key} '{source}' is neither a data set ({', '.join(_CATALOGUE)}) nor a "
            f"{' or '.join(SUFFIXES)} file{nearest_name(source, _CATALOGUE)}"
        )
    folders = " or ".join(dict.fromkeys(str(candidate.parent.absolute()) for candidate in candidates))
    raise InputError(
        f"{key}: there is no such file: {path.name} in {folders}; correct the path, or name the folder with "
        "--data-dir or the environment variable FEDERATION_DATA"
    )


def _stamp(path: Path | None) -> tuple[Hashable, ...] | None:
    """Changes when a file does, so that a table kept from before is not used."""
    if path is None:
        return None
    return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files_of(path))


@lru_cache(maxsize=4)
def _digest(path: Path, stamp: tuple[Hashable, ...]) -> str:
    try:
        found = [*map(sha256, files_of(path))]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; allow it, or name another file") from error
    return found[0] if len(found) == 1 else hashlib.sha256("".join(found).encode()).hexdigest()


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal digits. Raises `OSError`."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=8)
def _read(
    reader: Callable[..., Table], path: Path | None, stamp: tuple[Hashable, ...] | None, *arguments: Hashable
) -> Table:
    return reader(path, *arguments)
