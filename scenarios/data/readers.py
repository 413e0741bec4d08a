"""Readers of svmlight, npz and Parquet files, one file or several that a pattern names, for `scenarios.data.files`.

A pattern such as `days/Day*.svm` makes several files one source, in the order of their numbers.

The formats need different amounts of memory:

- svmlight rows are read in pieces of a file. A sheet keeps their zeros; hashed rows need memory for their non-zero
  entries only.
- Parquet files become a sheet: as a whole, or for large files only the columns in use.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError, nearest_name
from federation.contract.files import is_file
from federation.contract.npz_files import NpzFile
from federation.contract.query import MOST_COLUMNS
from federation.numerics.rows import Integers
from scenarios.data.hashing import MOST_CELLS, HashedRows, Hashing, SparseHasher, made_from
from scenarios.data.sheets import Sheet, Stored, different, is_missing, readable
from scenarios.data.tables import Table, cut, encode_labels, pieces

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import FileMetaData
    from scipy.sparse import csr_matrix


LABEL, FILE = "y", "file"
_FEATURE = re.compile(r"x([1-9][0-9]{0,8})")
_PIECE = 1 << 24  # bytes of a file that are read at a time


class SparseFile(NamedTuple):
    """Hashed rows of one or more files, their labels (n,), and which file each is from, by its name without ending."""

    rows: HashedRows
    labels: np.ndarray
    files: np.ndarray


def read_hashed(path: Path, hashing: Hashing) -> SparseFile:
    """The rows of the file, or of the files of the pattern, at `path`, in 2^bits columns.

    Memory is that of a piece of a file of 16 MB, of what is not zero in the hashed rows, and of the names of the
    columns as numbers. Raises `InputError` as `read_svmlight`, and for an index beyond 2^24.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     for day in (0, 1):
        ...         _ = Path(folder, f"Day{day}.svm").write_text("+1 4:0.5 3200000:1\\n-1 2:4\\n")
        ...     found = read_hashed(Path(folder, "*.svm"), Hashing(10))
        >>> found.rows.shape, found.labels.tolist(), found.files.tolist()
        ((4, 1024), [1, -1, 1, -1], ['Day0', 'Day0', 'Day1', 'Day1'])
    """
    hasher, labels, names, sizes = SparseHasher(hashing.bits), [], [], []

    def batches() -> Iterator[csr_matrix]:
        for file in files_of(path):
            for rows, found in _pieces(file):
                labels.append(found)
                names.append(file.stem)
                sizes.append(len(found))
                yield hasher.rows(rows)

    hashed = HashedRows.of(batches(), hashing.width)
    if not len(hashed) or not len(hashed.values):
        raise InputError(f"{path} has no rows with a value; name another file")
    found = _labels(labels)
    if not np.isfinite(found).all():
        row = int(np.isfinite(found).argmin())
        raise InputError(
            f"{path}: the label of row {row} (counted from 0) is {found[row]}; correct it or remove the row"
        )
    return SparseFile(hashed, found, np.repeat(names, sizes))


def hashed_table(
    path: Path, label: str | None, groups: Sequence[str], hashing: Hashing, real: bool, drop: Sequence[str] = ()
) -> Table:
    """The rows of `read_hashed` as a table, with the group `file` where it is asked for.

    Raises `InputError` for another label or group, for columns to drop, and as `read_hashed`.
    """
    if label not in (None, LABEL):
        raise InputError(f"data.label: the labels of {path} are '{LABEL}', got '{cut(str(label))}'; leave it out")
    for name in groups:
        if name != FILE:
            raise InputError(
                f"{path} has no column '{cut(name)}' by which rows could be dealt; its only one is '{FILE}', the name "
                f"of the file that a row is from{nearest_name(name, [FILE])}"
            )
    if drop:
        raise InputError(f"data.drop: the columns of {path} are hashed together; leave drop out")
    rows, labels, files = read_hashed(path, hashing)
    classes, codes = ((), labels.astype(np.float64)) if real else encode_labels(labels)
    return Table(path.name, hashing.names, classes, codes, (rows,), groups=dict.fromkeys(groups, files))


def read_svmlight(path: Path, columns: Sequence[str] = ()) -> Sheet:
    """A sheet with the columns x1, x2, ... up to the largest index in the file or among `columns`, and the labels y.

    Every line has a label and the pairs INDEX:VALUE of the non-zero entries of a row. Indices start at 1, as svmlight
    and LIBSVM have them. With hashed `columns`, as a model has them, these are there
    instead. `path` may be a pattern of several files. Raises `InputError` for a file of another format, without rows,
    and with more than 2^27 cells, zeros among them.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "toy.svmlight")
        ...     _ = path.write_text("1 1:0.5 3:2\\n-1 2:4  # a comment\\n")
        ...     sheet = read_svmlight(path)
        >>> sheet.header, sheet.numbers("x3").tolist(), sheet.texts("y")
        (['x1', 'x2', 'x3', 'y'], [2.0, 0.0], ['1', '-1'])
    """
    import pyarrow
    from scipy.sparse import vstack

    if hashed := next((known[0] for name in columns if (known := made_from(name)) and known[0].column is None), None):
        found = read_hashed(path, hashed)
        cells = dict(zip(hashed.names, found.rows.whole(str(path)).T, strict=True))
        return Sheet(path, pyarrow.table({**cells, LABEL: found.labels}))
    pieces = [piece for file in files_of(path) for piece in _pieces(file)]
    if not pieces or not any(rows.nnz for rows, _ in pieces):
        raise InputError(f"{path} has no rows with a value; name another file")
    rows, wanted = vstack([rows for rows, _ in pieces], "csr"), map(_FEATURE.fullmatch, columns)
    width = max([int(rows.indices.max()) + 1, *(int(found[1]) for found in wanted if found)])
    if rows.shape[0] * width > MOST_CELLS:
        raise InputError(
            f"{path} has {rows.shape[0]} rows of {width} columns, zeros among them, more than the {MOST_CELLS} cells "
            "that are kept; let data.features begin with {hash: 12}, which keeps what is not zero in 2^12 columns, or "
            "take fewer rows"
        )
    rows.resize(rows.shape[0], width)
    cells = {f"x{i + 1}": column for i, column in enumerate(rows.toarray().T)}
    return Sheet(path, pyarrow.table({**cells, LABEL: _labels([labels for _, labels in pieces])}))


def _pieces(file: Path) -> Iterator[tuple[csr_matrix, np.ndarray]]:
    """Rows with their labels, in pieces of a file. Raises `InputError` where it is of another format."""
    from sklearn.datasets import load_svmlight_file

    try:
        for start in range(0, file.stat().st_size, _PIECE):
            rows, labels = load_svmlight_file(
                str(file), n_features=MOST_COLUMNS, zero_based=False, offset=start, length=_PIECE
            )
            if len(labels):
                yield rows, labels
    except (ValueError, OverflowError, OSError) as error:
        said = " ".join(str(error).split())[:120]
        raise InputError(
            f"{file} is not of the svmlight format ({said}); every line is LABEL INDEX:VALUE ..., with indices from 1 "
            f"to {MOST_COLUMNS}"
        ) from error


def _labels(parts: Sequence[np.ndarray]) -> np.ndarray | Integers:
    labels = np.concatenate(parts)
    return labels.astype(np.int64) if (labels == np.floor(labels)).all() else labels


_ALWAYS_READ, _MOST_EXPANDED = 1 << 31, 1032  # bytes that a file may claim, and per byte of a larger one
_WHOLE = 1 << 27  # cells up to which files are read as a whole: 1 GiB of numbers


def read_parquet(path: Path) -> Sheet:
    """The columns of a Parquet file, or of all files of a pattern (`files_of`), one below the other.

    Of 2^27 cells or more, columns are read when they are used. Raises `InputError` for an unreadable file, one without
    rows, columns of one name, a stored pandas index, and files whose columns differ.
    """
    from pyarrow import concat_tables
    from pyarrow.parquet import ParquetFile

    files = files_of(path)
    rows, schemas = zip(*map(_examined, files), strict=True)
    schema = schemas[0]
    for file, found in zip(files, schemas, strict=True):
        if not found.equals(schema):
            names = sorted(str(field) for field in {*found} ^ {*schema}) or found.names
            raise InputError(f"{file} has other columns than {files[0].name}: {', '.join(names[:4])}; write it again")
    if not sum(rows):
        raise InputError(f"{path} has no rows; name a file with some")
    for name in different(schema.names, str(path)):
        if name.startswith("__index_level_"):
            raise InputError(f"{path} holds a pandas index as the column '{name}'; write it with index=False")
    if sum(rows) * len(schema.names) >= _WHOLE:
        return Sheet(path, Stored(tuple(files), schema, sum(rows)))
    tables = []
    for file in files:
        with readable(file), ParquetFile(file) as opened:
            tables.append(opened.read(use_threads=False))
            tables[-1].validate(full=True)  # else texts that are no UTF-8 are found when they are used
    return Sheet(path, tables[0] if len(tables) == 1 else concat_tables(tables))


def _examined(path: Path) -> tuple[int, pyarrow.Schema]:
    """How many rows a file has, and the columns, which can be read. Raises `InputError`."""
    from pyarrow.parquet import ParquetFile

    with readable(path), ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            # Raises where a column's own description is damaged: to ask for that then would end the process.
            next(file.iter_batches(1, [number], use_threads=False), None)
        _require_plausible(path, file.metadata)
        return int(file.metadata.num_rows), file.schema_arrow.remove_metadata()


def _require_plausible(path: Path, stored: FileMetaData) -> None:
    """Refuse a file that claims far more cells than it has bytes: a few bytes may stand for any number of equal ones.

    Cells are counted as numbers of 8 bytes, and up to 2 GiB of them may be claimed by the smallest file.
    """
    groups = map(stored.row_group, range(stored.num_row_groups))
    cells = sum(group.column(i).num_values for group in groups for i in range(group.num_columns))
    if 8 * cells > max(_ALWAYS_READ, _MOST_EXPANDED * path.stat().st_size):
        raise InputError(f"{path} claims {cells} cells, far more than a file of its size can mean; write it again")


class Archive(NpzFile):
    """The arrays of one npz file of rows and labels; errors name the file and the array.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     np.savez(Path(folder, "toy.npz"), X=np.ones((3, 2)), y=np.array([0, 1, 0]))
        ...     archive = Archive(Path(folder, "toy.npz"))
        >>> list(archive), archive.vector("y", 3).tolist(), archive.tables("X")[0].shape
        (['X', 'y'], [0, 1, 0], (3, 2))
    """

    def tables(self, *names: str, missing: bool = False) -> list[NDArray[Any]]:
        """The arrays (n, d) of those names.

        Raises `InputError` unless they are of equal width, and of numbers that are finite or, if cells may be
        `missing`, NaN.
        """
        tables = [self.mapped(name) for name in names]
        for name, values in zip(names, tables, strict=True):
            if values.ndim != 2 or values.dtype.kind not in "iufb" or values.size == 0:
                raise self._of_another_form(name, "numbers in rows and columns", values)
            if values.dtype.kind != "f":
                continue
            for start, part in pieces(values):
                with np.errstate(over="ignore"):
                    part = part.astype(np.float64, copy=False)  # as it will be used: a long double may be beyond
                allowed = ~np.isinf(part) if missing else np.isfinite(part)
                if not allowed.all():
                    row, column = np.argwhere(~allowed)[0]
                    raise InputError(
                        f"{self.path}: array '{name}', row {start + row}, column {column} (counted from 0) is "
                        f"{part[row, column]}; remove or replace such values"
                    )
        widths = {table.shape[1] for table in tables}
        if len(widths) > 1:
            raise InputError(f"{self.path}: {' and '.join(names)} must have equal columns, got {sorted(widths)}")
        return tables

    def vector(self, name: str, length: int, *, names: bool = False) -> NDArray[Any]:
        """The array (length,) of that name: numbers or texts, none of them missing. Raises `InputError` for others.

        NaN, blank texts and words such as NA are missing values; among `names` such a word is one.
        """
        values = self[name]
        if values.shape != (length,) or values.dtype.kind not in "iufbU":
            raise self._of_another_form(name, f"{length} numbers or texts", values)
        different, first = np.unique(values, return_index=True)
        missing = [is_missing(value) and not (names and value) for value in different.tolist()]
        if any(missing):
            row = first[missing].min()
            raise InputError(
                f"{self.path}: array '{name}', row {row} (counted from 0) is missing; correct it or remove the row"
            )
        return values

    def joined(self, name: str, parts: Sequence[str], blocks: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The arrays of that name with the endings `parts`, one after the other, with a value per row of `blocks`."""
        return np.concatenate(
            [self.vector(f"{name}{part}", len(block)) for part, block in zip(parts, blocks, strict=True)]
        )

    def column_names(self, name: str, rows: NDArray[Any], *, needed: bool = True) -> tuple[str, ...]:
        """The texts of the array `name`, one for each column of `rows` (n, d); x0, x1, ... where it need not exist."""
        if not needed and name not in self:
            return tuple(f"x{i}" for i in range(rows.shape[1]))
        return tuple(map(str, self.vector(name, rows.shape[1], names=True).tolist()))

    def _of_another_form(self, name: str, wanted: str, values: NDArray[Any]) -> InputError:
        return InputError(f"{self.path}: array '{name}' must hold {wanted}, got {values.dtype} of shape {values.shape}")


