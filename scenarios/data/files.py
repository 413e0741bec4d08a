"""One's own data: a CSV or Parquet file with named columns, or an npz file with the arrays X and y."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from federation.contract.errors import InputError
from scenarios.data.archives import Archive
from scenarios.data.parquet import ParquetSheet, read_parquet
from scenarios.data.sheets import Sheet, is_missing, read_sheet
from scenarios.data.tables import Table, cut, encode_labels, listed

SUFFIXES = (".csv", ".npz", ".parquet")
_MOST_CLASSES = 1000
# Labels with more values than this and than a third of the rows are measurements or identifiers.
_CLASSES_OF_A_SMALL_FILE, _SHARE_OF_CLASSES = 20, 1 / 3
# Texts with more values than this and than half of the rows are misread numbers or identifiers.
_TEXTS_OF_A_SMALL_FILE, _SHARE_OF_TEXTS = 50, 1 / 2


def read_table(
    path: Path,
    label: str | None,
    groups: Sequence[str] = (),
    classes: Sequence[str] | None = None,
    *,
    real: bool = False,
) -> Table:
    """The labelled rows of a CSV, npz or Parquet file; with `real` the labels are real numbers and have no range yet.

    CSV: `label` names the column of the labels; all other columns but `groups` are features, as numbers
    or, when fewer than nine in ten of a column's cells are numbers, as texts. Parquet: the same, with numbers and
    texts by the types of the columns (`scenarios.data.parquet`). npz: X (n, d) and y (n,), or
    X_train, X_test, y_train and y_test for an official split; `label` names another array than y, each of `groups`
    an array (n,), or two with _train and _test, and `feature_names` (d,) the columns, if present.

    Raises `InputError` for missing or unreadable values (naming file, line and column), unknown names, texts
    that are nearly all different, real labels that are no finite numbers, labels outside the declared `classes` and,
    unless these are declared, labels of one class or with more values than 20 and than a third of the rows.
    """
    npz = _suffix(path) == ".npz"
    table = _from_npz(path, label, groups, real) if npz else _from_sheet(_sheet(path), label, groups, real)
    if real:
        return table
    if classes is not None:
        return table.with_classes(classes)
    if len(table.classes) > max(_CLASSES_OF_A_SMALL_FILE, len(table) * _SHARE_OF_CLASSES):
        raise InputError(
            f"data.label: '{label or 'y'}' of {path} looks like a measurement or an identifier, not a class: "
            f"{len(table.classes)} values in {len(table)} rows; name another label or declare data.classes"
        )
    if not 2 <= len(table.classes) <= _MOST_CLASSES:
        raise InputError(
            f"{path}: the labels must be of 2 to {_MOST_CLASSES} classes, got {len(table.classes)} "
            f"({listed([*map(cut, table.classes)], 3)}); name another label or other rows"
        )
    return table


def read_rows(path: Path, columns: Sequence[str], text: Sequence[int] = ()) -> np.ndarray:
    """Unlabelled rows (n, d) with the raw columns of a model, of which those numbered in `text` are texts.

    CSV and Parquet: columns are found by name, others are ignored. npz: the array X, with d columns in the same order.
    Raises `InputError` for missing columns and unreadable values.
    """
    if _suffix(path) == ".npz":
        rows = Archive(path).tables("X")[0].astype(np.float64)
        if rows.shape[1] != len(columns):
            raise InputError(f"{path}: X must have the {len(columns)} columns of the model, got {rows.shape[1]}")
        return rows
    return _features(_sheet(path), columns, text)


def read_group(path: Path, name: str) -> np.ndarray:
    """The values (n,) of one column, which say where each row belongs: whole numbers if they all are, else texts.

    npz: the array of that name. Raises `InputError` for a missing column and for missing values.
    """
    if _suffix(path) == ".npz":
        archive = Archive(path)
        return _joined(archive, name, ("",), archive.tables("X"))
    return _as_integers(_complete(_sheet(path), name))


def _suffix(path: Path) -> str:
    """The type of an existing file. Raises `InputError` for an unknown type and when there is no such file."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path} must be a file of the type {' or '.join(SUFFIXES)}")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it")
    if not path.is_file():
        raise InputError(f"there is no such file: {path.name} in {path.parent.absolute()}; correct the name or folder")
    return path.suffix.lower()


def _sheet(path: Path) -> Sheet | ParquetSheet:
    return read_parquet(path) if path.suffix.lower() == ".parquet" else read_sheet(path)


