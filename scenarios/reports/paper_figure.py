"""Figures for papers: no title, a size in inches, embedded fonts, and curves that differ in black and white.

Such a figure shows a metric of some variants against epsilon, 1/epsilon or a setting that differs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.contract.protocol import Metric
from federation.contract.errors import InputError, nearest_name, writing
from federation.contract.files import read_text
from scenarios.reports import axes
from scenarios.reports.summary import (
    NON_PRIVATE,
    Spread,
    VariantSummary,
    broken,
    differing,
    epsilons,
    equals,
    is_number,
    labels,
    middle_of,
    summarise,
    without,
)
from scenarios.scores.results import AIMED, REMEDY, Row, metric_named, primary
from scenarios.settings.loader import flattened, parse

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D


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
}
_DOTS = 600  # per inch, of a PNG: what journals ask of line drawings


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
    plot: axes.Plot, stem: Path, formats: Sequence[str], size: str = "column", labels: Mapping[str, str] | None = None
) -> list[Path]:
    """Write the only panel of the plot as STEM.FORMAT for each of `formats` (pdf, svg, png); the paths written.

    `labels` are other names by those of the curves; what protects nobody says so behind any name. Equal plots give
    equal files. Raises `InputError` for a size without room, and where nothing can be written.
    """
    import matplotlib

    with axes.styled():
        matplotlib.rcParams.update(_STYLE)
        figure = drawn(plot, *inches(size), labels or {})
        written = []
        for suffix in formats:
            with writing(f"{stem}.{suffix}", "name another --out"):
                written += axes.save(figure, stem, [suffix], _DOTS)
        return written


def drawn(plot: axes.Plot, width: float, height: float | None, labels: Mapping[str, str]) -> Figure:
    """The figure, in inches; without a `height` it has room for its legend. Raises `InputError` where there is none."""
    from matplotlib.lines import Line2D

    figure = axes.canvas(width, height or _HEIGHT)
    [panel] = plot.panels
    axes.draw_panel(figure.add_subplot(), panel, plot, axes.scale_of(plot), width)
    names = ["\n".join(broken(_named(curve, labels), int((width - 0.6) / _LETTER))) for curve in panel.curves]
    handles = [Line2D([], [], label=name, **curve.look.line) for name, curve in zip(names, panel.curves, strict=True)]
    tall = _legend(figure, handles).get_window_extent().height / figure.dpi
    if height is None:
        figure.set_figheight(_HEIGHT + tall)
    elif height - tall < _HEIGHT / 2:
        raise InputError(
            f"--size {width:g}x{height:g} leaves no room beside a legend of {tall:.1f} inches; make it "
            f"{math.ceil(10 * (tall + _HEIGHT / 2)) / 10:g} inches tall, or show fewer curves with --only"
        )
    return figure


def _named(curve: axes.Curve, labels: Mapping[str, str]) -> str:
    """The name in the legend, which tells of every variant that protects nobody."""
    name = labels.get(curve.label, curve.label)
    exposed = curve.look.unprotected and NON_PRIVATE.lower() not in name.lower()
    return f"{name} ({NON_PRIVATE.lower()})" if exposed else name


def _legend(figure: Figure, handles: Sequence[Line2D]) -> Legend:
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


EPSILON, INVERSE = _EPSILONS = "epsilon", "inverse_epsilon"
_SHORT = {"parties": "parties.count", "public_rows": "data.auxiliary"}
_LABELS = {EPSILON: "ε", INVERSE: "1/ε", "parties.count": "number of parties"}
_OPTION = "protocols."
_SAYS_NOTHING = ("name", "description", "privacy.epsilon")  # settings in which runs may differ
_THIN = {"linewidth": 1.1, "markersize": 4.2}  # points: as wide for each variant, in a figure as wide as a column


@dataclass(frozen=True)
class Collected:
    """The plot of a figure, what its caption must say, and what its maker should know.

    `names` has the label of each curve by the whole name of its variant.
    """

    plot: axes.Plot
    names: Mapping[str, str]
    caption: str
    remarks: Sequence[str]


@dataclass(frozen=True)
class _Place:
    """One variant in one setting of one run, with that setting in full."""

    run: Path
    summary: VariantSummary
    setting: Mapping[str, str]

    def joined(self, x: str) -> _Place:
        """Under the variant's name without its option `x`, if that is one, so that its values make one curve."""
        name = self.summary.variant
        if x in self.summary.swept and x.startswith(_OPTION):
            name = without(name, [x.removeprefix(_OPTION)])
        return replace(self, summary=replace(self.summary, variant=name))


