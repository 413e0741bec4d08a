"""Files in svmlight format: a label, then pairs INDEX:VALUE of what is not zero, in every line.

Rows are read in pieces of a file. As a sheet they are kept with their zeros; hashed, in the memory of what is not zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from federation.contract.errors import InputError, nearest_name
from federation.contract.query import MOST_COLUMNS
from federation.numerics.rows import Integers
from scenarios.data.hashing import MOST_CELLS, HashedRows, Hashing, SparseHasher, made_from
from scenarios.data.patterns import files_of
from scenarios.data.sheets import Sheet
from scenarios.data.tables import Table, cut, encode_labels

if TYPE_CHECKING:  # imported where it is used, because it takes a while
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

    Indices start at 1, as svmlight and LIBSVM have them. With hashed `columns`, as a model has them, these are there
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
