"""Data sets by name, and one's own files: every process loads a table once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from federation.contract.errors import InputError, nearest_name
from scenarios.data.class_sets import CLASS_SETS
from scenarios.data.data_sets import Bundled, DataSet, Filed, Generated
from scenarios.data.expril_sets import EXPRIL_SETS
from scenarios.data.files import SUFFIXES, read_table
from scenarios.data.real_sets import REAL_SETS
from scenarios.data.tables import Outside, Table

# What is needed of real labels before anything can be said of their privacy.
NO_RANGE = "real labels need a declared public range [lo, hi]: one that is taken from the data is not private"
_CATALOGUE: dict[str, DataSet] = {**CLASS_SETS, **EXPRIL_SETS, **REAL_SETS}


def names() -> dict[str, str]:
    """Name and one-line description of every data set of the catalogue."""
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
) -> Table:
    """The table of a catalogue name, or of one's own csv, npz or Parquet file (`scenarios.data.files.read_table`).

    Files are looked for in `data_dir`, else in the folder that FEDERATION_DATA names; one's own file also at its path.
    `label` and `groups` name columns of one's own file; `classes` declares the class names in order, `positive` names
    those that together are the positive one of two (`Table.with_positive`), and `label_range` that labels are real
    numbers in [lo, hi] (`Table.with_range`). `instance` numbers the instances of a data set that is generated anew for
    every split (`data_sets.Generated`) and makes no difference to others. Raises `InputError` when a file is missing or
    damaged, a name is unknown, or real labels have no declared range: none is ever taken from the data.
    """
    path = _path(source, data_dir)
    declared = tuple(classes) if classes is not None else None
    known = entry(source)
    if known is None:
        assert path is not None, "one's own data always lies in a file"
        if declared is not None and label_range is not None:
            raise InputError("data.range is for real labels and data.classes for class names; remove one of them")
        table = _read_own(path, _stamp(path), label, tuple(groups), declared, label_range is not None)
    elif label is not None:
        raise InputError(f"data.label is for one's own files; '{source}' has its labels: remove data.label")
    else:
        table = _read_entry(known, path, instance)
        table = table if declared is None else table.with_classes(declared)
    if positive is not None:
        table = table.with_positive(positive)
    if label_range is not None:
        return table.with_range(label_range, outside)
    if not table.classes and table.label_range is None:
        raise InputError(f"data.range: {NO_RANGE}, and '{source}' documents none")
    return table


def entry(source: str) -> DataSet | None:
    """The data set of that name; None for one's own file."""
    return _CATALOGUE.get(source)


def digest(source: str, data_dir: str | os.PathLike[str] | None = None) -> str | None:
    """SHA-256 of the file behind a source, None for a data set without one: equal contents, equal digests.

    Raises `InputError` like `load`.
    """
    path = _path(source, data_dir)
    return None if path is None else _digest(path, _stamp(path))


def _path(source: str, data_dir: str | os.PathLike[str] | None) -> Path | None:
    """Where the file behind a source is; None for a data set without one."""
    folder = data_dir if data_dir is not None else os.environ.get("FEDERATION_DATA")
    directory = Path(folder).expanduser() if folder else None
    known = entry(source)
    if known is None:
        return _own_file(source, directory)
    return _catalogue_file(source, known, directory) if isinstance(known, Filed) else None


def _read_entry(known: DataSet, path: Path | None, instance: int) -> Table:
    if isinstance(known, Bundled):
        return _read_bundled(known)
    if isinstance(known, Generated):
        return _read_generated(known, instance)
    assert path is not None, "this entry lies in a file"
    return _read_filed(known, path, _stamp(path))


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
    real: bool,
) -> Table:
    return read_table(path, label, groups, classes, real=real)


@lru_cache(maxsize=4)
def _read_bundled(known: Bundled) -> Table:
    return known.read()


@lru_cache(maxsize=4)
def _read_generated(known: Generated, instance: int) -> Table:
    return known.read(instance)


@lru_cache(maxsize=4)
def _read_filed(known: Filed, path: Path, stamp: tuple[int, int]) -> Table:
    return known.read(path)


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


def _catalogue_file(name: str, known: Filed, directory: Path | None) -> Path:
    if directory is not None and (directory / known.file).is_file():
        return (directory / known.file).resolve()
    where = f"there is no {known.file} in {directory}" if directory else "no data directory is given"
    raise InputError(
        f"data set '{name}' needs the file {known.file}, but {where}; name its folder with --data-dir or the "
        f"environment variable FEDERATION_DATA. The file holds {known.holds}; the original is {known.origin}"
    )
