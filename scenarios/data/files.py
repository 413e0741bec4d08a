"""One's own data: a CSV or Parquet file with named columns, an npz file with the arrays X and y, or svmlight."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregator.trial.feature_fitting import are_identifiers
from federation.contract.errors import InputError, nearest_name
from federation.numerics.rows import Floats, Integers
from scenarios.data.hashing import HashedRows, Hashing, read_for
from scenarios.data.readers import LABEL, Archive, hashed_table, is_pattern, is_there, read_parquet, read_svmlight
from scenarios.data.row_storage import complete, features_of
from scenarios.data.sheets import Sheet, is_missing, read_csv
from scenarios.data.tables import Table, cut, encode_labels, listed

SVMLIGHT = (".svm", ".svmlight")
SUFFIXES = (".csv", ".npz", ".parquet", *SVMLIGHT)
_MOST_CLASSES = 1000
# Labels with more values than this and than a third of the rows are measurements or identifiers.
CLASSES_OF_A_SMALL_FILE, _SHARE_OF_CLASSES = 20, 1 / 3
# Texts with more values than this and than half of the rows are misread numbers or identifiers.
_TEXTS_OF_A_SMALL_FILE, _SHARE_OF_TEXTS = 50, 1 / 2
_COLUMNS_SHOWN = 20


def read_table(
    path: Path,
    label: str | None,
    groups: Sequence[str] = (),
    classes: Sequence[str] | None = None,
    real: bool = False,
    missing: bool = False,
    drop: Sequence[str] = (),
    hashes: Sequence[Hashing] = (),
) -> Table:
    """The labelled rows of a CSV, npz, Parquet or svmlight file; `real` labels are real numbers without a range yet.

    If cells may be `missing`, those without a value (empty, null, NaN, words such as NA) are NaN among numbers, and
    among texts all the same text, the empty one.

    CSV: `label` names the column of the labels; all other columns but `groups` and `drop` are features, as numbers
    or, when fewer than nine in ten of a column's cells are numbers, as texts. Parquet: the same, with numbers and
    texts by the types of the columns (`scenarios.data.sheets`). npz: X (n, d) and y (n,), or
    X_train, X_test, y_train and y_test for an official split; `label` names another array than y, each of `groups`
    an array (n,), or two with _train and _test, and `feature_names` (d,) the columns, if present. svmlight: columns are
    x1, x2, ... and y, the labels. `path` may be a pattern of several Parquet or svmlight files
    (`scenarios.data.readers`). Large Parquet files are not held in memory (`scenarios.data.row_storage`).

    `hashes`: columns of texts whose words become columns of numbers, after all others; or, of svmlight, all columns,
    of which then only what is not zero is kept.

    Raises `InputError` for missing or unreadable values (naming file, line and column), unknown names, texts
    that are nearly all different, real labels that are no finite numbers, labels outside the declared `classes` and,
    unless these are declared, labels of one class or with more values than 20 and than a third of the rows.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "people.csv")
        ...     _ = path.write_text("age,city,ill\\n30,Rome,yes\\n41,Oslo,no\\n52,Rome,yes\\n")
        ...     table = read_table(path, "ill", groups=["city"])
        >>> table.columns, table.classes, table.labels.tolist(), table.groups["city"].tolist()
        (('age',), ('no', 'yes'), [1, 0, 1], ['Rome', 'Oslo', 'Rome'])
    """
    ending = suffix(path)
    _require_hashable(path, ending, hashes)
    if ending == ".npz":
        table = _from_npz(path, label, groups, real, missing, drop)
    elif ending in SVMLIGHT and hashes:
        table = hashed_table(path, label, groups, hashes[0], real, drop)
    else:
        table = _from_sheet(open_sheet(path), label, groups, real, missing, drop, hashes)
    if real:
        return table
    if classes is not None:
        return table.with_classes(classes)
    if too_many_classes(len(table.classes), len(table)):
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


def read_rows(
    path: Path,
    columns: Sequence[str],
    text: Sequence[int] = (),
    *,
    missing: bool = False,
    unused: Collection[int] = (),
) -> Floats:
    """Unlabelled rows (n, d) with the raw columns of a model, of which those numbered in `text` are texts.

    CSV and Parquet: columns are found by name, others are ignored, and those numbered in `unused` may be missing, which
    are not read. npz: the array X, with d columns in the same order.
    Cells may be `missing` as for `read_table`. Raises `InputError` for missing columns and unreadable values.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "new.csv")
        ...     _ = path.write_text("height;note;weight\\n1.8;tall;80\\n1.6;;65\\n")
        ...     read_rows(path, ("weight", "height"))
        array([[80. ,  1.8],
               [65. ,  1.6]])
    """
    if suffix(path) == ".npz":
        rows = Archive(path).tables("X", missing=True)[0].astype(np.float64)
        if rows.shape[1] != len(columns):
            raise InputError(f"{path}: X must have the {len(columns)} columns of the model, got {rows.shape[1]}")
        return complete(rows, path, columns) if not missing else rows
    return features_of(open_sheet(path, columns), columns, text, missing, unused)


def read_public(path: Path, table: Table, source: str, *, missing: bool = False) -> Floats:
    """Rows (n, d) of a file of public rows, with the columns of a `table` that was read from the file `source`.

    CSV and Parquet: columns are found by name, and others, such as labels, are ignored; which columns are texts is as
    in the table. npz: the array X with the columns of the table, in the same order. Cells may be `missing` as for
    `read_table`. Raises `InputError`, which names both files, for columns that the public file lacks.
    """
    if suffix(path) != ".npz":
        sheet = open_sheet(path, table.columns)
        _require_columns(path, sheet.header, table, source)
        return features_of(sheet, table.columns, table.text, missing)
    archive = Archive(path)
    rows = archive.tables("X", missing=True)[0].astype(np.float64)
    found = archive.column_names("feature_names", rows, needed=False)
    _require_columns(path, found, table, source)
    rows = rows[:, [found.index(name) for name in table.columns]]
    return rows if missing else complete(rows, path, table.columns)


def _require_columns(path: Path, found: Sequence[str], table: Table, source: str) -> None:
    """Refuse a file of public rows that lacks a feature of the private ones. Raises `InputError`."""
    if lacking := [name for name in dict.fromkeys(map(read_for, table.columns)) if name not in found]:
        other = [name for name in found if name not in table.columns]
        shown = f"; it has {listed([*map(cut, other)], _COLUMNS_SHOWN)}, which {source} has not" if other else ""
        raise InputError(
            f"data.auxiliary: {path} lacks {len(lacking)} of the {len(table.columns)} columns that are features of "
            f"{source}, {listed([*map(cut, lacking)], _COLUMNS_SHOWN)}{shown}; add or rename them, or leave them out "
            "of both with data.drop"
        )


def read_group(path: Path, name: str) -> NDArray[Any]:
    """The values (n,) of one column, which say where each row belongs: whole numbers if they all are, else texts.

    npz: the array of that name. Raises `InputError` for a missing column and for missing values.
    """
    if suffix(path) == ".npz":
        archive = Archive(path)
        return archive.joined(name, ("",), archive.tables("X", missing=True))
    return _group(open_sheet(path), name)


def suffix(path: Path) -> str:
    """The type of an existing file. Raises `InputError` for an unknown type and when there is no such file."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path} must be a file of the type {' or '.join(SUFFIXES)}")
    if not is_there(path):
        raise InputError(f"there is no such file: {path.name} in {path.parent.absolute()}; correct the name or folder")
    if is_pattern(path) and path.suffix.lower() not in (".parquet", *SVMLIGHT):
        several = "stands for several files, which only Parquet and svmlight files can be"
        raise InputError(f"{path} {several}; join them, or name one")
    return path.suffix.lower()


