"""Draws the curves of one panel, and the scale and the words that all panels of a figure share."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.reports.curves import Curve, Panel, Plot
from scenarios.reports.summary import NON_PRIVATE, Spread
from scenarios.scores.metrics import metric_named
from scenarios.scores.tasks import MSE
from scenarios.settings.words import PERIOD

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Scale = tuple[str, tuple[float, float]]  # of the values: "linear" or "log", and both ends
INK, PAPER, GRID, EDGE = "#000000", "#ffffff", "#e4e4e4", "#666666"
_STYLE = {
    "font.size": 9.0,
    "text.parse_math": False,  # names are text, whatever signs are in them
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.edgecolor": EDGE,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "svg.hashsalt": "federation",
    "svg.fonttype": "path",
}
_ALONE = "s"  # shows a reference at a single place, where there is no line
_BANDS = "5-95 % of single releases"
_EXPLANATION_OF_HOLLOW = f"hollow markers: {NON_PRIVATE}, the ε is claimed and not kept"
_EXPLANATION_OF_POINTS = "points beside a mean: its two splits, too few for an interval"
_MAGNITUDES = 20.0  # squared errors this many times apart are drawn on a logarithmic scale
_LINE = 46  # letters of a name above its row


_METADATA: dict[str, dict[str, Any]] = {  # equal values, equal files
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}
FORMATS = tuple(_METADATA)


@contextmanager
def styled() -> Iterator[None]:
    """Matplotlib's own defaults and the style above, whatever is set outside, which comes back afterwards."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def save(figure: Figure, stem: Path, formats: Sequence[str], dots: float) -> list[Path]:
    """Write STEM.FORMAT for each of `formats` (`FORMATS`), a PNG of `dots` per inch, while `styled`; the paths."""
    figure.set_dpi(dots)
    arrange(figure)
    written = []
    for suffix in formats:
        path = stem.with_name(f"{stem.name}.{suffix}")
        drawn = BytesIO()  # written at once: where a disk is full, the PDF backend ends with an error of its own
        figure.savefig(drawn, format=suffix, dpi=dots, metadata=_METADATA[suffix])
        path.write_bytes(drawn.getvalue())
        written.append(path)
    return written


def arrange(figure: Figure) -> None:
    """Place the panels, while `styled`, for all that is written later: in whichever format it is drawn only."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)


def draw_panel(axes: Axes, panel: Panel, plot: Plot, scale: Scale, inches: float) -> None:
    """Curves over the axis, or a row for each where it has one value; `inches` is how wide the panel is."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    known = metric_named(plot.metric)
    axes.set_title(textwrap.fill(panel.title, 40), fontsize=9)
    if plot.of_one_value:
        place = f"{known.label} at {plot.axis.name} = {plot.axis.values[0]:g}" if plot.axis.values else known.label
        _dots(axes, panel.curves, plot.metric)
        axes.set(xscale=scale[0], xlim=scale[1], xlabel=place)
    else:
        _lines(axes, panel.curves, plot, inches)
        axes.set(yscale=scale[0], ylim=scale[1], xlabel=plot.axis.name, ylabel=known.label)
    if scale[0] == "log":  # numbers as such: text is not parsed for formulas
        measured = axes.xaxis if plot.of_one_value else axes.yaxis
        measured.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        measured.set_minor_formatter(NullFormatter())


def scale_of(plot: Plot) -> Scale:
    """The scale of the values, and its ends: room for all means, bands and intervals, of errors from 0 or above.

    Squared errors are on a logarithmic scale where they are so far apart that the small ones could not be told from
    each other beside the large ones; there intervals, which may reach 0, may leave the picture.
    """
    metric, seen = metric_named(plot.metric), []
    for curve in plot.curves:
        banded = curve.look.band or plot.of_one_value
        for spread in curve.points.values():
            seen += [spread.mean, *([spread.low, spread.high] if banded else [])]
    low, high = min(seen), max(seen)
    if metric == MSE and low > 0 and high > _MAGNITUDES * low:
        factor = (high / low) ** 0.05
        return "log", (low / factor, high * factor)
    seen += [end for spread in plot.barred for end in spread.interval_of(plot.metric) or spread.points]
    low, high = min(seen), max(seen)
    margin = 0.05 * (high - low) or 0.02
    return "linear", (low - margin if metric.higher_is_better else max(0.0, low - margin), high + margin)


def explanations(plot: Plot) -> list[str]:
    """What means, bands, bars, points and markers of these curves are, in short sentences without their stops."""
    marked = [curve for curve in plot.curves if not curve.look.reference]
    lines = ["mean over releases"]
    if any(spread.interval_of(plot.metric) for spread in plot.barred):
        within = " of each period: periods are no repetitions" if plot.axis.name == PERIOD else ""
        lines.append(f"bars: 95 % intervals of the mean (Student), with the splits as units{within}")
    if plot.of_one_value or any(curve.look.band for curve in marked):
        few = not plot.of_one_value and not all(curve.look.band for curve in marked)
        lines.append(f"band{', of the first and of what is published' if few else ''}: {_BANDS}")
    if any(spread.points for spread in plot.barred):
        lines.append(_EXPLANATION_OF_POINTS)
    if any(curve.look.hollow for curve in marked):
        lines.append(_EXPLANATION_OF_HOLLOW)
    return lines


