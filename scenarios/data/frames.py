"""Rows of the user's data frames (pandas, Polars, DuckDB, Arrow), and unlabelled rows for a released model.

Frames are read through Arrow, so none of the libraries that made them is imported. `read_unlabelled` reads new rows
with the raw columns of a model. Of hashed columns it keeps only the non-zero entries.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from federation.contract.errors import InputError
from scenarios.data.catalogue import digest
from scenarios.data.files import SVMLIGHT, open_sheet, read_rows, suffix
from scenarios.data.hashing import made_from
from scenarios.data.readers import read_hashed
from scenarios.data.row_storage import features_of, require_there
from scenarios.data.sheets import Sheet
from scenarios.data.tables import Table

if TYPE_CHECKING:
    import pyarrow

_FRAME = "the data frame"  # what messages say where they name a file
_DIGITS = 16  # of a digest, in a name


def is_frame(data: object) -> bool:
    """Whether this is a table that Arrow can read: it has the PyCapsule interface or the interchange protocol.

    Examples:
        >>> import pyarrow
        >>> is_frame(pyarrow.table({"age": [30, 41]})), is_frame([[30], [41]])
        (True, False)
    """
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__dataframe__")


def sheet(frame: Any, wanted: Sequence[str] = ()) -> Sheet:
    """The columns of a data frame, as if it had been written to a Parquet file and read from there.

    The index of a pandas frame is no column. Where all `wanted` columns are there, others may hold anything. Raises
    `InputError` for what is no data frame, one without rows, columns without names or of one name, and columns that
    Arrow cannot take.

    Examples:
        >>> import pyarrow
        >>> sheet(pyarrow.table({"age": [30, 41], "city": ["Rome", None]})).texts("city")
        ['Rome', '']
    """
    import pyarrow
    from pyarrow import interchange

    if not is_frame(frame):
        raise InputError(
            "data must be a data frame of pandas, Polars, DuckDB, Arrow or another library that has __arrow_c_stream__ "
            f"or __dataframe__, got {type(frame).__name__}; name a file in data.source instead"
        )
    frame = _narrowed(frame, wanted)
    try:
        capsule = hasattr(frame, "__arrow_c_stream__")
        table = pyarrow.table(frame) if capsule else interchange.from_dataframe(frame)
    except (pyarrow.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        raise InputError(f"{_FRAME} has a column that Arrow cannot take: {_line(error)}; convert it") from error
    if not table.num_rows:
        raise InputError(f"{_FRAME} has no rows; give one with some")
    index = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not name or name in columns:
            problem = f"two columns named '{name}'" if name else "a column without a name"
            raise InputError(f"{_FRAME} has {problem}; rename or remove it")
        if name not in index:
            columns[name] = _plain(column)
    return Sheet(Path(_FRAME), pyarrow.table(columns).combine_chunks())


def _narrowed(frame: Any, wanted: Sequence[str]) -> Any:
    """Only the wanted columns of a frame as pandas and Polars have them, where they are there."""
    names = list(getattr(frame, "columns", ())) if hasattr(frame, "__dataframe__") else []
    named = len(wanted) > 0 and all(isinstance(name, str) for name in names)
    return frame[[*wanted]] if named and {*wanted} <= {*names} else frame


@contextmanager
def as_file(frame: Any) -> Iterator[tuple[str, Path]]:
    """A Parquet file with the rows of a data frame, for as long as the context lasts: its name, and its folder.

    Every process of a run reads it there, and nothing of it stays. The name holds the digest of the contents: frames
    of equal columns give files of equal names and bytes, whatever library they are of. An `InputError` that names the
    file comes out as one about the data frame. Raises `InputError` as `sheet` does, and where no file can be written.
    """
    from pyarrow import ArrowException
    from pyarrow.parquet import write_table

    with TemporaryDirectory(prefix="federation-") as folder:
        path = Path(folder).resolve() / "frame.parquet"
        try:
            write_table(sheet(frame).table, path)
        except (ArrowException, OSError) as error:
            raise InputError(f"{_FRAME} cannot be kept as a file: {_line(error)}") from error
        path = path.rename(path.with_name(f"frame-{(digest(str(path)) or '')[:_DIGITS]}.parquet"))
        try:
            yield path.name, path.parent
        except InputError as error:
            text = str(error).replace(f"'{path.name}'", _FRAME).replace(str(path), _FRAME)
            raise InputError(text) from error


def _plain(column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """Texts of one type in place of categories and of the many kinds of texts, so that equal contents are equal."""
    import pyarrow
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    known = (types.is_string, types.is_large_string, types.is_string_view)
    return column.cast(pyarrow.large_string()) if any(is_one(column.type) for is_one in known) else column


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def read_unlabelled(
    path: Path,
    columns: Sequence[str],
    text: Sequence[int] = (),
    *,
    missing: bool = False,
    unused: Collection[int] = (),
) -> Table:
    """The rows of `scenarios.data.files.read_rows` as a table, whose labels are all 0.

    Its last blocks are those of hashed columns, where these come last and whole, as models have them: so there may be
    more of such rows than memory holds with their zeros. Raises `InputError` as `read_rows`.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> names = [f"hash(x, 2 bits)[{place}]" for place in range(4)]
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "new.svm")
        ...     _ = path.write_text("1 4:0.5\\n1 2:4\\n")
        ...     read_unlabelled(path, names)
        Table('new.svm': 2 rows, 4 columns, real labels)
    """
    hashes = list(dict.fromkeys(known[0] for name in columns if (known := made_from(name)) is not None))
    plain = len(columns) - sum(one.width for one in hashes)
    if not hashes or [*columns[max(plain, 0) :]] != [name for one in hashes for name in one.names]:
        rows = read_rows(path, columns, text, missing=missing, unused=unused)
        return Table(path.name, tuple(columns), (), np.zeros(len(rows)), (rows,), tuple(text))
    if plain == 0 and hashes[0].column is None and suffix(path) in SVMLIGHT:
        hashed = read_hashed(path, hashes[0]).rows
        return Table(path.name, tuple(columns), (), np.zeros(len(hashed)), (hashed,))
    sheet = open_sheet(path, columns)
    require_there(sheet, columns, unused)
    rows = features_of(sheet, columns[:plain], text, missing, unused)
    made = [sheet.hashed(one) for one in hashes]
    return Table(path.name, tuple(columns), (), np.zeros(len(rows)), (rows, *made), tuple(text))