def open_sheet(path: Path, columns: Sequence[str] = ()) -> Sheet:
    """The cells of a CSV, Parquet or svmlight file; `columns` are wanted of the last even where they are all zero.

    Raises `InputError` for one that cannot be read.
    """
    if path.suffix.lower() in SVMLIGHT:
        return read_svmlight(path, columns)
    return read_parquet(path) if path.suffix.lower() == ".parquet" else read_csv(path)


def _from_sheet(
    sheet: Sheet,
    label: str | None,
    groups: Sequence[str],
    real: bool,
    missing: bool,
    drop: Sequence[str],
    hashes: Sequence[Hashing],
) -> Table:
    path = sheet.path
    label = LABEL if label is None and path.suffix.lower() in SVMLIGHT else label
    if label is None:
        raise InputError(f"data.label must name the label column of {path}; it has {sheet.names}")
    classes, labels = ((), sheet.numbers(label)) if real else _classes(sheet, label)
    grouped = {name: _group(sheet, name, dated=True) for name in groups}
    blocks: list[HashedRows] = [sheet.hashed(one) for one in hashes]
    made, words = [name for one in hashes for name in one.names], {one.column for one in hashes}
    others = [name for name in sheet.header if name != label and name not in grouped and name not in words]
    columns = _kept(path, others, drop, label, empty=bool(made))
    text = tuple(i for i, name in enumerate(columns) if sheet.is_text(name))
    for name in (columns[i] for i in text):
        _require_categories(sheet, name)
    rows = features_of(sheet, columns, text, missing)
    remarks = tuple(_remarks(columns, rows, text))
    return Table(path.name, (*columns, *made), classes, labels, (rows, *blocks), text, grouped, remarks=remarks)


