"""Draws curves side by side in panels, with one legend that explains them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from scenarios.reports.curves import Axis, Curve
from scenarios.reports.summary import NON_PRIVATE, Spread, VariantSummary
from scenarios.scores.metrics import label
from scenarios.scores.tasks import MSE, primaries
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
_EXPLANATION = f"mean over releases; band: 5-95 % of single releases{_BARS}"
_EXPLANATION_OF_A_CROWD = (
    f"mean over releases{_BARS}\n"
    "band, of the default and each protocol's first published variant: 5-95 % of single releases"
)
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
    shown: Mapping[str, Sequence[Curve]],
    axis: Axis,
    summaries: Sequence[VariantSummary],
    metric: str,
    title: str,
    *,
    bars: bool = True,
) -> Figure:
    """One panel per setting, named by it, with its curves of `metric`; rows of dots where the axis has one value.

    `summaries` are all that the curves show: without a guarantee for one of them the figure is watermarked. `bars`
    false leaves out the intervals of the means, which would hide the curves where there are many of both.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = 2 if len(shown) == 4 else min(3, len(shown))
    rows = math.ceil(len(shown) / columns)
    width, height = _SINGLE if len(shown) == 1 else _PANEL
    legend = {curve.label: curve for curves in shown.values() for curve in curves}
    one_value = len(axis.values) < 2
    if one_value:  # a row of the panel per variant, so that only the references need a legend
        marked = {name for name, curve in legend.items() if not curve.reference}
        height = 0.9 + 0.34 * max(1, len(marked))
        legend = {name: curve for name, curve in legend.items() if curve.reference}
    total = max(columns * width, _SINGLE[0])
    across = max(1, int(total / (_LETTER * max(map(len, legend), default=0) + 0.6)))
    lines = math.ceil(sum(1 + name.count("\n") for name in legend) / across)
    explanation = _explanation(shown, one_value)
    explanation = explanation if bars else explanation.replace(_BARS, "")
    size = (total, rows * height + 0.17 * (lines + explanation.count("\n")) + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    measure = label(metric)
    every = [curve for curves in shown.values() for curve in curves]
    scale = "log" if metric == MSE.name and _spans_magnitudes(every) else "linear"
    limits = _limits(every, metric in {known.name for known in primaries() if not known.higher_is_better}, scale)
    for number, (axes, (name, curves)) in enumerate(zip(grid, shown.items(), strict=False)):
        axes.set_title(textwrap.fill(name, 40), fontsize=9)
        if one_value:
            place = f"{measure} at {axis.name} = {axis.values[0]:g}" if axis.values else measure
            _dots(axes, curves, limits, scale, place)
        else:
            _lines(axes, curves, axis, size[0] / columns, bars)
            axes.set(yscale=scale, ylim=limits, xlabel=axis.name, ylabel=measure)
            _plain_numbers(axes.yaxis, scale)
        lowest = number >= len(shown) - columns
        axes.tick_params(labelbottom=lowest, labelleft=number % columns == 0)
        axes.set_xlabel(axes.get_xlabel() if lowest else "")
        axes.set_ylabel(axes.get_ylabel() if number % columns == 0 else "")
    for axes in grid[len(shown) :]:
        axes.remove()
    figure.suptitle(textwrap.fill(title, 80), fontsize=11)
    figure.legend(
        handles=[_handle(curve) for curve in legend.values()],
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


def _plain_numbers(axis: Any, scale: str) -> None:
    """Numbers on a logarithmic axis as such: text is not parsed for formulas."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    if scale == "log":
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def _explanation(shown: Mapping[str, Sequence[Curve]], one_value: bool) -> str:
    marked = [curve for curves in shown.values() for curve in curves if not curve.reference]
    all_bands = one_value or all(curve.style.band for curve in marked)
    hollow = _EXPLANATION_OF_HOLLOW if any(curve.style.hollow for curve in marked) else ""
    return (_EXPLANATION if all_bands else _EXPLANATION_OF_A_CROWD) + hollow


def _lines(axes: Axes, curves: Sequence[Curve], axis: Axis, inches: float, bars: bool) -> None:
    """Curves over the axis; with bars each is moved aside a little, so that they do not hide each other."""
    marked = [curve for curve in curves if not curve.reference]
    closest = min(axis.position(b) - axis.position(a) for a, b in pairwise(axis.values))
    step = 0.12 * closest / max(len(marked), 2) if bars else 0.0
    if axis.logarithmic:
        axes.set_xscale("log")
    for curve in curves:
        style = curve.style
        if curve.reference and math.inf in curve.points:
            spread = curve.points[math.inf]
            axes.axhline(spread.mean, color=style.colour, linestyle=style.line, linewidth=style.width, zorder=1.5)
            continue
        share = 0.0 if curve.reference else (marked.index(curve) - (len(marked) - 1) / 2) * step
        values = sorted(curve.points)
        spreads = [curve.points[value] for value in values]
        x = [axis.shifted(value, share) for value in values]
        if style.band:
            low, high = [s.low for s in spreads], [s.high for s in spreads]
            opacity = 0.2 if style.width > 2 else 0.11
            axes.fill_between(x, low, high, color=style.colour, alpha=opacity, linewidth=0, zorder=style.zorder - 2)
        reach = _reach(spreads) if bars else None
        axes.errorbar(
            x, [s.mean for s in spreads], yerr=reach, color=style.colour, linestyle=style.line,
            linewidth=style.width, marker=style.marker or (_ALONE if len(x) == 1 else ""), **style.marks,
            elinewidth=1, capsize=2.5, zorder=style.zorder,
        )  # fmt: skip
    axes.set_xticks(_ticks(axis, inches), [f"{value:g}" for value in _ticks(axis, inches)])
    axes.set_xticks([], minor=True)


def _dots(axes: Axes, curves: Sequence[Curve], limits: tuple[float, float], scale: str, name: str) -> None:
    """One row per marked variant at its only x, best read with the names beside it; references are vertical lines."""
    marked = [curve for curve in curves if not curve.reference]
    for row, curve in enumerate(marked):
        style, spread = curve.style, next(iter(curve.points.values()))
        axes.barh(row, spread.high - spread.low, left=spread.low, height=0.4, color=style.colour, alpha=0.25, zorder=2)
        axes.errorbar(
            spread.mean, row, xerr=_reach([spread]), color=style.colour, marker=style.marker, **style.marks,
            elinewidth=1.4, capsize=5, zorder=style.zorder,
        )  # fmt: skip
    for curve in curves:
        if curve.reference:
            for spread in curve.points.values():
                axes.axvline(spread.mean, color=curve.style.colour, linestyle=curve.style.line, linewidth=1.2)
    axes.set(xscale=scale, xlim=limits, xlabel=name, ylim=(max(len(marked), 1) - 0.5, -0.5))
    _plain_numbers(axes.xaxis, scale)
    axes.set_yticks(range(len(marked)), [_wrapped(curve.label) for curve in marked])
    axes.grid(visible=False, axis="y")


def _wrapped(name: str) -> str:
    """A label in lines of up to 34 letters, its mark never broken."""
    whole = NON_PRIVATE.replace("-", "\u2011")  # a hyphen at which no line ends
    return textwrap.fill(name.replace(NON_PRIVATE, whole), 34).replace(whole, NON_PRIVATE)


def _reach(spreads: Sequence[Spread]) -> list[list[float]]:
    """Distances from the mean to the ends of its interval, shape (2, n); zero where there is none."""
    ends = [spread.interval or (spread.mean, spread.mean) for spread in spreads]
    return [
        [max(0.0, spread.mean - low) for spread, (low, _) in zip(spreads, ends, strict=True)],
        [max(0.0, high - spread.mean) for spread, (_, high) in zip(spreads, ends, strict=True)],
    ]


def _ends(curves: Sequence[Curve]) -> tuple[float, float]:
    """The lowest and the highest quantile that is shown."""
    spreads = [spread for curve in curves for spread in curve.points.values()]
    return min(spread.low for spread in spreads), max(spread.high for spread in spreads)


def _spans_magnitudes(curves: Sequence[Curve]) -> bool:
    """Whether values are so far apart that the small ones could not be told apart beside the large ones."""
    low, high = _ends(curves)
    return low > 0 and high > _MAGNITUDES * low


def _limits(curves: Sequence[Curve], errors: bool, scale: str) -> tuple[float, float]:
    """Room for all means and quantiles, of errors from 0 or above.

    Intervals may leave the picture: those of two splits span everything.
    """
    low, high = _ends(curves)
    if scale == "log":
        margin = (high / low) ** 0.05
        return low / margin, high * margin
    margin = 0.05 * (high - low) or 0.02
    return max(0.0, low - margin) if errors else low - margin, high + margin


def _ticks(axis: Axis, inches: float) -> list[float]:
    """The values themselves, but for those whose label would touch its left neighbour's."""
    kept: list[float] = []
    for value in axis.values:
        needed = 0.09 * (len(f"{value:g}") + 1) / (0.8 * inches)
        if not kept or axis.position(value) - axis.position(kept[-1]) >= needed:
            kept.append(value)
    return kept


def _handle(curve: Curve) -> Any:
    from matplotlib.lines import Line2D

    style = curve.style
    return Line2D(
        [], [], label=curve.label, color=style.colour, linestyle=style.line, linewidth=style.width,
        marker=style.marker, **style.marks,
    )  # fmt: skip
