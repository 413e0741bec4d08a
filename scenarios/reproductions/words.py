"""Cells and claims in words and numbers, as the terminal and the pages show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scenarios.reports.summary import Spread
from scenarios.reproductions.comparing import Cell, Tested
from scenarios.reproductions.intervals import Paired
from scenarios.reproductions.paper import Item, Reason
from scenarios.scores import metrics

NOTHING = "-"


def lines(item: Item, compared: Iterable[Cell], reasons: Sequence[Reason]) -> list[dict[str, str]]:
    """A row for each cell; `reasons` are all of the item's, which rows name by their numbers from 1."""
    return _filled([_line(item, cell, reasons) for cell in compared])


def _line(item: Item, cell: Cell, reasons: Sequence[Reason]) -> dict[str, str]:
    place = {item.axis: cell.x} if item.axis else {}
    return {
        "setting": cell.setting,
        "series": cell.series,
        **place,
        "paper": _paper(item.metric, cell),
        "ours as published": _spread(item.metric, cell.ours),
        "inside": {True: "yes", False: "no", None: NOTHING}[cell.inside],
        "our default": _spread(item.metric, cell.default),
        "default less published": difference(item.metric, cell.difference),
        "why": numbers(cell.reasons, reasons) if cell.inside is False else "",
    }


def claim_lines(item: Item, tested: Iterable[Tested], reasons: Sequence[Reason]) -> list[dict[str, str]]:
    """A row for each claim in each setting."""
    found = [
        {
            "the paper says": one.claim.says,
            "setting": one.setting,
            "difference": difference(item.metric, one.found),
            "verdict": one.verdict,
            "why": numbers(one.reasons, reasons) if one.verdict == "does not hold" else "",
        }
        for one in tested
    ]
    return _filled(found)


def _filled(rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The rows without columns that are empty everywhere."""
    names = {name for row in rows for name, text in row.items() if text not in ("", NOTHING)}
    return [{name: text for name, text in row.items() if name in names} for row in rows]


def used(compared: Iterable[Cell], tested: Iterable[Tested]) -> list[Reason]:
    """The reasons for what differs, in order, each once."""
    found = [reason for cell in compared if cell.inside is False for reason in cell.reasons]
    found += [reason for one in tested if one.verdict == "does not hold" for reason in one.reasons]
    return list(dict.fromkeys(found))


def numbers(own: Iterable[Reason], reasons: Sequence[Reason]) -> str:
    """The numbers of some reasons among all."""
    return ", ".join(map(str, sorted(reasons.index(reason) + 1 for reason in own)))


def difference(metric: str, found: Paired | None) -> str:
    """A paired difference with its interval and Wilcoxon's p.

    Examples:
        >>> difference("accuracy", Paired(0.03, (0.01, 0.05), 0.031, 6))
        '+0.030 [+0.010, +0.050], p = 0.031'
    """
    if found is None:
        return NOTHING
    text = _signed(metric, found.difference)
    if found.interval is not None:
        text += f" [{', '.join(_signed(metric, end) for end in found.interval)}]"
    return text if found.p is None else f"{text}, p = {found.p:.2g}"


def shown(metric: str, value: float) -> str:
    """A value as all tables show this metric, whole numbers as such.

    Examples:
        >>> shown("accuracy", 0.5), shown("rows", 2500.0)
        ('0.500', '2500')
    """
    return f"{value:.0f}" if abs(value) >= 1 and value == round(value) else metrics.shown(metric, value)


def _signed(metric: str, value: float) -> str:
    text = shown(metric, value)
    return text if text.startswith("-") else f"+{text}"


def _paper(metric: str, cell: Cell) -> str:
    if cell.paper is None:
        return NOTHING
    text = shown(metric, cell.paper.value)
    return text if cell.paper.plus_minus is None else f"{text} ± {shown(metric, cell.paper.plus_minus)}"


def _spread(metric: str, spread: Spread | None) -> str:
    if spread is None:
        return NOTHING
    ends = spread.interval_of(metric)
    text = shown(metric, spread.mean)
    return text if ends is None else f"{text} [{', '.join(shown(metric, end) for end in ends)}]"