def _require_hashable(path: Path, ending: str, hashes: Sequence[Hashing]) -> None:
    """Refuse stages {hash: ...} of data.features that do not go with the type of a file. Raises `InputError`."""
    if not hashes:
        return
    if ending == ".npz":
        raise InputError(
            f"data.features: hash is for svmlight files and for texts in CSV and Parquet files, and {path} holds "
            "numbers; use {project: DIMENSIONS} to have fewer columns of them"
        )
    if ending in SVMLIGHT and (len(hashes) > 1 or hashes[0].column is not None):
        raise InputError(
            f"data.features: {path} has no columns of texts; hash all of its columns by one stage, such as {{hash: 12}}"
        )
    if ending not in SVMLIGHT and any(one.column is None for one in hashes):
        raise InputError(
            f"data.features: hash must name the column of texts of {path}, as in {{hash: {{column: NAME, bits: 12}}}}"
        )


def _remarks(columns: Sequence[str], rows: Floats, text: Sequence[int]) -> Iterator[str]:
    """A sentence for each column of numbers that are identifiers."""
    for i in sorted({*range(len(columns))} - {*text}):
        name = cut(columns[i])
        if are_identifiers(columns[i], rows[:, i]):
            yield (
                f"'{name}' looks like an identifier, a number that no two rows share; if it says whose row it is, name "
                f"it in data.person, else leave it out with data.drop: ['{name}']"
            )


def _kept(path: Path, columns: Sequence[str], drop: Sequence[str], label: str, empty: bool = False) -> tuple[str, ...]:
    """The columns that stay features. Raises `InputError` where one to drop is none of them, and where none stays and
    there must not be `empty` ones."""
    for name in drop:
        if name not in columns:
            known = listed([*map(cut, columns)], _COLUMNS_SHOWN)
            raise InputError(
                f"data.drop: '{cut(name)}' is no column of {path} that would be a feature; those are {known}"
                + nearest_name(name, columns)
            )
    kept = tuple(name for name in columns if name not in drop)
    if not kept and not empty:
        left = "; data.drop leaves none" if drop else ""
        raise InputError(f"{path} must have a column beside '{label}' that can be a feature{left}")
    return kept


