"""Figures of a run: a metric against epsilon, and against a swept number. Equal rows give equal files."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.protocol_options import BASELINES
from scenarios.results import Row
from scenarios.summary import NON_PRIVATE, Spread, VariantSummary, epsilons, summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRICS = ("accuracy", "balanced_accuracy")
_DPI = 150
_TALL = 2.0  # inches of all panels together that hold a slanted word
_SINGLE, _PANEL = (6.4, 3.6), (3.1, 2.6)  # inches of a panel alone, and of one among several
_LONGEST_NAME = 64
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
# Okabe and Ito 2008, without the yellow and the black; told apart with every common colour blindness.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_ALONE = "s"  # shows a reference at a single place, where there is no line
_GREYS = ("#333333", "#777777", "#555555")
_DASHES = ((0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))
_CROWD = 9  # private variants whose bands would hide each other
_EXPLANATION = "mean over releases; band: 5-95 % of single releases; bars: 95 % interval of the mean"
_EXPLANATION_OF_A_CROWD = (
    "mean over releases; bars: 95 % interval of the mean\n"
    "band, of the default and each protocol's first published variant: 5-95 % of single releases"
)


@dataclass(frozen=True)
class _Style:
    colour: str
    marker: str
    line: Any
    width: float
    zorder: float
    band: bool = False


@dataclass(frozen=True)
class _Curve:
    """One variant in one panel: a spread for every x, or for infinity alone when it does not depend on x."""

    label: str
    style: _Style
    points: Mapping[float, Spread]
    reference: bool


@dataclass(frozen=True)
class _Axis:
    """The horizontal axis that all panels of a figure share."""

    name: str
    values: tuple[float, ...]
    logarithmic: bool

    def position(self, value: float) -> float:
        """Where a value stands, between 0 and 1."""
        scale = math.log if self.logarithmic else float
        first, last = scale(self.values[0]), scale(self.values[-1])
        return (scale(value) - first) / (last - first)

    def shifted(self, value: float, share: float) -> float:
        """A value moved to the right by `share` of the axis."""
        first, last = self.values[0], self.values[-1]
        return value * (last / first) ** share if self.logarithmic else value + share * (last - first)


def draw(rows: Sequence[Row], directory: Path, title: str) -> list[Path]:
    """Write every figure of `figures` as PNG (150 dpi) and SVG into `directory`; the paths written."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in figures(rows, title).items():
        for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
            path = directory / f"{name}.{suffix}"
            with _styled():
                figure.savefig(path, dpi=_DPI, metadata=metadata)
            figure.set_layout_engine("none")  # what was arranged for the first file holds for the second
            written.append(path)
    return written


def figures(rows: Sequence[Row], title: str) -> dict[str, Figure]:
    """Figures by file name: METRIC against epsilon, and METRIC-KEY at the middle epsilon for swept numbers KEY.

    A metric without rows has none. Settings of swept keys stand side by side as panels.
    """
    drawn: dict[str, Figure] = {}
    for metric in METRICS:
        summaries = summarise(rows, metric)
        if summaries:
            with _styled():
                drawn[metric] = _against_epsilon(summaries, title)
                for key in _swept_numbers(summaries):
                    drawn[f"{metric}-{key}"] = _against_key(summaries, key, title)
    return drawn


