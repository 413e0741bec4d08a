"""What would have to change for a result to be useful: curves over epsilon, parties and rows, by public numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.advice import Ranked, Wish, rank
from federation.contract.errors import InputError, writing
from scenarios.advice.words import named
from scenarios.reports.axes import FORMATS, save, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES = 4  # protocols of a panel: more could not be told apart
_STEPS = tuple(10 ** (step / 4) for step in range(-4, 5))  # from a tenth to ten times of what there is
_LOOKS = (("#0072b2", "-", "o"), ("#d55e00", "--", "s"), ("#009e73", "-.", "^"), ("#cc79a7", ":", "D"))
_DOTS = 150.0
_INCHES = (9.0, 3.4)


@dataclass(frozen=True)
class Panel:
    """One axis: what is expected of each protocol at every value, `now` being the value of the wish.

    `constant` is the same of the answer that is the same for all rows, where public numbers tell it.
    """

    axis: str
    now: float
    curves: Mapping[str, Mapping[float, float]]
    constant: float | None


def prospects(wish: Wish) -> list[Panel]:
    """Panels over epsilon, parties (with as many rows in all) and rows; of the first protocols that have a formula.

    Accuracies where classes are told, else errors. Raises `InputError` where no protocol has a formula.
    """
    shown = [named(one) for one in rank(wish).ranked if one.expected is not None][:CURVES]
    if not shown:
        raise InputError("--figure: no protocol that keeps this wish has a formula; try them with --pilot")
    axes: dict[str, tuple[float, list[tuple[float, Wish]]]] = {
        "epsilon": (
            wish.epsilon,
            [(wish.epsilon * step, replace(wish, epsilon=wish.epsilon * step)) for step in _STEPS],
        )
    }
    for name in ("parties", "rows"):
        value: int | None = getattr(wish, name)
        if value is not None:
            counts = list(dict.fromkeys(max(1, round(value * step)) for step in _STEPS))
            axes[name] = value, [(count, changed) for count in counts if (changed := _with(wish, name, count))]
    return [Panel(axis, now, *_curves(points, shown)) for axis, (now, points) in axes.items()]


def draw(panels: list[Panel], wish: Wish, path: Path) -> None:
    """Draw the panels side by side into a pdf, svg or png. Raises `InputError` for another ending."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    suffix = path.suffix.removeprefix(".")
    if suffix not in FORMATS:
        raise InputError(f"--figure must end in .{', .'.join(FORMATS)}, got {path}")
    with styled():
        figure = Figure(figsize=_INCHES, layout="constrained")
        FigureCanvasAgg(figure)
        places = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, panel in zip(places, panels, strict=True):
            _draw(axes, panel)
        measure = "accuracy" if wish.task in ("binary", "multiclass") else "error"
        places[0].set_ylabel(f"expected {measure}, by public numbers")
        handles, labels = places[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        with writing(f"to --figure {path}", "name another file"):
            save(figure, path.with_suffix(""), [suffix], _DOTS)


def _with(wish: Wish, name: str, count: int) -> Wish | None:
    """The wish with another number of parties or rows; None where it makes no sense."""
    try:
        if name == "rows":
            return replace(wish, rows=count)
        return replace(wish, parties=count)
    except InputError:  # more parties than rows
        return None


def _curves(points: list[tuple[float, Wish]], shown: list[str]) -> tuple[dict[str, dict[float, float]], float | None]:
    curves: dict[str, dict[float, float]] = {name: {} for name in shown}
    constant = None
    for value, wish in points:
        for one in rank(wish).ranked:
            if named(one) in curves and one.expected is not None:
                curves[named(one)][value] = _measured(one, one.expected.error, wish)
                if one.expected.constant is not None:
                    constant = _measured(one, one.expected.constant, wish)
    return curves, constant


def _measured(one: Ranked, error: float, wish: Wish) -> float:
    return 1 - error if wish.task in ("binary", "multiclass") else error


def _draw(axes: Axes, panel: Panel) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for (name, curve), (colour, line, marker) in zip(panel.curves.items(), _LOOKS, strict=False):
        values = sorted(curve)
        style = {"color": colour, "linestyle": line, "marker": marker, "markersize": 3}
        axes.plot(values, [curve[value] for value in values], label=name, **style)  # type: ignore[arg-type]
    if panel.constant is not None:
        axes.axhline(panel.constant, color="#666666", linewidth=0.8, label="the same answer for all rows")
    axes.axvline(panel.now, color="#666666", linewidth=0.8, linestyle=":", label="as it is")
    axes.set(xscale="log", xlabel=panel.axis)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
