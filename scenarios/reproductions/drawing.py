"""The figure of an item: panels of settings, with the paper's points, ours as published and our default."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scenarios.reports.axes import save, styled
from scenarios.reports.curves import Axis, Curve, Panel, Plot
from scenarios.reports.looks import COLOURS, Look
from scenarios.reports.panels import figure
from scenarios.reports.summary import Spread
from scenarios.reproductions.comparing import Cell
from scenarios.reproductions.paper import Item

_DOTS = 150
_MARKERS = ("o", "s", "^", "D", "v", "P")
_STYLES = {"the paper": "none", "as published": "--", "default": "-"}


def draw(item: Item, compared: Sequence[Cell], stem: Path) -> list[Path]:
    """Write STEM.svg of an item with an axis of numbers; the paths written, none where there is nothing to draw."""
    cells = [cell for cell in compared if cell.ours or cell.default]
    places = sorted({float(cell.x) for cell in cells}) if item.axis else []
    if len(places) < 2:
        return []
    names = list(dict.fromkeys(cell.series for cell in cells))
    panels = [
        Panel(setting, tuple(_curves([cell for cell in cells if cell.setting == setting], names)))
        for setting in dict.fromkeys(cell.setting for cell in cells)
    ]
    plot = Plot(tuple(panels), Axis.of(item.axis, places), item.metric)
    with styled():
        return save(figure(plot, item.title), stem, ("svg",), _DOTS)


def _curves(cells: Sequence[Cell], names: Sequence[str]) -> list[Curve]:
    """For each series up to three: what is printed, and both of ours."""
    found = []
    for name in names:
        own = [cell for cell in cells if cell.series == name]
        known = {
            "the paper": {float(c.x): Spread.of({0: [c.paper.value]}) for c in own if c.paper is not None},
            "as published": {float(c.x): c.ours for c in own if c.ours is not None},
            "default": {float(c.x): c.default for c in own if c.default is not None},
        }
        number = names.index(name)
        found += [Curve(f"{name}, {whose}", _look(number, whose), points) for whose, points in known.items() if points]
    return found


def _look(number: int, whose: str) -> Look:
    colour = COLOURS[number % len(COLOURS)]
    line = {
        "color": colour,
        "linestyle": _STYLES[whose],
        "linewidth": 1.6 if whose == "default" else 1.2,
        "marker": "*" if whose == "the paper" else _MARKERS[number % len(_MARKERS)],
        "markersize": 9 if whose == "the paper" else 4,
        "markeredgewidth": 0.8,
        "markeredgecolor": colour,
        "markerfacecolor": "white" if whose == "as published" else colour,
    }
    return Look(line, 3.0)