def _from_sheet(sheet: Sheet | ParquetSheet, label: str | None, groups: Sequence[str], real: bool) -> Table:
    path = sheet.path
    if label is None:
        raise InputError(f"data.label must name the label column of {path}; it has {sheet.names}")
    classes, labels = ((), sheet.numbers(label)) if real else encode_labels(_complete(sheet, label))
    grouped = {name: _as_integers(_complete(sheet, name)) for name in groups}
    columns = tuple(name for name in sheet.header if name != label and name not in grouped)
    if not columns:
        raise InputError(f"{path} must have a column beside '{label}' that can be a feature")
    text = tuple(i for i, name in enumerate(columns) if sheet.is_text(name))
    for name in (columns[i] for i in text):
        _require_categories(sheet, name)
    return Table(path.name, columns, classes, labels, (_features(sheet, columns, text),), text, grouped)


def _require_categories(sheet: Sheet | ParquetSheet, name: str) -> None:
    """Refuse a column of texts that are nearly all different: misread numbers, or identifiers."""
    cells = sheet.texts(name).tolist()
    texts = [cell for cell in dict.fromkeys(cells) if not is_missing(cell)]
    if len(texts) > max(_TEXTS_OF_A_SMALL_FILE, len(cells) * _SHARE_OF_TEXTS):
        raise InputError(
            f"{sheet.path}: column '{name}' holds {len(texts)} different texts in {len(cells)} rows, such as "
            f"'{cut(texts[0])}'; write numbers with a point and no signs, or remove the column"
        )


def _features(sheet: Sheet | ParquetSheet, columns: Sequence[str], text: Sequence[int]) -> np.ndarray:
    return np.column_stack([sheet.codes(c) if i in text else sheet.numbers(c) for i, c in enumerate(columns)])


def _complete(sheet: Sheet | ParquetSheet, name: str) -> np.ndarray:
    """A column of texts without a gap."""
    texts = sheet.texts(name)
    row = _first_missing(texts)
    if row is not None:
        raise InputError(f"{sheet.place(row)}: column '{name}' is missing; correct it or remove the row")
    return texts


def _first_missing(values: np.ndarray) -> int | None:
    """The first row whose text says that its value is not known."""
    return next(
        (row for row, value in enumerate(values.tolist()) if isinstance(value, str) and is_missing(value)), None
    )


def _as_integers(texts: np.ndarray) -> np.ndarray:
    """The same as whole numbers, if they all are, so that they sort by value."""
    try:
        return texts.astype(np.int64)
    except ValueError:
        return texts


def _from_npz(path: Path, label: str | None, groups: Sequence[str], real: bool) -> Table:
    archive = Archive(path)
    parts = ("",) if "X" in archive else ("_train", "_test")
    if f"X{parts[0]}" not in archive:
        raise InputError(
            f"{path} must hold the arrays X and y, or X_train, X_test, y_train and y_test; "
            f"it has {', '.join(archive.names) or 'none'}"
        )
    blocks = archive.tables(*(f"X{part}" for part in parts))
    width = blocks[0].shape[1]
    found = _joined(archive, label or "y", parts, blocks)
    classes, labels = ((), _numbers(path, label or "y", found)) if real else encode_labels(found)
    return Table(
        path.name,
        _column_names(archive, width),
        classes,
        labels,
        (np.concatenate(blocks),) if len(blocks) > 1 else (blocks[0],),
        groups={name: _joined(archive, name, parts, blocks) for name in groups},
        official=official_split(*map(len, blocks)) if len(blocks) > 1 else None,
    )


def _numbers(path: Path, name: str, labels: np.ndarray) -> np.ndarray:
    """The labels of an array as float64 (n,)."""
    if labels.dtype.kind not in "iufb":
        raise InputError(f"{path}: array '{name}' holds texts, and real labels are numbers; name another in data.label")
    return labels.astype(np.float64)


def official_split(train: int, test: int) -> tuple[np.ndarray, np.ndarray]:
    """Row indices of `train` training rows followed by `test` test rows."""
    return np.arange(train), np.arange(train, train + test)


def _joined(archive: Archive, name: str, parts: Sequence[str], blocks: Sequence[np.ndarray]) -> np.ndarray:
    """One value per row, of all parts, without a gap."""
    vectors = []
    for part, block in zip(parts, blocks, strict=True):
        vectors.append(archive.vector(f"{name}{part}", len(block)))
        row = _first_missing(vectors[-1])
        if row is not None:
            raise InputError(
                f"{archive.path}: array '{name}{part}', row {row} (counted from 0) is missing; correct it or "
                "remove the row"
            )
    return np.concatenate(vectors)


def _column_names(archive: Archive, width: int) -> tuple[str, ...]:
    if "feature_names" not in archive:
        return tuple(f"x{i}" for i in range(width))
    return tuple(map(str, archive.vector("feature_names", width)))
