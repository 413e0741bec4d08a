"""Tables as CSV that is safe to open in a spreadsheet, which takes a text that begins so for a formula and runs it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence

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
