"""Output of all commands: one record, printed as JSON, as tables for people, or as CSV.

- On a terminal, lines wrap between words; elsewhere a line stays one line.
- CSV cells are safe in a spreadsheet, which would run a text that begins like a formula.
"""

import csv
import io
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TextIO, TypeGuard

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from federation.contract.errors import writing

_ENDLESS = 10_000  # columns of a terminal in which everything fits
_WIDE = 6  # columns from which on they stand closer, to fit a terminal of 80 characters


def tell(as_json: bool, record: object, *, text: Iterable[str] = (), hidden: Collection[str] = ()) -> None:
    """Print what was found on standard output: `record` as JSON, or for people the same in tables, and `text`.

    Every list of records in it is a table with a column per key, and what else it holds one of quantities and values.
    Of `hidden` keys people see nothing but what `text` says; a row's `note` stands below its table. Where a terminal is
    too narrow for a table every row of it is one of its own. `text` is `fitted`, but for parts of several lines.

    Examples:
        >>> tell(False, {"epsilon": 0.5, "to_be_read": True}, text=["That is little."])
         quantity   ┃ value
        ━━━━━━━━━━━━╇━━━━━━━
         epsilon    │ 0.5
         to be read │ yes
        That is little.
    """
    if as_json:
        print(json.dumps(record, indent=2))
        return
    found = record if isinstance(record, Mapping) else {"": record}
    lists = {key: value for key, value in found.items() if key not in hidden and _records(value)}
    names = [key for key in found if key not in {*hidden, *lists}]
    alone = [{"quantity": name.replace("_", " "), "value": _shown(found[name], digits=10)} for name in names]
    for title, rows in {"": alone, **lists}.items():
        cells = [{key: _shown(row[key]) for key in row if key not in {*hidden, "note"}} for row in rows]
        console = Console()
        for table in _tables(title, cells, console) if cells else ():
            console.print(table)
        for row in rows:
            if row.get("note"):
                print(fitted(f"{next(iter(row.values()))}: {row['note']}.", sys.stdout))
    for line in text:
        print(line if "\n" in line else fitted(line, sys.stdout))


def _tables(title: str, rows: Sequence[Mapping[str, str]], console: Console) -> list[Table]:
    """The rows in one table, or where words of it would be broken each in one of its own."""
    whole, endless = _table(title, rows), console.options.update(width=_ENDLESS)
    if Measurement.get(console, endless, whole).minimum <= console.width:
        return [whole]
    each = ([{"quantity": key.replace("_", " "), "value": value} for key, value in row.items()] for row in rows)
    return [_table(title, cells) for cells in each]


def _table(title: str, rows: Sequence[Mapping[str, str]]) -> Table:
    """A column per key; one without spaces is never broken."""
    table = Table(title=title.replace("_", " "), show_edge=False, padding=(0, 0 if len(rows[0]) >= _WIDE else 1))
    for key in rows[0]:
        head = key.replace("_", " ")
        whole = not any(" " in cell for cell in (head, *(row[key] for row in rows)))
        table.add_column(head, overflow="fold", no_wrap=whole)
    for row in rows:
        table.add_row(*row.values())
    return table


def _records(value: object) -> TypeGuard[Sequence[Mapping[str, object]]]:
    return isinstance(value, Sequence) and bool(value) and isinstance(value[0], Mapping)


def _shown(value: object, digits: int = 4) -> str:
    """A cell: floats with so many digits, those among several named numbers with seven."""
    match value:
        case None | bool():
            return {None: "-", True: "yes", False: "no"}[value]
        case float():
            return f"{value:.{digits}g}"
        case Mapping():
            return ", ".join(f"{name.replace('_', ' ')} {_shown(each, digits=7)}" for name, each in value.items())
        case list() | tuple():
            return ",".join(_shown(each, digits) for each in value)
    return str(value)


def save(option: str, path: Path, text: str) -> None:
    """Write a file that `option` names. Raises `InputError` where that is not possible."""
    with writing(f"to {option} {path}", "name another file"):
        path.write_text(text, encoding="utf-8", newline="")


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)


def csv_lines(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows of equal keys, one at least, below a line that names them; formulas are made texts, as `plain` does.

    Examples:
        >>> print(csv_lines([{"row": 0, "prediction": "=1+1"}, {"row": 1, "prediction": "-7"}]), end="")
        row,prediction
        0,'=1+1
        1,-7
    """
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    for cells in (rows[0], *(row.values() for row in rows)):
        writer.writerow([plain(cell) if isinstance(cell, str) else cell for cell in cells])
    return table.getvalue()


def plain(text: str) -> str:
    """A text behind an apostrophe if it begins with = + - @, a tab or a carriage return; numbers stay as they are.

    Spreadsheets show what follows the apostrophe as text (OWASP, "CSV Injection").

    Examples:
        >>> plain("@SUM(A1)"), plain("-1.5e3"), plain("-1+cmd"), plain("red")
        ("'@SUM(A1)", '-1.5e3', "'-1+cmd", 'red')
    """
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


_LEAST = 20  # columns: in narrower terminals everything breaks anyway
_NARROW = 4  # columns that later lines are moved in where there is little room


def fitted(text: str, stream: TextIO, hanging: int | None = None) -> str:
    """The text in lines of whole words where `stream` is a terminal.

    All lines but the first begin `hanging` columns in, or where the text itself begins. Names, options and paths stay
    whole, so that they can be copied.

    Examples:
        >>> import io
        >>> fitted("hint: choose up to 6 of them with --only", io.StringIO())
        'hint: choose up to 6 of them with --only'
    """
    if not stream.isatty():
        return text
    width = max(_LEAST, shutil.get_terminal_size().columns)
    begin = text[: len(text) - len(text.lstrip())]
    if hanging is None or hanging > width // 2:  # names take so much of it that no room would be left beside them
        hanging = len(begin) if hanging is None else _NARROW
    return textwrap.fill(
        text.lstrip(),
        width,
        initial_indent=begin,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def remark(text: str) -> None:
    """A line on standard error."""
    print(fitted(text, sys.stderr), file=sys.stderr)
