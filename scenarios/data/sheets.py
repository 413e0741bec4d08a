"""CSV files with a header, and their cells as numbers or texts, with errors that name file and line."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from federation.contract.errors import InputError, nearest_name
from federation.features.feature_map import text_code
from scenarios.data.tables import cut, listed

# A column with at least this share of numbers is meant to be one: a cell that is none is then a mistake.
_NUMERIC_SHARE = 0.9
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_COLUMNS_SHOWN = 20


@dataclass(frozen=True, eq=False)
class Sheet:
    """The cells of a CSV file, column by column; `lines` are the line numbers of its n rows."""

    path: Path
    header: tuple[str, ...]
    cells: tuple[Sequence[str], ...]
    lines: tuple[int, ...]

    @property
    def names(self) -> str:
        """The first columns by name, for messages."""
        return listed([*map(cut, self.header)], _COLUMNS_SHOWN)

    def place(self, row: int) -> str:
        """Where a row is, for messages."""
        return f"{self.path}:{self.lines[row]}"

    def column(self, name: str) -> Sequence[str]:
        """The cells of a column. Raises `InputError` with the nearest name when there is none."""
        if name not in self.header:
            raise InputError(
                f"{self.path} has no column '{name}'; it has {self.names}{nearest_name(name, self.header)}"
            )
        return self.cells[self.header.index(name)]

    def is_text(self, name: str) -> bool:
        """Whether fewer than nine in ten of the cells that are not missing are numbers."""
        cells = self.column(name)
        if _floats(cells) is not None:
            return False
        present = {cell: n for cell, n in Counter(cells).items() if not is_missing(cell)}
        numbers = sum(n for cell, n in present.items() if _floats([cell]) is not None)
        return numbers < _NUMERIC_SHARE * sum(present.values())

    def numbers(self, name: str) -> np.ndarray:
        """A column as float64 (n,). Raises `InputError` naming the first line that holds no finite number."""
        cells = self.column(name)
        values = _floats(cells)
        if values is None or not np.isfinite(values).all():
            row, cell = next(
                (row, cell)
                for row, cell in enumerate(cells)
                if (value := _floats([cell])) is None or not np.isfinite(value).all()
            )
            problem = "is missing" if is_missing(cell) else f"is {cut(cell)!r}, not a finite number"
            raise InputError(f"{self.place(row)}: column '{name}' {problem}; correct it or remove the row")
        return values

    def texts(self, name: str) -> np.ndarray:
        """A column as texts (n,), without the spaces around them."""
        return np.array([cell.strip() for cell in self.column(name)], dtype=np.str_)

    def codes(self, name: str) -> np.ndarray:
        """A text column as `text_code` numbers, float64 (n,)."""
        texts = [cell.strip() for cell in self.column(name)]
        codes = {text: text_code(text) for text in set(texts)}
        return np.array([codes[text] for text in texts])


def is_missing(cell: str) -> bool:
    """Whether a cell says that its value is not known: blank, or a usual word for it such as NA."""
    return cell.strip().lower() in _MISSING


def read_sheet(path: Path) -> Sheet:
    """The cells of a UTF-8 file separated by commas, semicolons or tabs, whichever its header has most of.

    Raises `InputError` for an unreadable file, a header that does not name every column, and ragged rows.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            file.seek(0)
            separator = max(",;\t", key=lambda mark: len(next(csv.reader([first], delimiter=mark), [])))
            reader = csv.reader(file, delimiter=separator, skipinitialspace=True)
            header = _checked_header(path, next(reader, []))
            rows, lines = [], []
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise InputError(
                        f"{path}:{reader.line_num}: the header names {len(header)} columns, "
                        f"this row has {len(row)}; correct it or remove the row"
                    )
                rows.append(row)
                lines.append(reader.line_num)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (line {_undecodable_line(path)}); save it as UTF-8") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; check the path") from error
    except csv.Error as error:
        raise InputError(f"{path} cannot be read as CSV: {error}; check its quotation marks") from error
    if not rows:
        raise InputError(f"{path} has no rows below its header")
    return Sheet(path, header, tuple(zip(*rows, strict=True)), tuple(lines))


def _undecodable_line(path: Path) -> int:
    """Number of the first line that is not UTF-8; the error of a buffered reader knows no position."""
    content = path.read_bytes()
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1
    return 1


def _checked_header(path: Path, cells: list[str]) -> tuple[str, ...]:
    header = tuple(cell.strip() for cell in cells)
    if not any(header) or all(cell and _floats([cell]) is not None for cell in header):
        found = listed([*map(cut, header)], _COLUMNS_SHOWN) or "nothing"
        raise InputError(f"{path}:1: the first line must name the columns, got {found}")
    for i, name in enumerate(header):
        if not name or name in header[:i]:
            problem = f"the name '{name}' twice" if name else f"no name for column {i + 1}"
            raise InputError(f"{path}:1: the header has {problem}; rename or remove the column")
    return header


def _floats(cells: Sequence[str]) -> np.ndarray | None:
    """Cells as float64, NaN and infinities included; None when one of them is no number."""
    try:
        values = np.array(list(map(float, cells)))
    except ValueError:
        return None
    # Python reads 1_000 as a number; in a data file it is a text.
    return None if any("_" in cell for cell in cells) else values
