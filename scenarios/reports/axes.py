"""Drawing of curves: styles of variants, axes, panels, and whole figures with one legend.

- `looks` chooses the style of each variant, and `chosen` the variants that a figure shows first.
- `panels` collects the values of each variant along an axis.
- `figure` places panels side by side, with one legend that explains them.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, pairwise
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from scenarios.reports.summary import NON_PRIVATE, Spread, VariantSummary, is_published, lines_of, middle_of
from scenarios.scores.results import metric_named
from scenarios.scores.scoring import MSE
from scenarios.settings.protocol_options import BASELINES, CONSTANT, POOLED
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


def canvas(width: float, height: float) -> Figure:
    """Return an empty figure of so many inches, which needs no window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


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


_TALL = 2.0  # inches of all panels together that hold a slanted word
_SINGLE, _PANEL = (6.4, 3.6), (3.1, 2.6)  # inches of a panel alone, and of one among several
_LETTER = 0.068  # inches of a letter in the legend
_ROW = 0.42  # inches of a variant's row, where the axis has one value


def figure(plot: Plot, title: str) -> Figure:
    """One panel per setting, named by it; rows of dots where the axis has one value.

    Where nothing has a guarantee it is watermarked.
    """
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
    drawn = canvas(total, rows * height + 0.17 * (lines + len(explained)) + 0.6)
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


_LONGEST_NAME = 64
_AXIS_MAGNITUDES = 10.0
Placed = tuple[str, VariantSummary, Mapping[float, Spread]]  # a panel, and what a variant has there along the axis


@dataclass(frozen=True)
class Curve:
    """One variant in one panel: a spread for every x, or for infinity alone when it does not depend on x."""

    label: str
    look: Look
    points: Mapping[float, Spread]

    @property
    def across(self) -> bool:
        """Whether it is a line across, because it does not depend on x."""
        return list(self.points) == [math.inf]


@dataclass(frozen=True)
class Axis:
    """The horizontal axis that all panels of a figure share."""

    name: str
    values: tuple[float, ...]
    logarithmic: bool

    @classmethod
    def of(cls, name: str, values: Collection[float]) -> Axis:
        """Return the axis of numbers in any order, without infinity.

        The axis is logarithmic where its ends are ten times apart, except for periods.
        """
        finite = tuple(sorted({value for value in values if math.isfinite(value)}))
        return cls(name, finite, name != PERIOD and finite[0] > 0 and finite[-1] >= _AXIS_MAGNITUDES * finite[0])

    def position(self, value: float) -> float:
        """Where a value stands, between 0 and 1."""
        scale = math.log if self.logarithmic else float
        first, last = scale(self.values[0]), scale(self.values[-1])
        return (scale(value) - first) / (last - first)

    def shifted(self, value: float, share: float) -> float:
        """A value moved to the right by `share` of the axis."""
        first, last = self.values[0], self.values[-1]
        return value * (last / first) ** share if self.logarithmic else value + share * (last - first)


@dataclass(frozen=True)
class Panel:
    """Curves that are drawn together, and the setting that they are about."""

    title: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Plot:
    """A figure before anything is drawn: panels over one axis with one scale of a metric.

    `place` is what all panels are at, such as an epsilon; `bars` says whether means have intervals, which would hide
    the curves where there are many of both.
    """

    panels: tuple[Panel, ...]
    axis: Axis
    metric: str
    place: str = ""
    bars: bool = True

    @property
    def curves(self) -> list[Curve]:
        """The curves of all panels."""
        return list(chain.from_iterable(panel.curves for panel in self.panels))

    @property
    def legend(self) -> list[Curve]:
        """One curve for each label, in the order in which they first appear."""
        return list({curve.label: curve for curve in self.curves}.values())

    @property
    def barred(self) -> list[Spread]:
        """Spreads with intervals or the points of splits beside the means: no line across, no reference to rows."""
        curves = [one for one in self.curves if not (one.across or (self.of_one_value and one.look.reference))]
        return [spread for curve in curves for spread in curve.points.values()] if self.bars else []

    @property
    def of_one_value(self) -> bool:
        """Whether the axis has a single value, so that variants have a row each in place of a curve."""
        return len(self.axis.values) < 2

    @property
    def unprotected(self) -> bool:
        """Whether nothing in it has a guarantee."""
        return all(curve.look.unprotected for curve in self.curves)


def panels(
    placed: Iterable[Placed], looks: Mapping[str, Look], notes: Mapping[str, str], names: Collection[str]
) -> tuple[Panel, ...]:
    """A panel for each setting with the curves of the variants `names`, whose parts may come one by one.

    `notes`, by variant, stand below the names.
    """
    found: dict[str, dict[str, Curve]] = {}
    for panel, summary, points in placed:
        name, members = summary.variant, found.setdefault(panel, {})
        if name in names:
            known = members[name].points if name in members else {}
            lines = [*lines_of(summary.name, summary.mark, _LONGEST_NAME), *filter(None, [notes.get(name)])]
            members[name] = Curve("\n".join(lines), looks[name], {**known, **points})
    return tuple(Panel(title, tuple(members.values())) for title, members in found.items() if members)