def _require_categories(sheet: Sheet, name: str) -> None:
    """Refuse a column of texts that are nearly all different: misread numbers, or identifiers."""
    cells, codes = sheet.coded(name)
    texts = [cell for cell in dict.fromkeys(cells) if not is_missing(cell)]
    if too_many_texts(len(texts), len(codes)):
        raise InputError(
            f"{sheet.path}: column '{name}' holds {len(texts)} different texts in {len(codes)} rows, such as "
            f"'{cut(texts[0])}'; write numbers with a point and no signs; if it says whose row it is, name it in "
            f"data.person, else leave it out with data.drop: ['{cut(name)}']"
        )


def too_many_classes(different: int, rows: int) -> bool:
    """Whether labels of so many different values in so many rows are no classes.

    Examples:
        >>> too_many_classes(40, 100), too_many_classes(40, 1000), too_many_classes(20, 20)
        (True, False, False)
    """
    return different > max(CLASSES_OF_A_SMALL_FILE, rows * _SHARE_OF_CLASSES)


def too_many_texts(different: int, rows: int) -> bool:
    """Whether a column of so many different texts in so many rows holds no categories.

    Examples:
        >>> too_many_texts(60, 100), too_many_texts(60, 1000), too_many_texts(30, 40)
        (True, False, False)
    """
    return different > max(_TEXTS_OF_A_SMALL_FILE, rows * _SHARE_OF_TEXTS)


def _classes(sheet: Sheet, label: str) -> tuple[tuple[str, ...], Integers]:
    """The classes of a column, and the position (n,) of each row's among them."""
    texts, codes = sheet.coded(label, complete=True)
    classes, positions = encode_labels(np.array(texts))
    return classes, positions[codes]


def _group(sheet: Sheet, name: str, dated: bool = False) -> Integers | NDArray[np.str_]:
    """A column without missing cells (n,): as whole numbers, if they all are, so that they sort by value."""
    texts, codes = sheet.coded(name, complete=True, dated=dated)
    try:
        return np.array(texts).astype(np.int64)[codes]
    except (ValueError, OverflowError):
        return np.array(texts)[codes]


def _from_npz(
    path: Path, label: str | None, groups: Sequence[str], real: bool, missing: bool, drop: Sequence[str]
) -> Table:
    archive = Archive(path)
    parts = ("",) if "X" in archive else ("_train", "_test")
    if f"X{parts[0]}" not in archive:
        raise InputError(
            f"{path} must hold the arrays X and y, or X_train, X_test, y_train and y_test; it has {archive.listed}"
        )
    blocks = archive.tables(*(f"X{part}" for part in parts), missing=True)
    found = archive.joined(label or "y", parts, blocks)
    if real and found.dtype.kind not in "iufb":
        raise InputError(
            f"{path}: array '{label or 'y'}' holds texts, and real labels are numbers; name another in data.label"
        )
    classes, labels = ((), found.astype(np.float64)) if real else encode_labels(found)
    names = archive.column_names("feature_names", blocks[0], needed=False)
    columns, rows = _kept(path, names, drop, label or "y"), np.concatenate(blocks) if len(blocks) > 1 else blocks[0]
    rows = rows[:, [i for i, name in enumerate(names) if name in columns]] if drop else rows
    return Table(
        path.name,
        columns,
        classes,
        labels,
        (rows if missing or rows.dtype.kind != "f" else complete(rows, path, columns),),
        groups={name: archive.joined(name, parts, blocks) for name in groups},
        official=official_split(*map(len, blocks)) if len(blocks) > 1 else None,
    )


def official_split(train: int, test: int) -> tuple[Integers, Integers]:
    """Row indices of `train` training rows followed by `test` test rows."""
    return np.arange(train), np.arange(train, train + test)
