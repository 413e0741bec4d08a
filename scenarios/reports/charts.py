"""Figures of the page: a drawing for each panel, as wide as a phone, whose colours the page sets; legends are text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape, unescape
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np

from scenarios.reports.axes import EDGE, GRID, INK, PAPER, arrange, draw_panel, explanations, scale_of, styled
from scenarios.reports.curves import Curve, Panel, Plot
from scenarios.reports.looks import ALL, GREYS
from scenarios.reports.panels import row_height, watermark
from scenarios.scores.metrics import metric_named

if TYPE_CHECKING:
    from scenarios.reports.axes import Scale

_WIDE, _NARROW = (4.4, 3.0), (3.4, 2.5)  # inches of a panel alone, and of one among several
_DRAWN = re.compile(r"<svg.*</svg>", re.DOTALL)
_REMOVED = re.compile(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)
_SIZES = re.compile(r' (?:width|height)="[\d.]+pt"', re.DOTALL)
_STYLE = re.compile(r'style="[^"]*"')
_GROUP = re.compile(r'<g id="([^"]*)"([^>]*)>')
_THEMED = {  # what matplotlib draws in these colours has those of the page's style
    INK: "var(--ink)",
    PAPER: "var(--paper)",
    GRID: "var(--line)",
    EDGE: "var(--soft)",
    **{grey: f"var(--grey-{number})" for number, grey in enumerate(GREYS, 1)},
}


@dataclass(frozen=True)
class Drawing:
    """One panel: its setting, its SVG, and the legend where the panels of a chart do not share one."""

    title: str
    svg: str
    legend: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Chart:
    """The plot of this name as a figure of the page; the legend has (SVG of line and marker, label) of each curve.

    SVG is safe to be put into a page: names in it are escaped, and it runs and fetches nothing.
    """

    name: str
    title: str
    drawings: tuple[Drawing, ...]
    legend: tuple[tuple[str, str], ...]
    caption: str


def chart(name: str, plot: Plot, page: str = "") -> Chart:
    """A plot as a chart; its name and `page`, unique together on a page, keep the identifiers in it apart."""
    import matplotlib

    metric, scale = metric_named(plot.metric), scale_of(plot)
    shared = all(_labels(panel) == _labels(plot.panels[0]) for panel in plot.panels)
    drawings = []
    for number, panel in enumerate(plot.panels):
        with styled(), matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": f"{page} {name} {number}"}):
            svg = _drawn(panel, plot, scale)
        drawings.append(Drawing(panel.title, svg, () if shared else _legend(panel.curves, plot)))
    over = "" if plot.of_one_value else f" over {plot.axis.name}"
    title = f"{metric.label[0].upper()}{metric.label[1:]}{over}{f', {plot.place}' if plot.place else ''}"
    if name.endswith(ALL):
        title += ", all variants"
    legend = _legend(plot.legend, plot) if shared else ()
    return Chart(name, title, tuple(drawings), legend, "; ".join(explanations(plot)))


def _labels(panel: Panel) -> set[str]:
    return {curve.label for curve in panel.curves}


def _drawn(panel: Panel, plot: Plot, scale: Scale) -> str:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    width, height = _WIDE if len(plot.panels) == 1 else _NARROW
    if plot.of_one_value:
        height = row_height(plot)
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    draw_panel(figure.subplots(), Panel("", panel.curves), plot, scale, width)
    if plot.unprotected:
        watermark(figure, height)
    arrange(figure)
    file = StringIO()
    figure.savefig(file, format="svg", transparent=True)
    found = _DRAWN.search(_REMOVED.sub("", file.getvalue()))
    assert found is not None
    svg = _STYLE.sub(lambda style: _themed(style[0]), _SIZES.sub("", found[0]))
    labels = _labels(panel)
    svg = _GROUP.sub(lambda group: _group(unescape(group[1]), labels, group[2]), svg)
    names = ", ".join(curve.label.replace("\n", " ") for curve in panel.curves)
    about = escape(f"{metric_named(plot.metric).label}{f' at {panel.title}' if panel.title else ''}: {names}")
    return svg.replace("<svg ", f'<svg class="chart" role="img" aria-label="{about}" ', 1)


def _group(identifier: str, labels: set[str], attributes: str) -> str:
    """The start of a group without an identifier; a curve has a title, which shows under a pointer."""
    if identifier == "watermark":
        return f'<g class="watermark"{attributes}>'
    return f"<g{attributes}>{f'<title>{escape(identifier)}</title>' if identifier in labels else ''}"


def _legend(curves: Iterable[Curve], plot: Plot) -> tuple[tuple[str, str], ...]:
    """(SVG of line and marker, label) of each curve; of references only where variants have rows with their names."""
    return tuple((_swatch(curve), curve.label) for curve in curves if curve.look.reference or not plot.of_one_value)


def _swatch(curve: Curve) -> str:
    """A piece of the curve's line with its marker, 36 by 14 units."""
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D
    from matplotlib.markers import MarkerStyle

    line = Line2D([], [], **curve.look.line)
    style = curve.look.line["linestyle"]
    pattern = "" if style == "-" else " ".join(map(str, style[1]))
    colours = line.get_color(), line.get_markerfacecolor(), line.get_markeredgecolor()
    stroke, fill, edge = (_themed(to_hex(colour)) for colour in colours)
    marker = MarkerStyle(line.get_marker())
    shape = marker.get_path().transformed(marker.get_transform())
    corners = [
        " ".join(f"{18 + 8 * x:.1f},{7 - 8 * y:.1f}" for x, y in np.asarray(part)) for part in shape.to_polygons()
    ]
    outline = "".join(f"M{part}Z" for part in corners)
    drawn = f'<path d="{outline}" style="fill:{fill};stroke:{edge}"/>' if outline else ""
    dashes = f";stroke-dasharray:{pattern}" if pattern else ""
    width = line.get_linewidth()
    return (
        '<svg class="swatch" viewBox="0 0 36 14" aria-hidden="true">'
        f'<path d="M1 7H35" style="stroke:{stroke};stroke-width:{width}{dashes}"/>{drawn}</svg>'
    )


def _themed(text: str) -> str:
    """A style with the page's variables for the colours that it sets."""
    for colour, variable in _THEMED.items():
        text = text.replace(colour, variable)
    return text
