"""A figure for a paper: no title, a size in inches, fonts embedded, curves that a black-and-white print tells apart."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from federation.contract.errors import InputError
from scenarios.reports.axes import styled
from scenarios.reports.curves import Axis
from scenarios.reports.series import Plot, Series
from scenarios.reports.summary import NON_PRIVATE, broken
from scenarios.scores.tasks import MSE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

FORMATS = ("pdf", "svg", "png")
SIZES = {"column": 3.25, "page": 6.75}  # inches: the narrowest column and page of the usual two-column classes
_HEIGHT = 2.0  # inches of axes with their labels where only the width is given
_LEAST, _MOST = 1.5, 30.0  # inches of a side
_LETTER = 0.062  # inches of a letter in the legend
_STYLE = {
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "axes.linewidth": 0.6,
    "pdf.fonttype": 42,  # TrueType, embedded; publishers refuse matplotlib's own Type 3
    "svg.fonttype": "path",
}
_METADATA: Mapping[str, dict[str, None]] = {  # equal values, equal files
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}
_DOTS = 600  # per inch, of a PNG: what journals ask of line drawings
# Okabe and Ito 2008, dark and light in turn; dashes and markers have no common period below 28 curves.
_COLOURS = ("#0072B2", "#E69F00", "#D55E00", "#56B4E9", "#009E73", "#CC79A7")
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1.5, 1, 1.5)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_REFERENCES = ((0, (6, 3)), (0, (1, 2)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))
_MAGNITUDES = 10.0  # numbers this many times apart are on a logarithmic axis
_ASIDE, _TOGETHER = 0.006, 0.03  # of the axis: between neighbouring curves, and between the first and the last
_ENOUGH = 3  # splits: the interval of fewer is wider than any picture


def inches(size: str) -> tuple[float, float | None]:
    """Width and height that `--size` means, in inches; no height where that follows from the legend.

    Raises `InputError` for anything but column, page and WxH.

    Examples:
        >>> inches("column"), inches("5x2.5")
        ((3.25, None), (5.0, 2.5))
    """
    if size in SIZES:
        return SIZES[size], None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)x(\d+(?:\.\d+)?)", size)
    sides = tuple(map(float, found.groups())) if found else ()
    if not sides or not all(_LEAST <= side <= _MOST for side in sides):
        raise InputError(
            f"--size must be {', '.join(SIZES)} or WIDTHxHEIGHT in inches from {_LEAST:g} to {_MOST:g}, such as "
            f"3.5x2.2; got '{size}'"
        )
    return sides[0], sides[1]


def write(
    plot: Plot, stem: Path, formats: Sequence[str], size: str = "column", labels: Mapping[str, str] | None = None
) -> list[Path]:
    """Write the figure as STEM.FORMAT for each of `formats` (pdf, svg, png); the paths written.

    `labels` are other names of variants; what protects nobody says so behind any name. Equal plots give equal files.
    Raises `InputError` for a size without room, and where nothing can be written.
    """
    written = []
    with styled():
        import matplotlib

        matplotlib.rcParams.update(_STYLE)
        figure = drawn(plot, *inches(size), labels or {})
        for suffix in formats:
            path = stem.with_name(f"{stem.name}.{suffix}")
            try:
                figure.savefig(path, dpi=_DOTS, metadata=_METADATA[suffix])
            except OSError as error:
                raise InputError(f"cannot write {path}: {error.strerror}; name another --out") from error
            figure.set_layout_engine("none")  # what was arranged for the first file holds for the others
            written.append(path)
    return written


def drawn(plot: Plot, width: float, height: float | None, labels: Mapping[str, str]) -> Figure:
    """The figure, in inches; without a `height` it has room for its legend. Raises `InputError` where there is none."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(width, height or _HEIGHT), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    handles, axis, step = [], _axis(plot), min(_ASIDE, _TOGETHER / len(plot.series))
    for number, (one, look) in enumerate(zip(plot.series, _looks(plot.series), strict=True)):
        aside = 0.0 if one.reference else step * (number - (len(plot.series) - 1) / 2)
        _curve(axes, one, look, axis, aside)
        lines = "\n".join(broken(_named(one, labels), int((width - 0.6) / _LETTER)))
        handles.append(Line2D([], [], label=lines, **look))
    _scale_x(axes, axis, width)
    _scale_y(axes, plot)
    tall = _legend(figure, handles).get_window_extent().height / figure.dpi
    if height is None:
        figure.set_figheight(_HEIGHT + tall)
    elif height - tall < _HEIGHT / 2:
        raise InputError(
            f"--size {width:g}x{height:g} leaves no room beside a legend of {tall:.1f} inches; make it "
            f"{math.ceil(10 * (tall + _HEIGHT / 2)) / 10:g} inches tall, or show fewer curves with --only"
        )
    return figure


