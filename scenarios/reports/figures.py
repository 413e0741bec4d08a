"""Figures of a run: a metric against epsilon, a swept number, the class share or the round.

Equal rows give equal files. The figures of the page have one drawing per panel, as wide as a phone; the page sets their
colours, and their legends are text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape, unescape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from scenarios.reports import axes
from scenarios.reports.summary import VariantSummary, at, differing, epsilons, equals, is_number, middle_of, summarise
from scenarios.scores.results import AT_ROUND, AT_SHARE, Row, metric_named, primary
from scenarios.scores.scoring import ACCURACY, L1, MSE
from scenarios.settings.protocol_options import BASELINES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


METRICS = (ACCURACY.name, "balanced_accuracy", L1.name, MSE.name)
_DPI = 150
_Entry = tuple[str, VariantSummary, float]  # a panel, a variant in it, and where its value stands on the axis


def draw(rows: Sequence[Row], directory: Path, title: str) -> list[Path]:
    """Write every figure of `figures` as PNG (150 dpi) and SVG into `directory`; the paths written."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, drawn in figures(rows, title).items():
        with axes.styled():
            written += axes.save(drawn, directory / name, ("png", "svg"), _DPI)
    return written


def figures(rows: Sequence[Row], title: str) -> dict[str, Figure]:
    """The `plots` as figures for papers, by file name."""
    with axes.styled():
        return {name: axes.figure(plot, title) for name, plot in plots(rows).items()}


def plots(rows: Sequence[Row]) -> dict[str, axes.Plot]:
    """Figures before they are drawn: METRIC over epsilon, and at the middle epsilon METRIC-KEY for swept numbers KEY.

    Errors at several class shares have l1-share too, as in Iyer et al. 2016, Figs. 2 and 3, and accuracies after
    several rounds accuracy-round, beside the baselines, as in Lacombe et al. 2021, Figure 1. A metric without rows has
    none. Settings of swept keys stand side by side as panels. Each shows six variants at most (`looks.chosen`); where
    there are more, another one, whose name ends in `ALL`, shows all of them in small groups side by side.
    """
    return dict(_plots(rows))


def _plots(rows: Sequence[Row]) -> Iterator[tuple[str, axes.Plot]]:
    leading, measured = primary(rows).name, {metric: summarise(rows, metric) for metric in METRICS}
    compared = summarise(rows, leading)  # decide which variants are shown first, and how each looks, in every figure
    compared += [one for metric in METRICS if metric != leading for one in measured[metric]]
    shares, rounds = _numbered(rows, AT_SHARE), _numbered(rows, AT_ROUND)
    compared += [one for _, one, _ in (*shares, *rounds)]
    for metric, summaries in measured.items():
        if summaries:
            yield from _against_epsilon(metric, summaries, compared)
            for key, values in differing(one.setting for one in summaries).items():
                if all(map(is_number, values)):
                    entries = [
                        (one.place_but_for(key), one, float(one.setting[key]))
                        for one in summaries
                        if key in one.setting
                    ]
                    yield from _at_middle(f"{metric}-{key}", entries, summaries, compared, key, metric)
    if shares:
        every = [one for _, one, _ in shares]
        yield from _at_middle("l1-share", shares, every, compared, "share of the varied class", L1.name, bars=False)
    if rounds:
        rounds += [(s.place, s, math.inf) for s in measured[ACCURACY.name] if s.protocol in BASELINES]
        every = [one for _, one, _ in rounds]
        yield from _at_middle("accuracy-round", rounds, every, compared, "round", ACCURACY.name, bars=False)


def _numbered(rows: Sequence[Row], prefix: str) -> list[_Entry]:
    """Variants at the numbers, such as class shares, that follow `prefix` in names of metrics; two or more of them."""
    names = {row["metric"] for row in rows if row["metric"].startswith(prefix)}
    numbers = sorted((float(name.removeprefix(prefix)), name) for name in names)
    found = [(one.place, one, number) for number, name in numbers for one in summarise(rows, name)]
    return found if len(numbers) > 1 else []


def _against_epsilon(
    name: str, summaries: Sequence[VariantSummary], compared: Sequence[VariantSummary]
) -> Iterator[tuple[str, axes.Plot]]:
    """Curves over the epsilons that are kept; where one was aimed at, it names what keeps another."""
    aims = [epsilon for epsilon in epsilons(summaries) if math.isfinite(epsilon)]
    ticks = set(aims)
    if len(aims) > 1:  # of several, those kept beyond them have ticks, too
        kept = [one.kept(aim) for one in summaries for aim in one.by_epsilon if math.isfinite(aim)]
        ticks |= {float(f"{end:.4g}") for end in (min(kept), max(kept)) if not aims[0] <= end <= aims[-1]}
    placed = [(one.place, one, {one.kept(aim): found for aim, found in one.by_epsilon.items()}) for one in summaries]
    notes = _notes(summaries, aims[0]) if len(aims) == 1 else {}
    plot = axes.Plot((), axes.Axis("ε", tuple(sorted(ticks)), True), summaries[0].metric)
    yield from _with_all(name, plot, placed, compared, notes)


