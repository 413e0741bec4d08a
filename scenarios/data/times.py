"""When rows arrived: numbers, ISO dates and times, or whole months, quarters and weeks."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError
from federation.numerics.rows import Floats
from scenarios.data.tables import Table, cut

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