def collect(
    stored: Mapping[Path, Sequence[Row]],
    *,
    x: str = EPSILON,
    metric: str | None = None,
    only: Sequence[str] = (),
    at: Mapping[str, str] | None = None,
) -> Collected:
    """The curves of finished runs (rows of results.csv by directory) against `x`.

    `x` is `epsilon`, `inverse_epsilon`, `parties`, `public_rows`, or the dotted name of any setting that is a number
    and differs within the runs or between them. `metric` None is the one by which variants are compared. `only` has
    the whole or short names of the variants to show, in that order; none means those that a report shows first. `at`
    has the values of settings that are not on the axis where there are several; of several epsilons the middle one is
    taken. Raises `InputError` naming what there is for unknown names, an axis with fewer than two values, and curves
    that would have two values at one place.
    """
    rows = [row for found in stored.values() for row in found]
    measured = _measured(rows, metric)
    compared = _places(stored, primary(rows).name)  # gives variants the looks and labels that they have in a report
    places = _places(stored, measured.name)
    pinned = {_SHORT.get(key, key): value for key, value in (at or {}).items()}
    key = _axis(x, places)
    aim = pinned.pop(EPSILON, None)
    if aim is not None and key in _EPSILONS:
        raise InputError(f"--at {EPSILON}={aim}: epsilon is on the axis; leave this out, or name another --x")
    allowed, places = _axes(places), [place.joined(key) for place in places]
    summaries = [place.joined(key).summary for place in compared] + [place.summary for place in places]
    short = labels({one.variant: one.protocol for one in summaries})
    places = _at(places, pinned)
    epsilon, remarks = _epsilon(places, key, aim)
    found: dict[str, dict[float, tuple[Spread, _Place]]] = {}
    for place in places:
        points = found.setdefault(short[place.summary.variant], {})
        for value, spread in _points(place, key, epsilon):
            if value in points and points[value][0].by_split != spread.by_split:
                _refuse_two(place, points[value][1], x, value)
            points[value] = spread, place
    there = [one for one in summaries if found.get(short[one.variant])]
    wanted = _known("--only", [short.get(name, name) for name in only], found) or [
        short[one] for one in axes.chosen(there)
    ]
    if out := [label for label, points in found.items() if points and label not in wanted and not only]:
        remarks.append(f"left out, beyond what can be told apart: {', '.join(out)}; choose with --only")
    whole, known = {label: name for name, label in short.items()}, axes.looks(summaries)
    names = {whole[label]: label for label in wanted if found[label]}
    curves = [
        axes.Curve(label, _thin(known[name]), {value: found[label][value][0] for value in sorted(found[label])})
        for name, label in names.items()
    ]
    values = {value for curve in curves for value in curve.points if math.isfinite(value)}
    if len(values) < 2:
        more = [one for one in allowed if _SHORT.get(one, one) not in (key, *_EPSILONS)]
        raise InputError(
            f"--x {x} has {len(values) or 'no'} value{'' if len(values) == 1 else 's'} here, and a curve needs two; "
            f"what has more: {', '.join(more) or 'nothing in these runs'}"
        )
    first_of = {place.run: place for place in reversed(places)}
    if other := [one for one in _differing(place.setting for place in first_of.values()) if one != key]:
        remarks.append(f"the runs differ in {', '.join(other)}, too")
    plot = axes.Plot((axes.Panel("", tuple(curves)),), axes.Axis.of(_label(key, values), values), measured.name)
    if any(spread.interval is None for spread in plot.barred):
        remarks.append("what was measured on a single split has no interval")
    elif any(spread.points for spread in plot.barred):
        remarks.append("two splits are drawn as points, too few for an interval; run more with --set trials.splits=5")
    return Collected(plot, names, _caption(plot, measured, epsilon), remarks)


def is_drawable(rows: Sequence[Row]) -> bool:
    """Whether these rows, of one run, have several epsilons in one setting, so that a figure needs no choices."""
    summaries = summarise(rows)
    settled = len({tuple(one.setting.items()) for one in summaries}) == 1
    return settled and sum(map(math.isfinite, epsilons(summaries))) > 1


def _measured(rows: Sequence[Row], metric: str | None) -> Metric:
    """The metric of that name. Raises `InputError` naming those that there are."""
    if metric is None:
        return primary(rows)
    _known("--metric", [metric], sorted({row["metric"] for row in rows} - {AIMED}))
    return metric_named(metric)


def _known(option: str, names: Sequence[str], allowed: Iterable[str]) -> Sequence[str]:
    """The names. Raises `InputError` for one that is not allowed."""
    for name in names:
        if name not in (listed := list(allowed)):
            raise InputError(
                f"{option} '{name}' is not in these runs, which have {', '.join(listed)}{nearest_name(name, listed)}"
            )
    return names


def _places(stored: Mapping[Path, Sequence[Row]], metric: str) -> list[_Place]:
    found = []
    for run, rows in stored.items():
        path = run / "scenario.yaml"
        value, _ = parse(read_text(path, REMEDY), str(path))
        # lists are sweeps, whose values each row of the results has, or protocols
        setting = {key: str(each) for key, each in flattened(value) if not isinstance(each, list | dict)}
        for one in summarise(rows, metric):
            found.append(_Place(run, one, {**setting, **one.swept}))
    return found