def _at_middle(
    name: str,
    entries: Sequence[_Entry],
    summaries: Sequence[VariantSummary],
    compared: Sequence[VariantSummary],
    key: str,
    metric: str,
    *,
    bars: bool = True,
) -> Iterator[tuple[str, axes.Plot]]:
    """One curve per variant over the numbers of its entries at the middle epsilon of all summaries, if there are any.

    `bars` is for swept numbers, whose axis may be logarithmic.
    """
    middle = middle_of(summaries)
    placed = [(panel, one, {number: spread}) for panel, one, number in entries if (spread := one.at(middle))]
    if placed:
        axis = axes.Axis.of(key, [number for _, _, number in entries])
        plot = axes.Plot(
            (),
            axis if bars else replace(axis, logarithmic=False),
            metric,
            at(middle) if math.isfinite(middle) else "",
            bars,
        )
        yield from _with_all(name, plot, placed, compared, _notes(summaries, middle))


def _with_all(
    name: str,
    plot: axes.Plot,
    placed: Sequence[axes.Placed],
    compared: Sequence[VariantSummary],
    notes: Mapping[str, str],
) -> Iterator[tuple[str, axes.Plot]]:
    """The plot with panels of the variants that are shown first, and one of all in groups where there are more."""
    present = {one.variant for _, one, _ in placed}
    there = [one for one in compared if one.variant in present]
    known, parts = axes.looks(compared), axes.groups(there)
    yield name, replace(plot, panels=axes.panels(placed, known, notes, axes.chosen(there)))
    if parts and plot.of_one_value:  # with a row for each no group is needed
        yield f"{name}{axes.ALL}", replace(plot, panels=axes.panels(placed, known, notes, present))
    elif parts:
        every = [panel for names in parts for panel in axes.panels(placed, known, notes, names)]
        yield f"{name}{axes.ALL}", replace(plot, panels=tuple(every))


def _notes(summaries: Iterable[VariantSummary], epsilon: float) -> dict[str, str]:
    """For each variant that keeps other epsilons, in any panel, than the one that it aimed at, those that it keeps."""
    kept: dict[str, set[float]] = {}
    for summary in summaries:
        spread = summary.at(epsilon)
        if spread is not None and spread.kept is not None:
            kept.setdefault(summary.variant, set()).add(spread.kept)
    return {name: f"keeps {equals(*sorted({min(found), max(found)}))}" for name, found in kept.items()}


_WIDE, _NARROW = (4.4, 3.0), (3.4, 2.5)  # inches of a panel alone, and of one among several
_DRAWN = re.compile(r"<svg.*</svg>", re.DOTALL)
_REMOVED = re.compile(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)
_SIZES = re.compile(r' (?:width|height)="[\d.]+pt"', re.DOTALL)
_STYLE = re.compile(r'style="[^"]*"')
_GROUP = re.compile(r'<g id="([^"]*)"([^>]*)>')
_THEMED = {  # what matplotlib draws in these colours has those of the page's style
    axes.INK: "var(--ink)",
    axes.PAPER: "var(--paper)",
    axes.GRID: "var(--line)",
    axes.EDGE: "var(--soft)",
    **{grey: f"var(--grey-{number})" for number, grey in enumerate(axes.GREYS, 1)},
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


def chart(name: str, plot: axes.Plot, page: str = "") -> Chart:
    """A plot as a chart; its name and `page`, unique together on a page, keep the identifiers in it apart."""
    import matplotlib

    metric, scale = metric_named(plot.metric), axes.scale_of(plot)
    shared = all(_labels(panel) == _labels(plot.panels[0]) for panel in plot.panels)
    drawings = []
    for number, panel in enumerate(plot.panels):
        with axes.styled(), matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": f"{page} {name} {number}"}):
            svg = _drawn(panel, plot, scale)
        drawings.append(Drawing(panel.title, svg, () if shared else _legend(panel.curves, plot)))
    over = "" if plot.of_one_value else f" over {plot.axis.name}"
    title = f"{metric.label[0].upper()}{metric.label[1:]}{over}{f', {plot.place}' if plot.place else ''}"
    if name.endswith(axes.ALL):
        title += ", all variants"
    legend = _legend(plot.legend, plot) if shared else ()
    return Chart(name, title, tuple(drawings), legend, "; ".join(axes.explanations(plot)))


def _labels(panel: axes.Panel) -> set[str]:
    return {curve.label for curve in panel.curves}


def _drawn(panel: axes.Panel, plot: axes.Plot, scale: axes.Scale) -> str:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    width, height = _WIDE if len(plot.panels) == 1 else _NARROW
    if plot.of_one_value:
        height = axes.row_height(plot)
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    axes.draw_panel(figure.subplots(), axes.Panel("", panel.curves), plot, scale, width)
    if plot.unprotected:
        axes.watermark(figure, height)
    axes.arrange(figure)
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


def _legend(curves: Iterable[axes.Curve], plot: axes.Plot) -> tuple[tuple[str, str], ...]:
    """(SVG of line and marker, label) of each curve; of references only where variants have rows with their names."""
    return tuple((_swatch(curve), curve.label) for curve in curves if curve.look.reference or not plot.of_one_value)


def _swatch(curve: axes.Curve) -> str:
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
