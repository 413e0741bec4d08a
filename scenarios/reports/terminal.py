"""A summary of results as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scenarios.reports.summary import CLAIMING, KEEPING, NON_PRIVATE, VariantSummary, broken, epsilons, name_width
from scenarios.scores.metrics import heading

if TYPE_CHECKING:
    from rich.table import Table

_CAPTION = "mean ± standard deviation over single releases"
_TERMINAL = 80
_SETTING_WIDTH = 30
_GAP = 2  # between the columns of a table


def tables(summaries: Sequence[VariantSummary]) -> list[Table]:
    """Variants by epsilons for a terminal of 80 characters; blocks of epsilons where all of them do not fit.

    Settings of swept keys stand above their variants. What has no guarantee has a column of its own.
    """
    columns = epsilons(summaries)
    places = _places(summaries)
    room = _TERMINAL - max((len(line) for group in places for line in group.lines()), default=0)
    joint, blocks = " ", _blocks(columns, summaries, " ", room)
    if len(blocks) > 1:
        joint, blocks = "\n", _blocks(columns, summaries, "\n", room)
    notes = [_CAPTION]
    if any(summary.claiming for summary in summaries):
        notes.append(CLAIMING)
    if any(spread.note for summary in summaries for spread in summary.by_epsilon.values()):
        notes.append(KEEPING)
    title = heading(summaries[0].metric) if summaries else "no results"
    return [_table(places, block, joint, title, "\n".join(notes)) for block in blocks]


@dataclass(frozen=True)
class _Place:
    """A setting in lines, none without a sweep, and its variants with the lines of their names."""

    heading: Sequence[str]
    members: Sequence[tuple[Sequence[str], VariantSummary]]

    def lines(self) -> list[str]:
        """All lines of the first column."""
        return [*self.heading, *(line for lines, _ in self.members for line in lines)]


def _places(summaries: Sequence[VariantSummary]) -> list[_Place]:
    """The settings in the order of their first variants."""
    headings = {one.place: [f"{key} = {value}" for key, value in one.setting.items()] for one in summaries}
    width = name_width(one.variant for one in summaries)
    return [
        _Place(
            [line for part in parts for line in broken(part, max(width, _SETTING_WIDTH))],
            [(one.lines(width), one) for one in summaries if one.place == place],
        )
        for place, parts in headings.items()
    ]


def _blocks(
    columns: Sequence[float], summaries: Sequence[VariantSummary], joint: str, room: int
) -> list[Sequence[float]]:
    """The fewest blocks of columns, about equally long, that fit into `room` letters beside the names."""
    widths = []
    for epsilon in columns:
        texts = [_header(epsilon), *(_cell(summary, epsilon, joint) for summary in summaries)]
        widths.append(_GAP + max(len(line) for text in texts for line in text.splitlines()))
    for count in range(1, len(columns) + 1):
        size = math.ceil(len(columns) / count)
        starts = range(0, len(columns), size)
        if size == 1 or all(sum(widths[start : start + size]) <= room for start in starts):
            return [columns[start : start + size] for start in starts]
    return [columns]


def _table(places: Sequence[_Place], columns: Sequence[float], joint: str, title: str, caption: str) -> Table:
    from rich import box
    from rich.table import Column, Table
    from rich.text import Text

    drawn = Table(
        Column("variant", overflow="fold"),
        *(Column(Text(_header(epsilon)), justify="right", no_wrap=True) for epsilon in columns),
        title=Text(title),
        caption=caption,
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
        show_edge=False,
        min_width=60,
    )
    for place in places:
        present = [(lines, one) for lines, one in place.members if not one.by_epsilon.keys().isdisjoint(columns)]
        if present and place.heading:
            drawn.add_section()
            drawn.add_row(Text("\n".join(place.heading), style="underline"))
        for lines, summary in present:
            cells = [_cell(summary, epsilon, joint) for epsilon in columns]
            drawn.add_row(Text("\n".join(lines), style="bold" if summary.default else ""), *map(Text, cells))
    return drawn


def _header(epsilon: float) -> str:
    return NON_PRIVATE if math.isinf(epsilon) else f"ε = {epsilon:g}"


def _cell(summary: VariantSummary, epsilon: float, joint: str) -> str:
    spread = summary.by_epsilon.get(epsilon)
    if spread is None:
        return ""
    return "\n".join(filter(None, (spread.text(summary.metric).replace(" ± ", f"{joint}± "), spread.note)))