def _lines(axes: Axes, curves: Sequence[Curve], plot: Plot, inches: float) -> None:
    """Curves over the axis; with bars each is moved aside a little, so that they do not hide each other."""
    axis, bars = plot.axis, plot.bars
    marked = [curve for curve in curves if not curve.look.reference]
    closest = min(axis.position(b) - axis.position(a) for a, b in pairwise(axis.values))
    step = 0.12 * closest / max(len(marked), 2) if bars else 0.0
    if axis.logarithmic:
        axes.set_xscale("log")
    for curve in curves:
        look = curve.look
        if curve.across:
            line = {**look.line, "marker": ""}
            axes.axhline(curve.points[math.inf].mean, **line, zorder=look.zorder, gid=curve.label)
            continue
        share = 0.0 if look.reference else (marked.index(curve) - (len(marked) - 1) / 2) * step
        values = sorted(filter(math.isfinite, curve.points))
        spreads = [curve.points[value] for value in values]
        x = [axis.shifted(value, share) for value in values]
        colour, marker = look.line["color"], look.line["marker"] or (_ALONE if len(x) == 1 else "")
        if look.band:
            low, high = [s.low for s in spreads], [s.high for s in spreads]
            opacity = 0.2 if look.line["linewidth"] > 2 else 0.11
            axes.fill_between(x, low, high, color=colour, alpha=opacity, linewidth=0, zorder=look.zorder - 2)
        axes.errorbar(
            x, [s.mean for s in spreads], yerr=_reach(spreads, plot.metric) if bars else None,
            **{**look.line, "marker": marker}, elinewidth=0.8, capsize=2, zorder=look.zorder, gid=curve.label,
        )  # fmt: skip
        if bars:
            pairs = [(place, value) for place, spread in zip(x, spreads, strict=True) for value in spread.points]
            _points(axes, pairs, colour)
    ticks: list[tuple[float, str]] = []  # the values, but for those whose label would touch its left neighbour's
    for value in axis.values:
        label = f"{value:.3g}" if value < 1000 else f"{value:g}"
        needed = 0.09 * (len(label) + 1) / (0.8 * inches)
        if not ticks or axis.position(value) - axis.position(ticks[-1][0]) >= needed:
            ticks.append((value, label))
    axes.set_xticks(*zip(*ticks, strict=True))
    axes.set_xticks([], minor=True)


def _dots(axes: Axes, curves: Sequence[Curve], metric: str) -> None:
    """One row per marked variant at its only x, best read with the names above it; references are vertical lines."""
    marked = [curve for curve in curves if not curve.look.reference]
    for row, curve in enumerate(marked):
        look, spread = curve.look, next(iter(curve.points.values()))
        colour = look.line["color"]
        axes.barh(row, spread.high - spread.low, left=spread.low, height=0.25, color=colour, alpha=0.25, zorder=2)
        axes.errorbar(
            spread.mean, row, xerr=_reach([spread], metric), **look.line, elinewidth=1.4, capsize=4,
            zorder=look.zorder, gid=curve.label,
        )  # fmt: skip
        _points(axes, [(value, row) for value in spread.points], colour)
        axes.annotate(
            _shortened(curve.label), (0, row - 0.22), xycoords=("axes fraction", "data"), va="bottom", fontsize=8,
            zorder=5, bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.6},
        )  # fmt: skip
    for curve in curves:
        if curve.look.reference:
            for spread in curve.points.values():
                axes.axvline(spread.mean, **curve.look.line, gid=curve.label)
    axes.set_ylim(max(len(marked), 1) - 0.6, -0.8)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False, axis="y")


def _points(axes: Axes, pairs: Sequence[tuple[float, float]], colour: str) -> None:
    """Small points, where there are any."""
    if pairs:
        x, y = zip(*pairs, strict=True)
        axes.plot(x, y, linestyle="none", marker=".", markersize=3.5, color=colour, alpha=0.8, zorder=5)


def _shortened(label: str) -> str:
    """A label in one line of so many letters, its last line, the mark or a note, never cut."""
    name, *rest = label.split("\n")
    end = "".join(f" {part}" for part in rest[-1:])
    if not rest and name.endswith(")"):
        name, end = name.rsplit(" (", 1)[0], f" ({name.rsplit(' (', 1)[1]}"
    room = max(8, _LINE - len(end))
    return (name if len(name) <= room else f"{name[: room - 1]}…") + end


def _reach(spreads: Sequence[Spread], metric: str) -> list[list[float]]:
    """Distances from the mean to the ends of its interval, shape (2, n); zero where there is none."""
    ends = [(spread.mean, *(spread.interval_of(metric) or (spread.mean, spread.mean))) for spread in spreads]
    return [[max(0.0, mean - low) for mean, low, _ in ends], [max(0.0, high - mean) for mean, _, high in ends]]
