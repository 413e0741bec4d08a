"""The table of results for a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from scenarios.reports.summary import VariantSummary, broken, lines_of, name_width
from scenarios.reports.tables import FEW, Cell, Line, Table, results

if TYPE_CHECKING:
    from rich.table import Table as Drawn

TERMINAL = 80
_SETTING_WIDTH = 30
_GAP = 2  # between the columns of a table


def tables(summaries: Sequence[VariantSummary], terminal: int = TERMINAL) -> list[Drawn]:
    """Variants by epsilons for a terminal of so many characters; blocks of epsilons where all of them do not fit.

    Names are broken only where they take the room of a column. Settings of swept keys stand above their variants. What
    has no guarantee has a column of its own. Nothing where nothing was scored.
    """
    if not summaries:
        return []
    whole = results(summaries)
    narrow = name_width(line.name for line in whole.lines)
    for width in (max([narrow, *(len(f"{line.name} {line.mark}") for line in whole.lines)]), narrow):
        places: dict[str, list[tuple[str, Line]]] = {}  # by the setting: each variant's name, broken, and its line
        for line in whole.lines:
            setting = [text for part in line.place for text in broken(part, max(width, _SETTING_WIDTH))]
            name = "\n".join(lines_of(line.name, line.mark, width))
            places.setdefault("\n".join(setting), []).append((name, line))
        room = terminal - _widest([*places, *(name for members in places.values() for name, _ in members)])
        joint, blocks = " ", _blocks(whole, " ", room)
        if len(blocks) == 1 and sum(_widths(whole, " ")) <= room:
            break
    else:
        joint, blocks = "\n", _blocks(whole, "\n", room)
    return [_drawn(whole, places, block, joint, terminal) for block in blocks]


def _widest(texts: Iterable[str]) -> int:
    return max(map(len, "\n".join(texts).split("\n")))


def _widths(table: Table, joint: str) -> list[int]:
    """Letters that each column takes, with the gap before it."""
    return [
        _GAP + _widest([head, *(_text(line.cells[place], joint) for line in table.lines)])
        for place, head in enumerate(table.columns)
    ]


def _blocks(table: Table, joint: str, room: int) -> list[slice]:
    """The fewest blocks of columns, about equally long, that fit into `room` letters beside the names."""
    columns, widths = len(table.columns), _widths(table, joint)
    for size in sorted({math.ceil(columns / count) for count in range(1, columns + 1)}, reverse=True):
        blocks = [slice(start, start + size) for start in range(0, columns, size)]
        if size == 1 or all(sum(widths[block]) <= room for block in blocks):
            return blocks
    return [slice(columns)]


def _drawn(table: Table, places: dict[str, list[tuple[str, Line]]], block: slice, joint: str, terminal: int) -> Drawn:
    from rich import box
    from rich.table import Column
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(
        Column(table.corner, overflow="fold"),
        *(Column(Text(head), justify="right", no_wrap=True) for head in table.columns[block]),
        title=Text(table.title),
        caption="\n".join([table.caption, *(note for note in table.notes if note != FEW)]),
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
        show_edge=False,
        min_width=min(60, terminal),
    )
    for setting, members in places.items():
        present = [(name, line) for name, line in members if any(cell.text for cell in line.cells[block])]
        if present and setting:
            drawn.add_section()
            drawn.add_row(Text(setting, style="underline"))
        for name, line in present:
            cells = (Text(_text(cell, joint)) for cell in line.cells[block])
            drawn.add_row(Text(name, style="bold" if line.default else ""), *cells)
    return drawn


def _text(cell: Cell, joint: str) -> str:
    """The mean and its deviation without the interval, joined so, above the epsilon that is kept."""
    return "\n".join(filter(None, (cell.text.replace(" ± ", f"{joint}± "), cell.kept)))
