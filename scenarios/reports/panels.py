"""Figures for papers: panels side by side, with one legend that explains them."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from scenarios.reports.axes import draw_panel, explanations, scale_of
from scenarios.reports.curves import Plot
from scenarios.reports.summary import NON_PRIVATE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TALL = 2.0  # inches of all panels together that hold a slanted word
_SINGLE, _PANEL = (6.4, 3.6), (3.1, 2.6)  # inches of a panel alone, and of one among several
_LETTER = 0.068  # inches of a letter in the legend
_ROW = 0.42  # inches of a variant's row, where the axis has one value


def figure(plot: Plot, title: str) -> Figure:
    """One panel per setting, named by it; rows of dots where the axis has one value.

    Where nothing has a guarantee it is watermarked.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    count = len(plot.panels)
    columns = 2 if count == 4 else min(3, count)
    rows = math.ceil(count / columns)
    width, height = _SINGLE if count == 1 else _PANEL
    legend = plot.legend
    if plot.of_one_value:  # a row of the panel per variant, so that only the references need a legend
        height = row_height(plot)
        legend = [curve for curve in legend if curve.look.reference]
    total = max(columns * width, _SINGLE[0])
    across = max(1, int(total / (_LETTER * max((len(curve.label) for curve in legend), default=0) + 0.6)))
    lines = math.ceil(sum(1 + curve.label.count("\n") for curve in legend) / across)
    explained = textwrap.wrap("; ".join(explanations(plot)), 96)
    drawn = Figure(figsize=(total, rows * height + 0.17 * (lines + len(explained)) + 0.6), layout="constrained")
    FigureCanvasAgg(drawn)
    grid = drawn.subplots(rows, columns, sharex=True, sharey=not plot.of_one_value, squeeze=False).ravel()
    scale = scale_of(plot)
    for number, (axes, panel) in enumerate(zip(grid, plot.panels, strict=False)):
        draw_panel(axes, panel, plot, scale, total / columns)
        lowest, leftmost = number >= count - columns, number % columns == 0
        axes.tick_params(labelbottom=lowest, labelleft=leftmost)
        axes.set(xlabel=axes.get_xlabel() if lowest else "", ylabel=axes.get_ylabel() if leftmost else "")
    for axes in grid[count:]:
        axes.remove()
    whole = f"{title}, {plot.place}" if plot.place else title
    drawn.suptitle(textwrap.fill(whole, 80), fontsize=11)
    drawn.legend(
        handles=[Line2D([], [], label=curve.label, **curve.look.line) for curve in legend],
        loc="outside lower center",
        ncols=across,
        title="\n".join(explained),
        title_fontsize=7.5,
        handlelength=3.0,
    )
    if plot.unprotected:
        watermark(drawn, rows * height)
    return drawn


def row_height(plot: Plot) -> float:
    """Inches of a panel with a row for each variant that is no reference."""
    most = max(sum(not curve.look.reference for curve in panel.curves) for panel in plot.panels)
    return 0.7 + _ROW * max(1, most)


def watermark(figure: Figure, tall: float) -> None:
    """The mark of what protects nobody, across panels that are `tall` inches together."""
    slanted = tall > _TALL
    middle = 1 - (0.3 + (tall - 0.45) / 2) / figure.get_figheight()  # of the panels, between title and axis labels
    figure.text(
        0.5, middle, NON_PRIVATE, rotation=25 if slanted else 0, ha="center", va="center", gid="watermark",
        fontsize=min(46, 16 * tall) if slanted else 30, color="#b00020", alpha=0.13, weight="bold",
    )  # fmt: skip
