"""Sheets for readers of data files: columns as numbers, texts or times, with errors that name file, line and column.

`Stored` reads Parquet files that are larger than memory: each column when it is used, or some rows at a time. Arrival
times are numbers, ISO dates and times, or whole months, quarters and weeks.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError, nearest_name
from federation.features.feature_map import text_code
from federation.numerics.rows import Floats, Integers
from scenarios.data.hashing import HashedRows, Hashing, hashed_texts, made_from
from scenarios.data.tables import CodedTexts, Table, cut, listed

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.dataset import Expression


# A CSV column with at least this share of numbers is meant to be one: a cell that is none is then a mistake.
_NUMERIC_SHARE = 0.9
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
NO_TEXT = text_code("")  # stands for every missing cell among texts, however it is written
_COLUMNS_SHOWN = 20
_LONGEST_LINE = 1 << 24  # characters that may name columns
_MOST_CHARACTERS = 1 << 29  # of an array of texts, each as long as the longest: 2 GiB
_BLOCK = 1 << 24  # bytes of a large file that are parsed at a time
_TEXTS_AT_A_TIME = 1 << 13  # of which words are hashed
_MOST_TEXTS = 1 << 16  # different ones in a column, each of which two bytes can tell apart


@dataclass(frozen=True, eq=False)
class Sheet:
    """The columns of a Parquet file, or those of a CSV file, all of texts, with the `separator` of its cells.

    Parquet: integers, floats, decimals and booleans (1 is true) are numbers, strings are texts; a column of any other
    type is refused when it is used. A null is missing, as is an empty cell or a word such as NA. A column that is made
    of the words of another one (`scenarios.data.hashing`) is a column of numbers where that one is there. Row 0 is row
    `first` of the file.
    """

    path: Path
    table: pyarrow.Table | Stored
    separator: str | None = None
    first: int = 0
    _whole: dict[Hashing, Floats] = field(default_factory=dict, repr=False)

    @property
    def header(self) -> list[str]:
        """Names of the columns."""
        return list(self.table.column_names)

    @property
    def names(self) -> str:
        """The first columns by name, for messages."""
        return listed([*map(cut, self.header)], _COLUMNS_SHOWN)

    def is_text(self, name: str) -> bool:
        """Whether Parquet says so or, of CSV, fewer than nine in ten of the cells that are not missing are numbers."""
        if self.separator is None:
            return _is_string(self._type(name))
        column = self._column(name)
        if np.isfinite(_floats(column)).all():
            return False
        present = {cell: n for cell, n in Counter(column.to_pylist()).items() if not is_missing(cell)}
        numbers = sum(n for cell, n in present.items() if _float(cell) is not None)
        return numbers < _NUMERIC_SHARE * sum(present.values())

    def numbers(self, name: str, *, missing: bool = False) -> Floats:
        """A column as float64 (n,), NaN for what is missing if that is allowed.

        Raises `InputError` naming the first line or row that holds something else than a finite number.
        """
        values, others = self.readings(name)
        for row in (others if missing else np.flatnonzero(np.isnan(values)))[:1].tolist():
            cell = self._column(name)[row].as_py()
            found = repr(cut(cell)) if isinstance(cell, str) else cell
            raise self._problem(row, name, "is missing" if is_missing(cell) else f"is {found}, not a finite number")
        return values

    def readings(self, name: str) -> tuple[Floats, Integers]:
        """A column as float64 (n,), NaN where there is no finite number, and the rows that hold something else there.

        Raises `InputError` as `is_text`, for nothing that a cell holds.
        """
        if self.table.schema.get_field_index(name) < 0 and (made := made_from(name)) and made[0].column is not None:
            if made[0] not in self._whole:
                self._whole[made[0]] = self.hashed(made[0]).whole(str(self.path))
            return self._whole[made[0]][:, made[1]], np.empty(0, dtype=np.int64)
        column = self._column(name)
        values = _floats(column)
        unknown = np.flatnonzero(~np.isfinite(values))
        values[unknown] = np.nan
        other = [not is_missing(cell) for cell in column.take(unknown).to_pylist()]
        return values, unknown[np.array(other, dtype=bool)]

    def texts(self, name: str) -> list[str]:
        """A column as n texts without the spaces around them; numbers are written out, a null is the empty text."""
        different_ones, codes = self.coded(name)
        return [different_ones[code] for code in codes.tolist()]

    def coded(self, name: str, *, complete: bool = False, dated: bool = False) -> tuple[list[str], Integers]:
        """The same: texts in the order in which they come first, and the position (n,) of each row's among them.

        Dates are written out, too, if the column may be `dated`. Texts that differ by the spaces around them stand
        there twice. Raises `InputError` naming the first line or row that is missing, if they are to be `complete`, and
        of a text so long that an array of n such texts would take more than 2 GiB.
        """
        column = self._column(name, dated).dictionary_encode(null_encoding="encode")
        codes = np.concatenate([np.empty(0, np.int64), *(chunk.indices.to_numpy() for chunk in column.chunks)])
        cells = column.chunk(0).dictionary.to_pylist() if column.num_chunks else []
        longest = _MOST_CHARACTERS // max(1, len(codes))
        for code, cell in enumerate(cells if complete else ()):
            if is_missing(cell) or len(str(cell)) > longest:
                problem = f"is a text of {len(str(cell))} characters, too long for one of {len(codes)}"
                row = int((codes == code).argmax())
                raise self._problem(row, name, "is missing" if is_missing(cell) else problem)
        return ["" if cell is None else str(cell).strip() for cell in cells], codes

    def parts(self, names: Sequence[str]) -> Iterator[Sheet]:
        """The columns `names` by their rows in order, few at a time where they lie in large files; else itself."""
        if not isinstance(self.table, Stored):
            yield self
            return
        first = 0
        for part in self.table.parts(names):
            yield Sheet(self.path, part, self.separator, first)
            first += part.num_rows

    def hashed(self, hashing: Hashing) -> HashedRows:
        """The words of a column (n, 2^bits); a missing cell has none."""
        column = self._column(str(hashing.column))
        parts = (column.slice(start, _TEXTS_AT_A_TIME) for start in range(0, len(column), _TEXTS_AT_A_TIME))
        texts = (["" if is_missing(cell) else str(cell) for cell in part.to_pylist()] for part in parts)
        return hashed_texts(texts, hashing)

    def codes(self, name: str) -> Floats:
        """A column as `text_code` numbers, float64 (n,); what is missing has the number `NO_TEXT`."""
        texts, codes = self.coded(name)
        return np.array([NO_TEXT if is_missing(text) else text_code(text) for text in texts])[codes]

    def _column(self, name: str, dated: bool = False) -> pyarrow.ChunkedArray:
        """Raises `InputError` as `_type`."""
        wanted = self._type(name, dated)
        column = self.table.column(name)
        return column if column.type == wanted else column.cast(wanted)

    def _type(self, name: str, dated: bool = False) -> pyarrow.DataType:
        """What a column is used as. Raises `InputError` for one that is unknown, with the nearest name, or unusable."""
        from pyarrow import string, types

        if (place := self.table.schema.get_field_index(name)) < 0:
            raise InputError(
                f"{self.path} has no column '{cut(name)}'; it has {self.names}{nearest_name(name, self.header)}"
            )
        found = self.table.schema.field(place).type
        found = found.value_type if types.is_dictionary(found) else found
        if types.is_string_view(found) or (dated and types.is_temporal(found)):  # Arrow cannot take from the former
            return string()
        known = (_is_string, types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
        if not any(is_one(found) for is_one in known):
            raise InputError(
                f"{self.path}: column '{name}' holds {found}, neither numbers nor texts; turn it into one of "
                "them or remove the column"
            )
        return found

    def place(self, row: int) -> str:
        """Where a row is, for messages: the file with the line, or the number of the row."""
        if self.separator is None:
            return f"{self.path}, row {self.first + row} (counted from 0)"
        lines = (line for line, _ in _rows(self.path, self.separator))
        return f"{self.path}:{next(islice(lines, row + 1, None))}"

    def _problem(self, row: int, name: str, problem: str) -> InputError:
        return InputError(f"{self.place(row)}: column '{name}' {problem}; correct it or remove the row")


def is_missing(cell: object) -> bool:
    """Whether a cell says that its value is not known: nothing, blank, or a usual word for it such as NA."""
    return cell is None or str(cell).strip().lower() in _MISSING


def read_csv(path: Path) -> Sheet:
    """The cells of a UTF-8 file separated by commas, semicolons or tabs, whichever its header has most of.

    Raises `InputError` for an unreadable file, a header that does not name every column, and ragged rows.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            first = file.readline(_LONGEST_LINE)
        if len(first) == _LONGEST_LINE:
            raise InputError(f"{path}:1: the first line, of the columns' names, has no end; name a table in CSV format")
        separator = max(",;\t", key=lambda mark: len(next(csv.reader([first], delimiter=mark), [])))
        rows = _rows(path, separator)
        header = _checked_header(path, next(rows, (1, []))[1])
        table = _fast_table(path, separator, header)
        return Sheet(path, _slow_table(path, rows, header) if table is None else table, separator)
    except UnicodeDecodeError as error:
        readable, *_ = re.split("[\udc80-\udcff]", path.read_text("utf-8", errors="surrogateescape"), maxsplit=1)
        line = readable.count("\n") + 1
        raise InputError(f"{path} is not UTF-8 text (line {line}); save it as UTF-8") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; check the path") from error
    except csv.Error as error:
        raise InputError(f"{path} cannot be read as CSV: {error}; check its quotation marks") from error


