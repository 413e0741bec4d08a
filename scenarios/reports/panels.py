"""Draws curves side by side in panels, with one legend that explains them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

from aggregator.contract.task import Metric
from scenarios.reports.curves import Axis, Curve, Placed, curves
from scenarios.reports.summary import NON_PRIVATE, Spread, VariantSummary
from scenarios.scores.metrics import metric_named
from scenarios.scores.tasks import MSE
from scenarios.settings.protocol_options import BASELINES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TALL = 2.0  # inches of all panels together that hold a slanted word
_SINGLE, _PANEL = (6.4, 3.6), (3.1, 2.6)  # inches of a panel alone, and of one among several
_LETTER = 0.068  # inches of a letter in the legend
_STYLE = {
    "font.size": 9.0,
    "text.parse_math": False,  # names are text, whatever signs are in them
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.edgecolor": "#666666",
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "svg.hashsalt": "federation",
    "svg.fonttype": "path",
}
_ALONE = "s"  # shows a reference at a single place, where there is no line
_BARS = "; bars: 95 % interval of the mean"
_BANDS = "5-95 % of single releases"
_EXPLANATION_OF_HOLLOW = f"\nhollow markers: {NON_PRIVATE}, the ε is claimed and not kept"
_MAGNITUDES = 20.0  # squared errors this many times apart are drawn on a logarithmic scale


@contextmanager
def styled() -> Iterator[None]:
    """Matplotlib's own defaults and the style above, whatever is set outside, which comes back afterwards."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def panels(
    placed: Iterable[Placed],
    summaries: Sequence[VariantSummary],
    notes: Mapping[str, str],
    axis: Axis,
    metric: str,
    title: str,
    *,
    bars: bool = True,
) -> Figure:
    """One panel per setting, named by it, with its `curves` of `metric`; rows of dots where the axis has one value.

    `summaries` are all that the figure is about: without a guarantee for one of them it is watermarked. `bars` false
    leaves out the intervals of the means, which would hide the curves where there are many of both.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, NullFormatter

    shown = curves(placed, summaries, notes)
    every = [curve for members in shown.values() for curve in members]
    columns = 2 if len(shown) == 4 else min(3, len(shown))
    rows = math.ceil(len(shown) / columns)
    width, height = _SINGLE if len(shown) == 1 else _PANEL
    legend = {curve.label: curve for curve in every}
    one_value = len(axis.values) < 2
    if one_value:  # a row of the panel per variant, so that only the references need a legend
        height = 0.9 + 0.34 * max(1, sum(not curve.style.reference for curve in legend.values()))
        legend = {name: curve for name, curve in legend.items() if curve.style.reference}
    total = max(columns * width, _SINGLE[0])
    across = max(1, int(total / (_LETTER * max(map(len, legend), default=0) + 0.6)))
    lines = math.ceil(sum(1 + name.count("\n") for name in legend) / across)
    explanation = _explanation(every, one_value, bars)
    size = (total, rows * height + 0.17 * (lines + explanation.count("\n")) + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    known = metric_named(metric)
    scale, limits = _scale(every, known)
    for number, (axes, (name, members)) in enumerate(zip(grid, shown.items(), strict=False)):
        axes.set_title(textwrap.fill(name, 40), fontsize=9)
        if one_value:
            place = f"{known.label} at {axis.name} = {axis.values[0]:g}" if axis.values else known.label
            _dots(axes, members)
            axes.set(xscale=scale, xlim=limits, xlabel=place)
        else:
            _lines(axes, members, axis, size[0] / columns, bars)
            axes.set(yscale=scale, ylim=limits, xlabel=axis.name, ylabel=known.label)
        if scale == "log":  # numbers as such: text is not parsed for formulas
            measured = axes.xaxis if one_value else axes.yaxis
            measured.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            measured.set_minor_formatter(NullFormatter())
        lowest, leftmost = number >= len(shown) - columns, number % columns == 0
        axes.tick_params(labelbottom=lowest, labelleft=leftmost)
        axes.set(xlabel=axes.get_xlabel() if lowest else "", ylabel=axes.get_ylabel() if leftmost else "")
    for axes in grid[len(shown) :]:
        axes.remove()
    figure.suptitle(textwrap.fill(title, 80), fontsize=11)
    figure.legend(
        handles=[Line2D([], [], label=curve.label, **curve.style.line) for curve in legend.values()],
        loc="outside lower center",
        ncols=across,
        title=explanation,
        title_fontsize=7.5,
        handlelength=3.0,
    )
    if any(summary.non_private and summary.protocol not in BASELINES for summary in summaries):
        _watermark(figure, rows * height)
    return figure


def _watermark(figure: Figure, tall: float) -> None:
    """The mark of what protects nobody, across panels that are `tall` inches together."""
    slanted = tall > _TALL
    middle = 1 - (0.3 + (tall - 0.45) / 2) / figure.get_figheight()  # of the panels, between title and axis labels
    figure.text(
        0.5, middle, NON_PRIVATE, rotation=25 if slanted else 0, ha="center", va="center",
        fontsize=min(46, 16 * tall) if slanted else 30, color="#b00020", alpha=0.13, weight="bold",
    )  # fmt: skip


def _explanation(every: Sequence[Curve], one_value: bool, bars: bool) -> str:
    """What means, bands, bars and markers of these curves are."""
    marked = [curve.style for curve in every if not curve.style.reference]
    intervals = _BARS if bars else ""
    if one_value or all(style.band for style in marked):
        text = f"mean over releases; band: {_BANDS}{intervals}"
    else:
        some = "the default and each protocol's first published variant"
        text = f"mean over releases{intervals}\nband, of {some}: {_BANDS}"
    return text + (_EXPLANATION_OF_HOLLOW if any(style.hollow for style in marked) else "")


def _lines(axes: Axes, curves: Sequence[Curve], axis: Axis, inches: float, bars: bool) -> None:
    """Curves over the axis; with bars each is moved aside a little, so that they do not hide each other."""
    marked = [curve for curve in curves if not curve.style.reference]
    closest = min(axis.position(b) - axis.position(a) for a, b in pairwise(axis.values))
    step = 0.12 * closest / max(len(marked), 2) if bars else 0.0
    if axis.logarithmic:
        axes.set_xscale("log")
    for curve in curves:
        style = curve.style
        if style.reference and math.inf in curve.points:
            axes.axhline(curve.points[math.inf].mean, **style.line, zorder=style.zorder)
            continue
        share = 0.0 if style.reference else (marked.index(curve) - (len(marked) - 1) / 2) * step
        values = sorted(curve.points)
        spreads = [curve.points[value] for value in values]
        x = [axis.shifted(value, share) for value in values]
        colour, marker = style.line["color"], style.line["marker"] or (_ALONE if len(x) == 1 else "")
        if style.band:
            low, high = [s.low for s in spreads], [s.high for s in spreads]
            opacity = 0.2 if style.line["linewidth"] > 2 else 0.11
            axes.fill_between(x, low, high, color=colour, alpha=opacity, linewidth=0, zorder=style.zorder - 2)
        axes.errorbar(
            x, [s.mean for s in spreads], yerr=_reach(spreads) if bars else None, **{**style.line, "marker": marker},
            elinewidth=1, capsize=2.5, zorder=style.zorder,
        )  # fmt: skip
    ticks: list[float] = []  # the values themselves, but for those whose label would touch its left neighbour's
    for value in axis.values:
        needed = 0.09 * (len(f"{value:g}") + 1) / (0.8 * inches)
        if not ticks or axis.position(value) - axis.position(ticks[-1]) >= needed:
            ticks.append(value)
    axes.set_xticks(ticks, [f"{value:g}" for value in ticks])
    axes.set_xticks([], minor=True)


def _dots(axes: Axes, curves: Sequence[Curve]) -> None:
    """One row per marked variant at its only x, best read with the names beside it; references are vertical lines."""
    marked = [curve for curve in curves if not curve.style.reference]
    for row, curve in enumerate(marked):
        style, spread = curve.style, next(iter(curve.points.values()))
        colour = style.line["color"]
        axes.barh(row, spread.high - spread.low, left=spread.low, height=0.4, color=colour, alpha=0.25, zorder=2)
        axes.errorbar(
            spread.mean, row, xerr=_reach([spread]), **style.line, elinewidth=1.4, capsize=5, zorder=style.zorder
        )
    for curve in curves:
        if curve.style.reference:
            for spread in curve.points.values():
                axes.axvline(spread.mean, **curve.style.line)
    axes.set_ylim(max(len(marked), 1) - 0.5, -0.5)
    axes.set_yticks(range(len(marked)), [_wrapped(curve.label) for curve in marked])
    axes.grid(visible=False, axis="y")


def _wrapped(name: str) -> str:
    """A label in lines of up to 34 letters, its mark never broken."""
    whole = NON_PRIVATE.replace("-", "\u2011")  # a hyphen at which no line ends
    return textwrap.fill(name.replace(NON_PRIVATE, whole), 34).replace(whole, NON_PRIVATE)


def _reach(spreads: Sequence[Spread]) -> list[list[float]]:
    """Distances from the mean to the ends of its interval, shape (2, n); zero where there is none."""
    ends = [(spread.mean, *(spread.interval or (spread.mean, spread.mean))) for spread in spreads]
    return [[max(0.0, mean - low) for mean, low, _ in ends], [max(0.0, high - mean) for mean, _, high in ends]]


def _scale(curves: Iterable[Curve], metric: Metric) -> tuple[str, tuple[float, float]]:
    """The scale of the values, and its ends: room for all means and quantiles, of errors from 0 or above.

    Intervals may leave the picture: those of two splits span everything. Squared errors are on a logarithmic scale
    where they are so far apart that the small ones could not be told from each other beside the large ones.
    """
    spreads = [spread for curve in curves for spread in curve.points.values()]
    low, high = min(spread.low for spread in spreads), max(spread.high for spread in spreads)
    if metric == MSE and low > 0 and high > _MAGNITUDES * low:
        factor = (high / low) ** 0.05
        return "log", (low / factor, high * factor)
    margin = 0.05 * (high - low) or 0.02
    return "linear", (low - margin if metric.higher_is_better else max(0.0, low - margin), high + margin)