@contextmanager
def _styled() -> Iterator[None]:
    """Matplotlib's own defaults and the style above, whatever is set outside, which comes back afterwards."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def _against_epsilon(summaries: Sequence[VariantSummary], title: str) -> Figure:
    styles = _styles(summaries)
    panels: dict[str, list[_Curve]] = {}
    for summary in summaries:
        panels.setdefault(summary.place, []).append(_curve(summary, styles, summary.by_epsilon))
    finite = tuple(epsilon for epsilon in epsilons(summaries) if math.isfinite(epsilon))
    return _figure(panels, _Axis("ε", finite, True), summaries, title)


def _against_key(summaries: Sequence[VariantSummary], key: str, title: str) -> Figure:
    """One curve per variant at the middle epsilon; panels for the other swept keys."""
    finite = [epsilon for epsilon in epsilons(summaries) if math.isfinite(epsilon)]
    middle = finite[len(finite) // 2] if finite else math.inf
    styles = _styles(summaries)
    points: dict[tuple[str, str], dict[float, Spread]] = {}
    known: dict[tuple[str, str], VariantSummary] = {}
    for summary in summaries:
        spread = summary.by_epsilon.get(middle) or summary.by_epsilon.get(math.inf)
        if key in summary.setting and spread is not None:
            others = ", ".join(f"{name} = {value}" for name, value in summary.setting.items() if name != key)
            points.setdefault((others, summary.variant), {})[float(summary.setting[key])] = spread
            known[others, summary.variant] = summary
    panels: dict[str, list[_Curve]] = {}
    for (others, variant), values in points.items():
        panels.setdefault(others, []).append(_curve(known[others, variant], styles, values))
    numbers = tuple(sorted({value for values in points.values() for value in values}))
    axis = _Axis(key, numbers, numbers[0] > 0 and numbers[-1] >= 10 * numbers[0])
    return _figure(panels, axis, summaries, f"{title}, ε = {middle:g}" if finite else title)


def _swept_numbers(summaries: Sequence[VariantSummary]) -> list[str]:
    """Swept keys of the worlds with two or more values, all of them numbers."""
    values: dict[str, set[str]] = {}
    for summary in summaries:
        for key, value in summary.setting.items():
            values.setdefault(key, set()).add(value)
    return [key for key, found in values.items() if len(found) > 1 and all(map(_is_number, found))]


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _styles(summaries: Sequence[VariantSummary]) -> dict[str, _Style]:
    """Colour and marker by variant, the same in every panel; greys and dashes without a guarantee.

    In a crowd only the default and each protocol's first published variant have bands.
    """
    names = {summary.variant: summary for summary in summaries if not summary.non_private}
    published = {s.protocol: name for name, s in reversed(names.items()) if "published" in name.split("-")}
    styles: dict[str, _Style] = {}
    private = references = 0
    for summary in summaries:
        if summary.variant in styles:
            continue
        if summary.non_private:
            grey, dashes = _GREYS[references % len(_GREYS)], _DASHES[references % len(_DASHES)]
            styles[summary.variant] = _Style(grey, "", dashes, 1.2, 1.5)
            references += 1
        else:
            colour, marker = _COLOURS[private % len(_COLOURS)], _MARKERS[private % len(_MARKERS)]
            line = "-" if private < len(_COLOURS) else "--"
            width, zorder = (2.6, 4.0) if summary.default else (1.3, 3.0)
            band = len(names) < _CROWD or summary.default or summary.variant in published.values()
            styles[summary.variant] = _Style(colour, marker, line, width, zorder, band)
            private += 1
    return styles


def _curve(summary: VariantSummary, styles: Mapping[str, _Style], points: Mapping[float, Spread]) -> _Curve:
    return _Curve("\n".join(summary.lines(_LONGEST_NAME)), styles[summary.variant], points, summary.non_private)


def _figure(
    panels: Mapping[str, Sequence[_Curve]], axis: _Axis, summaries: Sequence[VariantSummary], title: str
) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = 2 if len(panels) == 4 else min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    width, height = _SINGLE if len(panels) == 1 else _PANEL
    legend = {curve.label: curve for curves in panels.values() for curve in curves}
    one_value = len(axis.values) < 2
    if one_value:  # a row of the panel per variant, so that only the references need a legend
        private = {label for label, curve in legend.items() if not curve.reference}
        height = 0.9 + 0.34 * max(1, len(private))
        legend = {label: curve for label, curve in legend.items() if curve.reference}
    total = max(columns * width, _SINGLE[0])
    across = max(1, int(total / (_LETTER * max(map(len, legend), default=0) + 0.6)))
    lines = math.ceil(sum(1 + label.count("\n") for label in legend) / across)
    explanation = _explanation(panels, one_value)
    size = (total, rows * height + 0.17 * (lines + explanation.count("\n")) + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    metric = summaries[0].metric.replace("_", " ")
    limits = _limits([curve for curves in panels.values() for curve in curves])
    for number, (axes, (name, curves)) in enumerate(zip(grid, panels.items(), strict=False)):
        axes.set_title(textwrap.fill(name, 40), fontsize=9)
        if one_value:
            _dots(axes, curves, limits, metric if not axis.values else f"{metric} at {axis.name} = {axis.values[0]:g}")
        else:
            _lines(axes, curves, axis, size[0] / columns)
            axes.set(ylim=limits, xlabel=axis.name, ylabel=metric)
        lowest = number >= len(panels) - columns
        axes.tick_params(labelbottom=lowest, labelleft=number % columns == 0)
        axes.set_xlabel(axes.get_xlabel() if lowest else "")
        axes.set_ylabel(axes.get_ylabel() if number % columns == 0 else "")
    for axes in grid[len(panels) :]:
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
        tall = rows * height > _TALL
        middle = 1 - (0.3 + (rows * height - 0.45) / 2) / size[1]  # of the panels, between title and axis labels
        figure.text(
            0.5, middle, NON_PRIVATE, rotation=25 if tall else 0, ha="center", va="center",
            fontsize=min(46, 16 * rows * height) if tall else 30, color="#b00020", alpha=0.13, weight="bold",
        )  # fmt: skip
    return figure


def _explanation(panels: Mapping[str, Sequence[_Curve]], one_value: bool) -> str:
    private = [curve for curves in panels.values() for curve in curves if not curve.reference]
    return _EXPLANATION if one_value or all(curve.style.band for curve in private) else _EXPLANATION_OF_A_CROWD


def _lines(axes: Axes, curves: Sequence[_Curve], axis: _Axis, inches: float) -> None:
    """Curves over the axis; each is moved aside a little, so that error bars do not hide each other."""
    private = [curve for curve in curves if not curve.reference]
    closest = min(axis.position(b) - axis.position(a) for a, b in pairwise(axis.values))
    step = 0.12 * closest / max(len(private), 2)
    if axis.logarithmic:
        axes.set_xscale("log")
    for curve in curves:
        style = curve.style
        if curve.reference and math.inf in curve.points:
            spread = curve.points[math.inf]
            axes.axhline(spread.mean, color=style.colour, linestyle=style.line, linewidth=style.width, zorder=1.5)
            continue
        share = 0.0 if curve.reference else (private.index(curve) - (len(private) - 1) / 2) * step
        values = sorted(curve.points)
        spreads = [curve.points[value] for value in values]
        x = [axis.shifted(value, share) for value in values]
        if style.band:
            low, high = [s.low for s in spreads], [s.high for s in spreads]
            opacity = 0.2 if style.width > 2 else 0.11
            axes.fill_between(x, low, high, color=style.colour, alpha=opacity, linewidth=0, zorder=style.zorder - 2)
        axes.errorbar(
            x, [s.mean for s in spreads], yerr=_reach(spreads), color=style.colour, linestyle=style.line,
            linewidth=style.width, marker=style.marker or (_ALONE if len(x) == 1 else ""), markersize=5,
            markeredgecolor="white", markeredgewidth=0.6, elinewidth=1, capsize=2.5, zorder=style.zorder,
        )  # fmt: skip
    axes.set_xticks(_ticks(axis, inches), [f"{value:g}" for value in _ticks(axis, inches)])
    axes.set_xticks([], minor=True)


def _dots(axes: Axes, curves: Sequence[_Curve], limits: tuple[float, float], name: str) -> None:
    """One row per private variant at its only x, best read with the names beside it; references are vertical lines."""
    private = [curve for curve in curves if not curve.reference]
    for row, curve in enumerate(private):
        style, spread = curve.style, next(iter(curve.points.values()))
        axes.barh(row, spread.high - spread.low, left=spread.low, height=0.4, color=style.colour, alpha=0.25, zorder=2)
        axes.errorbar(
            spread.mean, row, xerr=_reach([spread]), color=style.colour, marker=style.marker, markersize=5,
            markeredgecolor="white", markeredgewidth=0.6, elinewidth=1.4, capsize=5, zorder=style.zorder,
        )  # fmt: skip
    for curve in curves:
        if curve.reference:
            for spread in curve.points.values():
                axes.axvline(spread.mean, color=curve.style.colour, linestyle=curve.style.line, linewidth=1.2)
    axes.set(xlim=limits, xlabel=name, ylim=(max(len(private), 1) - 0.5, -0.5))
    axes.set_yticks(range(len(private)), [textwrap.fill(curve.label, 34) for curve in private])
    axes.grid(visible=False, axis="y")


def _reach(spreads: Sequence[Spread]) -> list[list[float]]:
    """Distances from the mean to the ends of its interval, shape (2, n); zero where there is none."""
    ends = [spread.interval or (spread.mean, spread.mean) for spread in spreads]
    return [
        [max(0.0, spread.mean - low) for spread, (low, _) in zip(spreads, ends, strict=True)],
        [max(0.0, high - spread.mean) for spread, (_, high) in zip(spreads, ends, strict=True)],
    ]


def _limits(curves: Sequence[_Curve]) -> tuple[float, float]:
    """Room for all means and quantiles. Intervals may leave the picture: those of two splits span everything."""
    spreads = [spread for curve in curves for spread in curve.points.values()]
    low, high = min(spread.low for spread in spreads), max(spread.high for spread in spreads)
    margin = 0.05 * (high - low) or 0.02
    return low - margin, high + margin


def _ticks(axis: _Axis, inches: float) -> list[float]:
    """The values themselves, but for those whose label would touch its left neighbour's."""
    kept: list[float] = []
    for value in axis.values:
        needed = 0.09 * (len(f"{value:g}") + 1) / (0.8 * inches)
        if not kept or axis.position(value) - axis.position(kept[-1]) >= needed:
            kept.append(value)
    return kept


def _handle(curve: _Curve) -> Any:
    from matplotlib.lines import Line2D

    style = curve.style
    return Line2D(
        [], [], label=curve.label, color=style.colour, linestyle=style.line, linewidth=style.width,
        marker=style.marker, markersize=5, markeredgecolor="white", markeredgewidth=0.6,
    )  # fmt: skip