def read_large(
    path: Path,
    numbers: Sequence[str],
    texts: Sequence[str],
    wanted: Expression,
    *,
    separator: str = ",",
    names: Sequence[str] | None = None,
) -> tuple[dict[str, Floats], CodedTexts]:
    """The columns `numbers`, each float64 (n,) with NaN for what is missing, and `texts` of the `wanted` rows.

    `names` are those of all columns of a file without a header, whose cells have no quotation marks. The file is read
    in blocks and never in memory as a whole. Raises `InputError` for a file that cannot be read so, missing columns,
    columns with more than 65536 different texts, and no rows.
    """
    import pyarrow
    from pyarrow import csv as arrow_csv
    from pyarrow import dataset

    types = dict.fromkeys(numbers, pyarrow.float64())
    types |= dict.fromkeys(texts, pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))
    if names is None:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            found = next(csv.reader([file.readline()], delimiter=separator), [])
        if missing := [name for name in types if name not in found]:
            raise InputError(
                f"{path} lacks the columns {', '.join(missing)}; it has {listed(found, _COLUMNS_SHOWN) or 'none'}"
            )
    form = dataset.CsvFileFormat(
        read_options=arrow_csv.ReadOptions(column_names=names, block_size=_BLOCK, use_threads=False),
        parse_options=arrow_csv.ParseOptions(delimiter=separator, quote_char='"' if names is None else False),
        convert_options=arrow_csv.ConvertOptions(column_types=types),
    )
    try:
        rows = dataset.dataset(path, pyarrow.schema(types), form).to_table(filter=wanted, use_threads=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path} is not of the documented format ({said(error)}); name another file") from error
    if not rows.num_rows:
        raise InputError(f"{path} has no row with a label; name a file of the documented format")
    codes, vocabularies = np.empty((rows.num_rows, len(texts)), dtype=np.uint16), []
    for i, name in enumerate(texts):
        column = rows.column(name).unify_dictionaries().combine_chunks()
        used, codes_of_used = np.unique(column.indices.to_numpy(), return_inverse=True)
        if len(used) > _MOST_TEXTS:
            raise InputError(f"{path}: column '{name}' has more than {_MOST_TEXTS} different texts")
        codes[:, i] = codes_of_used
        vocabularies.append(np.array([text_code(text.strip()) for text in column.dictionary.take(used).to_pylist()]))
    return {name: rows.column(name).to_numpy() for name in numbers}, CodedTexts(codes, tuple(vocabularies))


