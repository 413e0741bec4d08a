"""Rows that arrive over time: the period of each, and what one release learns from and is tested on.

A release of period t learns from the periods before it, and is tested on all rows of period t. The rows of each period
are dealt once, whatever releases look at them. A row therefore has the same party and bag in all releases. A public row
stays public and is never a private row of a party.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal

import numpy as np

from federation.contract.errors import FederationError, InputError
from federation.numerics.rows import Floats, Integers
from scenarios.data.sheets import moment, moments, seconds
from scenarios.data.tables import Table
from scenarios.settings.words import BY, EVERY, MOST_PERIODS, NEXT
from scenarios.simulated.partition import Cut, cut

_DIGITS = 6
# Of each span the unit that it is counted in, how many of them it has, how far before 1970 it began, and its name.
_CALENDAR: dict[str, tuple[Literal["D", "M"], int, int, Callable[[date], str]]] = {
    "day": ("D", 1, 0, date.isoformat),
    "week": ("D", 7, 3, lambda monday: monday.strftime("%G-W%V")),
    "month": ("M", 1, 0, lambda first: first.strftime("%Y-%m")),
    "quarter": ("M", 3, 0, lambda first: f"{first.year}-Q{(first.month + 2) // 3}"),
    "year": ("M", 12, 0, lambda first: first.strftime("%Y")),
}


@dataclass(frozen=True, eq=False)
class Periods:
    """The period 1, 2, ... of each row (n,), 0 for rows before the first, and what each is called."""

    of_row: Integers
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def rows(self, period: int) -> Integers:
        """The rows of a period."""
        return np.flatnonzero(self.of_row == period)


def periods_of(table: Table, time: str, periods: int | Sequence[float | str] | Mapping[str, Any]) -> Periods:
    """The periods of a table by its column `time` (`scenarios.data.sheets.moments`), each with a row at least.

    `periods` is a number of them, equally long from the first moment to the last; their starts, rising, where the last
    has no end and rows before the first are left out; or {"every": span}: a calendar's day, week (from Monday), month,
    quarter or year of dates, or a length of numbers, from the first on. Raises `InputError` for a span or starts of
    another kind than the moments, a single moment, a period without rows, and fewer than two or too many periods.

    Examples:
        >>> days = np.array(["2023-01-30", "2023-02-01", "2023-02-28"])
        >>> table = Table("toy", ("x",), ("a", "b"), np.array([0, 1, 1]), (np.zeros((3, 1)),), groups={"day": days})
        >>> found = periods_of(table, "day", {"every": "month"})
        >>> found.of_row.tolist(), found.names
        ([1, 2, 2], ('2023-01', '2023-02'))
        >>> periods_of(table, "day", ["2023-01-31", "2023-W08"]).of_row.tolist()
        [0, 1, 2]
    """
    at, dated = moments(table, time)
    span = periods.get(EVERY) if isinstance(periods, Mapping) else None
    if isinstance(span, str):
        if not dated:
            raise InputError(
                f"trials.periods: {{every: {span}}} is for dates, and '{time}' of '{table.name}' holds numbers; give "
                "{every: NUMBER} or the number of periods"
            )
        found = _by_calendar(at, span)
    else:
        starts, names = _starts(periods, at, dated, f"'{time}' of '{table.name}'")
        found = Periods(np.searchsorted(starts, at, side="right"), names)
    if not 2 <= len(found) <= MOST_PERIODS:
        raise InputError(
            f"trials.periods must give 2 to {MOST_PERIODS} periods, got {len(found)} by '{time}' of '{table.name}'; "
            "choose longer or shorter ones"
        )
    sizes = np.bincount(found.of_row, minlength=len(found) + 1)[1:]
    if not sizes.all():
        empty = int(sizes.argmin())
        raise InputError(
            f"trials.periods: period {empty + 1} of {len(found)} ({found.names[empty]}) has no rows by '{time}' of "
            f"'{table.name}'; choose longer periods, or their starts"
        )
    return found


def window_cut(
    table: Table,
    *,
    time: str,
    periods: int | Sequence[float | str] | Mapping[str, Any],
    window: int | None,
    period: int,
    test: str | int | float,
    bag_each: bool,
    partition: str | Mapping[str, Any],
    **dealing: Any,
) -> Cut:
    """The cut of the release that is tested on all rows of `period`, and learns from the `window` periods before it.

    Without a `window` that is from all of them, and early releases learn from as many as there are. Each period is cut
    for itself (`partition.cut`, with its other arguments as `dealing`), and what a party, or the public, has of each is
    put together: a count of rows, parties' or public, is one of each period. Bags of two periods are two bags, or with
    `bag_each` false a party's rows are a single one, as for protocols that have no use for bags.
    Raises `InputError` as that does, and says of which period.

    Examples:
        >>> table = Table("toy", ("x",), ("a", "b"), np.arange(60) % 2, (np.arange(60.0)[:, None],))
        >>> dealt = dict(auxiliary=5, parties=3, rows=None, partition="iid", seed=1)
        >>> window_cut(table, time="x", periods=3, window=None, period=3, test="next", bag_each=True, **dealt)
        Cut(10 auxiliary, 20 test, 30 private rows of 3 parties in 6 bags)
    """
    if test != NEXT:
        raise InputError(f"data.test must be {NEXT} with data.time: the rows of the next period, got {test!r}")
    found = periods_of(table, time, periods)
    pieces = []
    for number in range(1 if window is None else max(1, period - window), period):
        held = found.rows(number)
        try:
            part = cut(_numbered(table, held), test=0, partition=partition, **dealing)
        except FederationError as error:
            raise InputError(f"in period {number} ({found.names[number - 1]}): {error}") from error
        pieces.append(replace(part, auxiliary=held[part.auxiliary], order=held[part.order]))
    column = table.groups[partition[BY]] if isinstance(partition, Mapping) and BY in partition else None
    return _together(pieces, found.rows(period), column, bag_each)


def _together(pieces: Sequence[Cut], test: Integers, column: Any, bag_each: bool) -> Cut:
    """One cut of several, with parties by number, or where there is a `column` of all rows by its values."""
    order = np.concatenate([piece.order for piece in pieces])
    sizes = np.concatenate([piece.bag_sizes for piece in pieces])
    starts = np.cumsum(sizes) - sizes
    if column is None:
        names, parties = None, pieces[0].parties
        of_bag = np.concatenate([_holders(piece) for piece in pieces])
    else:
        values, of_bag = np.unique(column[order[starts]], return_inverse=True)
        names, parties = tuple(map(str, values)), len(values)
    bags = np.argsort(of_bag, kind="stable")
    ends = np.append(0, np.cumsum(sizes[bags]))
    rows = np.repeat(starts[bags] - ends[:-1], sizes[bags]) + np.arange(len(order))
    offsets = ends[np.searchsorted(of_bag[bags], np.arange(parties + 1))]
    auxiliary = np.concatenate([piece.auxiliary for piece in pieces])
    return Cut(auxiliary, test, order[rows], offsets, ends if bag_each else offsets, names, pieces[0].shifted)


def _holders(piece: Cut) -> Integers:
    """The party of every bag."""
    return np.searchsorted(piece.offsets, piece.bag_offsets[:-1], side="right") - 1


def _numbered(table: Table, rows: Integers) -> Table:
    """All of some rows that decides who holds them, and none of their features."""
    groups = {name: values[rows] for name, values in table.groups.items()}
    return Table(
        table.name, ("row",), table.classes, table.labels[rows], (rows[:, None],),
        groups=groups, label_range=table.label_range,
    )  # fmt: skip


def _by_calendar(at: Floats, span: str) -> Periods:
    unit, each, shift, name = _CALENDAR[span]
    number = (seconds(at).astype(f"datetime64[{unit}]").astype(np.int64) + shift) // each
    first = int(number.min())
    count = min(int(number.max()) - first, MOST_PERIODS) + 1
    days = (np.datetime64((first + i) * each - shift, unit).astype("datetime64[D]").item() for i in range(count))
    return Periods(number - first + 1, tuple(map(name, days)))


def _starts(
    periods: int | Sequence[float | str] | Mapping[str, Any], at: Floats, dated: bool, where: str
) -> tuple[Floats, tuple[str, ...]]:
    """The first moment of each period, rising, and what each is called."""
    first, last = float(at.min()), float(at.max())
    if isinstance(periods, int | Mapping):
        if first == last:
            raise InputError(f"trials.periods: all rows of {where} are of one moment; choose another data.time")
        if isinstance(periods, int):
            starts = first + (last - first) * np.arange(periods) / periods
        elif dated:
            raise InputError(
                f"trials.periods: {{every: {periods[EVERY]:g}}} is for numbers, and {where} holds dates; give "
                "{every: day}, week, month, quarter or year"
            )
        else:
            starts = first + periods[EVERY] * np.arange(min((last - first) // periods[EVERY], MOST_PERIODS) + 1)
        return starts, tuple(f"from {_said(start, dated)}" for start in starts)
    known = [moment(str(start)) for start in periods]
    for start, (_, is_date) in zip(periods, known, strict=True):
        if is_date != dated:
            kinds = ("dates", "a number") if dated else ("numbers", "a date")
            raise InputError(f"trials.periods: {where} holds {kinds[0]}, and {start} is {kinds[1]}; write them alike")
    return np.array([start for start, _ in known]), tuple(
        f"from {start:g}" if isinstance(start, float) else f"from {start}" for start in periods
    )


def _said(at: float, dated: bool) -> str:
    return str(seconds(np.array([at]))[0]).removesuffix("T00:00:00") if dated else f"{at:.{_DIGITS}g}"
