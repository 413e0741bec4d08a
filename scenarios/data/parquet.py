"""Parquet files, one or many, as a sheet: read as a whole, or what is used of them where they are large."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from federation.contract.errors import InputError
from scenarios.data.patterns import files_of
from scenarios.data.sheets import Sheet, different
from scenarios.data.stored import Stored, readable

if TYPE_CHECKING:  # imported where it is used, because the command line must start without it
    import pyarrow
    from pyarrow.parquet import FileMetaData

_ALWAYS_READ, _MOST_EXPANDED = 1 << 31, 1032  # bytes that a file may claim, and per byte of a larger one
_WHOLE = 1 << 27  # cells up to which files are read as a whole: 1 GiB of numbers


def read_parquet(path: Path) -> Sheet:
    """The columns of a Parquet file, or of all files of a pattern (`scenarios.data.patterns`), one below the other.

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