def _rows(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The last line and the cells of every row that is not blank, and of the first one even then.

    Raises `InputError` for a NUL, which pads files that were cut short and text in another encoding.
    """
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=separator, skipinitialspace=True)
        for row in reader:
            if any("\0" in cell for cell in row):
                raise InputError(f"{path}:{reader.line_num} holds a NUL, which is no text; save it as UTF-8")
            if row or reader.line_num == 1:
                yield reader.line_num, row


def _fast_table(path: Path, separator: str, header: list[str]) -> pyarrow.Table | None:
    """All cells as texts; None for a file that only `_slow_table` can read, or say what is wrong with."""
    import pyarrow
    from pyarrow import compute
    from pyarrow import csv as arrow_csv

    try:
        table = arrow_csv.read_csv(
            path,
            arrow_csv.ReadOptions(column_names=header, skip_rows_after_names=1, use_threads=False),
            arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            arrow_csv.ConvertOptions(column_types=dict.fromkeys(header, pyarrow.string())),
        )
    except pyarrow.ArrowInvalid:
        return None
    for column in table.columns:
        # Where spaces stand before a quotation mark, pyarrow takes it for a part of the cell; a NUL is no text; and a
        # cell as long as that may be due to a mark that is missing.
        unusual = compute.any(compute.match_substring_regex(column, r'^\s*"|\x00')).as_py()
        if unusual or (compute.max(compute.binary_length(column)).as_py() or 0) > csv.field_size_limit():
            return None
    return table if table.num_rows else None


def _slow_table(path: Path, rows: Iterator[tuple[int, list[str]]], header: list[str]) -> pyarrow.Table:
    """All cells as texts. Raises `InputError` for ragged rows and for none."""
    import pyarrow

    cells = []
    for line, row in rows:
        if len(row) != len(header):
            raise InputError(
                f"{path}:{line}: the header names {len(header)} columns, this row has {len(row)}; correct it or "
                "remove the row"
            )
        cells.append(row)
    if not cells:
        raise InputError(f"{path} has no rows below its header")
    return pyarrow.table([pyarrow.array(column) for column in zip(*cells, strict=True)], names=header)


def _checked_header(path: Path, cells: list[str]) -> list[str]:
    header = [cell.strip() for cell in cells]
    if not any(header) or all(_float(cell) is not None for cell in header):
        found = listed([*map(cut, header)], _COLUMNS_SHOWN) or "nothing"
        raise InputError(f"{path}:1: the first line must name the columns, got {found}")
    return different(header, f"{path}:1: the header")


def different(names: list[str], place: str) -> list[str]:
    """The same column names, none of them missing or repeated, else `InputError`."""
    known: set[str] = set()
    for i, name in enumerate(names):
        if not name or name in known:
            problem = f"the name '{cut(name)}' twice" if name else f"no name for column {i + 1}"
            raise InputError(f"{place} has {problem}; rename or remove the column")
        known.add(name)
    return names


def _is_string(kind: pyarrow.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _floats(column: pyarrow.ChunkedArray) -> Floats:
    """A column as float64 (n,), NaN for what is no number."""
    import pyarrow

    try:
        values = column.cast("float64", safe=False).to_numpy()
    except pyarrow.ArrowInvalid:  # Python knows more spellings of numbers
        values = [*map(_float, column.to_pylist())]
    return np.array(values, dtype=np.float64)


def _float(cell: str | None) -> float | None:
    """The number, perhaps NaN or infinite, that a cell spells; None for a text."""
    try:
        # Python reads 1_000 as a number; in a data file it is a text.
        return None if cell is None or "_" in cell else float(cell)
    except ValueError:
        return None


FORMS = "a number, an ISO date or time, or a month (2023-02), quarter (2023-Q1) or week (2023-W07)"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTH, _QUARTER, _WEEK = (re.compile(rf"(\d{{4}})-{last}") for last in (r"(\d\d)", r"Q([1-4])", r"W(\d\d)"))


def moment(text: str) -> tuple[float, bool]:
    """A moment and whether it is a date: a number as it is, a date in seconds since 1970 (of a span: its beginning).

    Times without a zone are taken for UTC. Raises `ValueError` for what is neither.

    Examples:
        >>> moment("12.5"), moment("1970-01-02"), moment("1970-W02"), moment("1970-02")
        ((12.5, False), (86400.0, True), (345600.0, True), (2678400.0, True))
    """
    try:
        number = float(text)
    except ValueError:
        return (_dated(text) - _EPOCH).total_seconds(), True
    if not math.isfinite(number):
        raise ValueError(text)
    return number, False


def moments(table: Table, name: str) -> tuple[Floats, bool]:
    """When each row arrived (n,) by the column `name`, and whether these are dates, as of `moment`.

    The column is a group of the table, which is no feature, or one of its columns of numbers. Raises `InputError` for
    an unknown one, values that are no moments, and numbers among dates.

    Examples:
        >>> days = np.array(["2023-02-01", "2023-02-03"])
        >>> table = Table("toy", ("x",), ("a", "b"), np.array([0, 1]), (np.zeros((2, 1)),), groups={"day": days})
        >>> moments(table, "day")
        (array([1.6752e+09, 1.6754e+09]), True)
    """
    if name not in table.groups:
        return table.column(name, "data.time"), False
    values, rows, codes = np.unique(table.groups[name], return_index=True, return_inverse=True)
    found = [_of_row(table, value, row) for value, row in zip(values.tolist(), rows.tolist(), strict=True)]
    if len({dated for _, dated in found}) > 1:
        number, other = (next(i for i, (_, dated) in enumerate(found) if dated is which) for which in (False, True))
        raise InputError(
            f"data.time: the column '{cut(name)}' of '{table.name}' has numbers and dates, such as "
            f"'{cut(str(values[number]))}' and '{cut(str(values[other]))}'; write all of them in one way"
        )
    return np.array([at for at, _ in found])[codes], found[0][1]


def _of_row(table: Table, value: Any, row: int) -> tuple[float, bool]:
    try:
        return moment(str(value).strip())
    except ValueError:
        raise InputError(
            f"data.time: '{cut(str(value))}' in row {row} (counted from 0) of '{table.name}' is not {FORMS}"
        ) from None


def _dated(text: str) -> datetime:
    if found := _MONTH.fullmatch(text):
        return datetime(int(found[1]), int(found[2]), 1, tzinfo=UTC)
    if found := _QUARTER.fullmatch(text):
        return datetime(int(found[1]), 3 * int(found[2]) - 2, 1, tzinfo=UTC)
    if found := _WEEK.fullmatch(text):
        monday = date.fromisocalendar(int(found[1]), int(found[2]), 1)
        return datetime(monday.year, monday.month, monday.day, tzinfo=UTC)
    known = datetime.fromisoformat(text)
    return known.replace(tzinfo=UTC) if known.tzinfo is None else known


def seconds(values: Floats) -> NDArray[np.datetime64]:
    """Dates in seconds since 1970 as dates."""
    return np.asarray(np.floor(values).astype(np.int64).astype("datetime64[s]"))


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