def files_of(path: Path) -> list[Path]:
    """The file at `path`, or all files of a pattern with * or ? in its last part, Day2 before Day10.

    Raises `InputError` for a pattern without files.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     for day in (10, 2):
        ...         Path(folder, f"Day{day}.svm").touch()
        ...     [file.name for file in files_of(Path(folder, "Day*.svm"))]
        ['Day2.svm', 'Day10.svm']
    """
    if not is_pattern(path):
        return [path]
    if not (found := _matching(path)):
        raise InputError(f"there is no file {path.name} in {path.parent.absolute()}; correct the pattern or folder")
    return found


def is_there(path: Path) -> bool:
    """Whether there is a file, or one of a pattern."""
    return bool(_matching(path)) if is_pattern(path) else is_file(path)


def is_pattern(path: Path) -> bool:
    """Whether it stands for several files: no file has that name, and * or ? is in it."""
    return bool(re.search(r"[*?]", path.name)) and not is_file(path)


def _matching(path: Path) -> list[Path]:
    found = path.parent.glob(glob.escape(path.name).replace("[*]", "*").replace("[?]", "?"))
    return sorted((file for file in found if is_file(file)), key=_by_number)


def _by_number(file: Path) -> list[tuple[int, str]]:
    """A name as texts and numbers, which sort by value."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", file.name)]