def _named(one: Series, labels: Mapping[str, str]) -> str:
    """The name in the legend, which tells of every variant that protects nobody."""
    name = labels.get(one.name, one.name)
    exposed = (one.reference or one.claiming) and NON_PRIVATE.lower() not in name.lower()
    return f"{name} ({NON_PRIVATE.lower()})" if exposed else name


def _looks(series: Sequence[Series]) -> list[dict[str, Any]]:
    """What matplotlib calls the properties of each curve: no two have the same dashes and markers."""
    looks: list[dict[str, Any]] = []
    references = 0
    for one in series:
        number = len(looks) - references
        look = {"color": _COLOURS[number % len(_COLOURS)], "linewidth": 1.1, "markersize": 3.6, "zorder": 3.0}
        look |= {"linestyle": _DASHES[number % len(_DASHES)], "marker": _MARKERS[number % len(_MARKERS)]}
        if one.claiming:
            look |= {"markerfacecolor": "white"}
        if one.reference:
            dashes = _REFERENCES[references % len(_REFERENCES)]
            look = {"color": "#444444", "linewidth": 0.9, "linestyle": dashes, "marker": "", "zorder": 2.0}
            references += 1
        looks.append(look)
    return looks


def _curve(axes: Axes, one: Series, look: Mapping[str, Any], axis: Axis, aside: float) -> None:
    """Means with the intervals of the means; a line across where they do not depend on the axis.

    They are moved `aside` by this share of the axis, so that the intervals of curves do not hide each other.
    """
    if math.inf in one.points:
        axes.axhline(one.points[math.inf].mean, **{**look, "marker": ""})
        return
    values = sorted(one.points)
    spreads = [one.points[value] for value in values]
    ends = [spread.interval or (spread.mean, spread.mean) for spread in spreads]
    reach = [
        [spread.mean - low for spread, (low, _) in zip(spreads, ends, strict=True)],
        [high - spread.mean for spread, (_, high) in zip(spreads, ends, strict=True)],
    ]
    alone = {"marker": "_"} if len(values) == 1 and one.reference else {}
    means = [spread.mean for spread in spreads]
    places = [axis.shifted(value, aside) for value in values]
    axes.errorbar(places, means, yerr=reach, **{**look, **alone}, elinewidth=0.7, capsize=1.8, capthick=0.7)


def _axis(plot: Plot) -> Axis:
    values = plot.values
    return Axis(plot.x_label, tuple(values), values[0] > 0 and values[-1] >= _MAGNITUDES * values[0])


def _scale_x(axes: Axes, axis: Axis, width: float) -> None:
    """The values themselves as ticks, but for those whose label would touch its left neighbour's."""
    if axis.logarithmic:
        axes.set_xscale("log")
    ticks: list[tuple[float, str]] = []
    for value in axis.values:
        label = f"{value:.3g}" if value < 1000 else f"{value:g}"
        room = 0.075 * (len(label) + 1) / (0.75 * width)
        if not ticks or axis.position(value) - axis.position(ticks[-1][0]) >= room:
            ticks.append((value, label))
    axes.set_xticks(*zip(*ticks, strict=True))
    axes.set_xticks([], minor=True)
    axes.set_xlabel(axis.name)


def _scale_y(axes: Axes, plot: Plot) -> None:
    """Room for all means and their intervals; those of two splits may leave the picture. Errors begin at 0 or above."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    spreads = [spread for one in plot.series for spread in one.points.values()]
    seen = [spread.mean for spread in spreads]
    seen += [end for spread in spreads if spread.splits >= _ENOUGH for end in spread.interval or ()]
    low, high = min(seen), max(seen)
    axes.set_ylabel(plot.metric.label)
    if plot.metric == MSE and 0 < low * _MAGNITUDES < high:
        margin = (high / low) ** 0.05
        axes.set(yscale="log", ylim=(low / margin, high * margin))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        return
    margin = 0.05 * (high - low) or 0.02
    least = low - margin if plot.metric.higher_is_better else max(0.0, low - margin)
    axes.set_ylim(least, high + margin)


def _legend(figure: Figure, handles: Sequence[Any]) -> Legend:
    """The legend above the axes, in the fewest lines that are not wider than the figure."""
    for lines in range(1, len(handles) + 1):
        legend = figure.legend(
            handles=list(handles),
            loc="outside upper center",
            ncols=math.ceil(len(handles) / lines),
            handlelength=2.6,
            columnspacing=1.2,
            borderaxespad=0.2,
        )
        if lines == len(handles) or legend.get_window_extent().width <= figure.bbox.width:
            break
        legend.remove()
    return legend
