"""Parquet files larger than memory: their columns, each read when it is used, or some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from federation.contract.errors import InputError

if TYPE_CHECKING:  # imported where it is used, because the command line must start without it
    import pyarrow

_ROWS_READ = 1 << 16  # at a time
_CHARACTERS_SHOWN = 160  # of what pyarrow says


@dataclass(frozen=True)
class Stored:
    """The columns of Parquet files of equal columns, one below the other, each read when it is used.

    A part of what a `pyarrow.Table` offers: whoever reads raises `InputError` where a file is damaged.
    """

    files: tuple[Path, ...]
    schema: pyarrow.Schema
    num_rows: int

    @property
    def stamp(self) -> list[str]:
        """Changes when a file does."""
        stats = [(file, file.stat()) for file in self.files]
        return [f"{file.resolve()} {found.st_mtime_ns} {found.st_size}" for file, found in stats]

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    def column(self, name: str) -> pyarrow.ChunkedArray:
        """One column of all rows."""
        from pyarrow import chunked_array

        parts = [part.column(name) for part in self.parts([name])]
        return chunked_array([chunk for part in parts for chunk in part.chunks], self.schema.field(name).type)

    def parts(self, names: Sequence[str]) -> Iterator[pyarrow.Table]:
        """Some columns, by their rows in order, at most 65,536 at a time."""
        from pyarrow import Table
        from pyarrow.parquet import ParquetFile

        for file in self.files:
            with readable(file), ParquetFile(file) as opened:
                for batch in opened.iter_batches(_ROWS_READ, columns=list(names), use_threads=False):
                    batch.validate(full=True)
                    yield Table.from_batches([batch])


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turns what pyarrow raises while a file is read into an `InputError` that names it."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} is damaged or not a Parquet file ({said(error)}); write it again or name another"
        ) from error


def said(error: Exception) -> str:
    """The last reason that pyarrow gives, on one line."""
    return " ".join(str(error).split()).rpartition("Invalid: ")[2][:_CHARACTERS_SHOWN]