MOST_CURVES = 6  # in a figure: more cannot be told from each other at a glance
ALL = "-all"  # ends the names of figures of all variants, where another shows a choice of them
# Okabe and Ito 2008, without the yellow and the black: told apart with every common colour blindness, and in black and
# white, being dark and light in turn, by dashes and markers, whose numbers have no common divisor.
COLOURS = ("#0072B2", "#E69F00", "#D55E00", "#56B4E9", "#009E73", "#CC79A7")
GREYS = ("#333333", "#777777", "#555555")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LINES = ("-", (0, (5, 1.5)), (0, (1.2, 1)), (0, (5, 1.5, 1.2, 1.5)))
_DASHES = ((0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))
_FILLED = {"markersize": 5, "markeredgecolor": "white", "markeredgewidth": 0.6}
_HOLLOW = {"markersize": 5, "markerfacecolor": "white", "markeredgewidth": 1.2}


@dataclass(frozen=True)
class Look:
    """How a variant is drawn: what matplotlib calls the properties of its line and markers, and whether it has a band.

    `hollow` markers tell of an epsilon that is claimed and not kept. References are without any epsilon, `unprotected`
    is whatever has no guarantee.
    """

    line: Mapping[str, Any]
    zorder: float
    band: bool = False
    hollow: bool = False
    reference: bool = False
    unprotected: bool = False


def chosen(summaries: Sequence[VariantSummary], most: int = MOST_CURVES) -> list[str]:
    """The variants, `most` at most, that a figure shows first, in the order of the summaries.

    The default or, without one, the first with a guarantee; the best other one with a guarantee; the first as
    published; the baselines `pooled` and `constant`; then the further best with a guarantee, and what else there is.
    Best is by the mean at the middle epsilon over all settings.
    """
    first = _of_each(summaries)
    protected = [name for name, one in first.items() if not one.non_private]
    leading = [*(name for name in protected if first[name].default), *protected][:1]
    ranked = [name for name in _ranked(summaries) if name in protected and name not in leading]
    published = [name for name in [*ranked, *first] if is_published(name) and name not in ranked[:1]][:1]
    references = [name for kind in (POOLED, CONSTANT) for name, one in first.items() if one.protocol == kind]
    others = sorted(first, key=lambda name: first[name].protocol in BASELINES)
    wanted = dict.fromkeys([*leading, *ranked[:1], *published, *references, *ranked, *others])
    shown = list(wanted)[:most]
    return [name for name in first if name in shown]


def looks(summaries: Sequence[VariantSummary]) -> dict[str, Look]:
    """A look by variant, the same in every figure of a run, no two alike: colour, marker and line together.

    Those that are shown first have colours of their own, and 28 are told apart without any. References, without any
    epsilon, have greys and dashes.
    """
    first = _of_each(summaries)
    references = [name for name, one in first.items() if one.non_private and not one.claiming]
    leading = [name for name in chosen(summaries) if name not in references]
    found = {}
    for number, name in enumerate(references):
        grey, dashes = GREYS[number % len(GREYS)], _DASHES[number % len(_DASHES)]
        line = {"color": grey, "linestyle": dashes, "linewidth": 1.2, "marker": "", **_FILLED}
        found[name] = Look(line, 1.5, reference=True, unprotected=True)
    for number, name in enumerate(dict.fromkeys([*leading, *(name for name in first if name not in references)])):
        one, rest = first[name], COLOURS[1:]  # of which the further ones take theirs, as the first is the default's
        colour = COLOURS[number] if number < len(COLOURS) else rest[(number - len(COLOURS)) % len(rest)]
        line = {
            "color": colour,
            "linestyle": _LINES[number % len(_LINES)],
            "linewidth": 2.6 if one.default else 1.3,
            "marker": _MARKERS[number % len(_MARKERS)],
            **({**_HOLLOW, "markeredgecolor": colour} if one.claiming else _FILLED),
        }
        found[name] = Look(
            line,
            4.0 if one.default else 3.0,
            band=name in leading[:1] or is_published(name),
            hollow=one.claiming,
            unprotected=one.non_private,
        )
    return {name: found[name] for name in first}


def _of_each(summaries: Sequence[VariantSummary]) -> dict[str, VariantSummary]:
    """A summary by variant: the first, or of some that claim or have no guarantee the first of those."""
    found: dict[str, VariantSummary] = {}
    for one in sorted(summaries, key=lambda one: (one.claiming, one.non_private), reverse=True):
        found.setdefault(one.variant, one)
    return {one.variant: found[one.variant] for one in summaries}


def groups(summaries: Sequence[VariantSummary]) -> list[list[str]]:
    """All variants in small groups to be drawn side by side, each with those to compare with: the default and pooled.

    No group has more than `MOST_CURVES`; none where all are shown first.
    """
    names = list(dict.fromkeys(one.variant for one in summaries))
    if len(names) <= MOST_CURVES:
        return []
    beside = chosen([one for one in summaries if one.default or one.protocol == POOLED], 2)
    others = [name for name in names if name not in beside]
    count = math.ceil(len(others) / (MOST_CURVES - len(beside)))
    size = math.ceil(len(others) / count)
    parts = [others[start : start + size] for start in range(0, len(others), size)]
    return [[name for name in names if name in part or name in beside] for part in parts]


def _ranked(summaries: Sequence[VariantSummary]) -> list[str]:
    """Variants from the best to the worst by the metric of the first, in the mean at the middle epsilon."""
    summaries = [one for one in summaries if one.metric == summaries[0].metric]
    middle = middle_of(summaries)
    reached: dict[str, list[float]] = {}
    for one in summaries:
        spread = one.at(middle)
        if spread is not None:
            reached.setdefault(one.variant, []).append(spread.mean)
    better_first = bool(summaries) and metric_named(summaries[0].metric).higher_is_better
    return sorted(reached, key=lambda name: fmean(reached[name]), reverse=better_first)