def _axis(x: str, places: Sequence[_Place]) -> str:
    """The full name of what `x` means. Raises `InputError` naming what may stand on an axis."""
    key, allowed = _SHORT.get(x, x), _axes(places)
    if key in _EPSILONS or x in allowed or key in (_SHORT.get(one, one) for one in allowed):
        return key
    raise InputError(
        f"--x '{x}' is neither {EPSILON}, {INVERSE} nor a setting that is a number and differs in these runs, which "
        f"have {', '.join(allowed) or 'none'}{nearest_name(x, [EPSILON, INVERSE, *allowed])}"
    )


def _axes(places: Sequence[_Place]) -> list[str]:
    """What may stand on the axis: epsilon where there are several, and numbers that differ."""
    several = sum(map(math.isfinite, epsilons(place.summary for place in places))) > 1
    short = {key: name for name, key in _SHORT.items()}
    several_values = _differing(place.setting for place in places)
    numbers = [short.get(key, key) for key, values in several_values.items() if all(map(is_number, values))]
    return [EPSILON, INVERSE] * several + numbers


def _differing(settings: Iterable[Mapping[str, str]]) -> dict[str, list[str]]:
    """The values of each setting that has several, where it has any, and in which runs should not differ."""
    return {key: values for key, values in differing(settings).items() if key not in _SAYS_NOTHING}


def _at(places: Sequence[_Place], pinned: Mapping[str, str]) -> list[_Place]:
    """The places where settings have these values. Raises `InputError` naming what there is otherwise."""
    kept = list(places)
    for key, wanted in pinned.items():
        _known("--at", [key], {name: None for place in places for name in place.setting})
        values = list(dict.fromkeys(place.setting[key] for place in places if key in place.setting))
        if not (same := {value for value in values if _equal(value, wanted)}):
            raise InputError(f"--at {key}={wanted}: these runs have {key} = {', '.join(values)}")
        kept = [place for place in kept if place.setting.get(key, wanted) in {*same, wanted}]
    return kept


def _equal(text: str, other: str) -> bool:
    return float(text) == float(other) if is_number(text) and is_number(other) else text == other


def _epsilon(places: Sequence[_Place], key: str, aim: str | None) -> tuple[float, list[str]]:
    """The epsilon at which a figure against something else is, infinity where there is none, and a remark on it."""
    finite = [epsilon for epsilon in epsilons(place.summary for place in places) if math.isfinite(epsilon)]
    if key in _EPSILONS or not finite:
        return math.inf, []
    if aim is None:
        middle = middle_of(place.summary for place in places)
        more = f"all values are at {equals(middle)}, the middle one; choose another with --at {EPSILON}=..."
        return middle, [more] if len(finite) > 1 else []
    for epsilon in finite:
        if _equal(str(epsilon), aim):
            return epsilon, []
    raise InputError(f"--at {EPSILON}={aim}: these runs have {EPSILON} = {', '.join(f'{one:g}' for one in finite)}")


def _points(place: _Place, key: str, chosen: float) -> Iterator[tuple[float, Spread]]:
    """Where on the axis what was reached; at infinity what does not depend on an epsilon that is on it."""
    if key in _EPSILONS:
        for aim, spread in place.summary.by_epsilon.items():
            kept = place.summary.kept(aim)
            yield (1 / kept if key == INVERSE and math.isfinite(kept) else kept), spread
    elif (found := place.summary.at(chosen)) is not None:
        if is_number(text := place.setting.get(key, "")):
            yield float(text), found
        elif key.startswith(_OPTION):  # no option of this variant
            yield math.inf, found


def _thin(look: axes.Look) -> axes.Look:
    """The same look for a small figure: thinner, and without a band."""
    return replace(look, line={**look.line, **_THIN}, band=False)


def _refuse_two(place: _Place, other: _Place, x: str, value: float) -> None:
    """Raises `InputError`: a variant has two values at one place of the axis."""
    both = _differing([other.setting, place.setting])
    choices = [f"--at {key}={each[0]} or {each[1]}" for key, each in both.items()]
    remedy = f"choose with {'; '.join(choices)}" if choices else f"name only one of {other.run} and {place.run}"
    where = "" if math.isinf(value) else f" at {x} = {value:g}"
    raise InputError(f"'{place.summary.variant}' has two values{where}; {remedy}, or another --x")


def _label(key: str, values: Iterable[float]) -> str:
    """The axis in words; public rows may be given as a number or as a share."""
    if key == _SHORT["public_rows"]:
        return "share of rows that are public" if all(value < 1 for value in values) else "number of public rows"
    return _LABELS.get(key, key.rpartition(".")[2].replace("_", " "))


def _caption(plot: axes.Plot, metric: Metric, epsilon: float) -> str:
    """What a reader of the figure must know, as a sentence for its caption."""
    at = "" if math.isinf(epsilon) else f" at {equals(epsilon)}"
    spreads = [spread for curve in plot.curves for spread in curve.points.values()]
    splits, releases = (_from_to([one.splits for one in spreads]), _from_to([one.releases for one in spreads]))
    several = "" if splits == "1" else "s"
    means = f"{metric.mean[0].upper()}{metric.mean[1:]}{at} over {releases} releases of {splits} split{several}"
    return f"{'; '.join([means, *axes.explanations(plot)[1:]])}."


def _from_to(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"
