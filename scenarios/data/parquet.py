"""Parquet files, read as CSV files are (`scenarios.data.sheets`): numbers and texts by the types of their columns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from federation.contract.errors import InputError, nearest_name
from federation.features.feature_map import text_code
from scenarios.data.tables import cut, listed

if TYPE_CHECKING:
    import pyarrow

_COLUMNS_SHOWN = 20


@dataclass(frozen=True, eq=False)
class ParquetSheet:
    """The columns of a Parquet file, with the methods of `scenarios.data.sheets.Sheet`.

    Integers, floats, decimals and booleans (1 is true) are numbers, strings are texts; a column of any other type is
    refused when it is used, and so is one with a missing value.
    """

    path: Path
    table: pyarrow.Table

    @property
    def header(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.table.column_names)

    @property
    def names(self) -> str:
        """The first columns by name, for messages."""
        return listed([*map(cut, self.header)], _COLUMNS_SHOWN)

    def place(self, row: int) -> str:
        """Where a row is, for messages."""
        return f"{self.path}, row {row} (counted from 0)"

    def is_text(self, name: str) -> bool:
        """Whether the column holds strings. Raises `InputError` for types that are neither texts nor numbers."""
        from pyarrow import types

        kind = self._column(name).type
        if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            return True
        number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)
        if not number and not types.is_null(kind):
            raise InputError(
                f"{self.path}: column '{name}' holds {kind}, neither numbers nor texts; turn it into one of them or "
                "remove the column"
            )
        return False

    def numbers(self, name: str) -> np.ndarray:
        """A column as float64 (n,). Raises `InputError` naming the first row that holds no finite number."""
        if self.is_text(name):
            cell = self._complete(name)[0].as_py()
            raise InputError(f"{self.place(0)}: column '{name}' is {cut(cell)!r}, not a number; correct its type")
        values = self._complete(name).cast("float64", safe=False).to_numpy()
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            problem = "is missing" if np.isnan(values[row]) else f"is {values[row]}, not a finite number"
            raise InputError(f"{self.place(row)}: column '{name}' {problem}; correct it or remove the row")
        return np.asarray(values, dtype=np.float64)

    def texts(self, name: str) -> np.ndarray:
        """A column as texts (n,), without the spaces around them; numbers are written out."""
        self.is_text(name)
        return np.array([str(value).strip() for value in self._complete(name).to_pylist()], dtype=np.str_)

    def codes(self, name: str) -> np.ndarray:
        """A column as `text_code` numbers, float64 (n,)."""
        texts = self.texts(name).tolist()
        codes = {text: text_code(text) for text in set(texts)}
        return np.array([codes[text] for text in texts])

    def _column(self, name: str) -> pyarrow.ChunkedArray:
        if name not in self.header:
            raise InputError(
                f"{self.path} has no column '{name}'; it has {self.names}{nearest_name(name, self.header)}"
            )
        from pyarrow import types

        column = self.table.column(name)
        return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column

    def _complete(self, name: str) -> pyarrow.ChunkedArray:
        """A column without a gap."""
        column = self._column(name)
        if column.null_count:
            row = int(np.argmax(column.is_null().to_numpy()))
            raise InputError(f"{self.place(row)}: column '{name}' is missing; correct it or remove the row")
        return column


def read_parquet(path: Path) -> ParquetSheet:
    """The columns of a Parquet file.

    Raises `InputError` for an unreadable file, one without rows, columns of one name, and a stored pandas index.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise InputError(f"{path}: reading Parquet needs the package pyarrow ({error}); install it") from error
    try:
        with ParquetFile(path) as file:
            table = file.read(use_threads=False)
    except (ArrowException, OSError) as error:
        raise InputError(f"{path} is damaged or not a Parquet file ({' '.join(str(error).split())[:100]})") from error
    if not table.num_rows:
        raise InputError(f"{path} has no rows")
    for name, times in Counter(table.column_names).items():
        if times > 1 or not name:
            problem = f"the name '{name}' twice" if name else "a column without a name"
            raise InputError(f"{path} has {problem}; rename or remove the column")
        if name.startswith("__index_level_"):
            raise InputError(f"{path} holds a pandas index as the column '{name}'; write it with index=False")
    return ParquetSheet(path, table)
