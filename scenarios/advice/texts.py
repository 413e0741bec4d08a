"""Advice in plain words: what is expected of a protocol, what leaves a party, who sees it, and who is trusted.

`prospects` shows what would have to change for a result to be useful: curves over epsilon, parties and rows, by public
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggregator.advice import Advice, Ranked, Wish, rank
from aggregator.contract.disclosure import ADDED_BY, disclosed, noise
from aggregator.contract.expectations import Expected
from aggregator.contract.protocol import Trust
from federation.contract.errors import InputError, writing
from federation.contract.guarantee import Unit
from federation.contract.trust import TrustTerms
from scenarios.reports.axes import FORMATS, canvas, save, styled
from scenarios.settings.guarantees import UNITS, Roles, in_lines, roles, sent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from scenarios.advice.target import Subject

_SHOWN = 3  # other wishes
_EITHER_WAY = 10**0.5  # as far as a formula's epsilon may be off
_EPSILONS = tuple(round(10 ** (step / 8 - 2), 4) for step in range(29))  # .01 to 31.6

_TRUST = {
    Trust.AGGREGATOR: "an aggregator that all trust",
    Trust.SECURE: "a summation that shows nothing but sums",
    Trust.NONE: "nobody who is trusted",
}
_BASIS = {
    "exact": "exact to first order: within a quarter in nine of ten cases that it called useful",
    "measured": "derived, but for one unknown that was measured: off by .16 of what can be lost on average, "
    "without public rows by .19",
    "guess": "a guess",
}


def named(one: Ranked) -> str:
    """The protocol with its options.

    Examples:
        >>> from aggregator.advice import rank
        >>> wish = Wish("binary", "label", Trust.NONE, rows=100, features=3, terms=TrustTerms(1))
        >>> named(rank(wish).ranked[-1])
        'mean_operator noise: randomised_response'
    """
    return " ".join([one.kind, *(f"{name}: {value}" for name, value in one.options.items())])


def predicted(expected: Expected | None, wish: Wish) -> str:
    """What is expected of a release, in the measure of the wish's task."""
    if expected is None:
        return "no formula"
    if wish.task in ("binary", "multiclass"):
        return f"accuracy {1 - expected.error:.2f}"
    if wish.task == "regression":
        beside = "" if wish.residual is None else f", {wish.residual + expected.error:.4g} in all"
        return f"mse {expected.error:.4g} beyond the best linear model{beside}"
    return f"error of ratios {expected.error:.2g}"


def record(one: Ranked, wish: Wish) -> dict[str, Any]:
    """All that is told of a ranked protocol, as JSON has it."""
    expected, guarantee = one.expected, one.guarantee
    return {
        "protocol": one.kind,
        "options": dict(one.options),
        "predicted": predicted(expected, wish),
        "error": None if expected is None else expected.error,
        "constant_error": None if expected is None else expected.constant,
        "noise": None if expected is None else expected.noise,
        "loss": None if expected is None else expected.loss,
        "basis": None if expected is None else expected.basis,
        "assuming": None if expected is None else expected.assuming,
        "noise_added_by": str(one.place),
        "leaves_a_party": [sent(each) for each in one.promise.sends],
        "roles": who(one),
        "unit": str(guarantee.unit),
        "adjacency": str(guarantee.adjacency),
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
    }


def rows(advice: Advice, wish: Wish) -> list[dict[str, str]]:
    """The ranking as a table."""
    return [
        {
            "protocol": named(one),
            "expected": predicted(one.expected, wish),
            "noise": _noise(one.expected),
            "added by": ADDED_BY[one.place],
        }
        for one in advice.ranked
    ]


def leaving(advice: Advice) -> list[dict[str, str]]:
    """What leaves a party as a table: the same of several protocols once."""
    found: dict[str, list[str]] = {}
    for one in advice.ranked:
        found.setdefault("; ".join(sent(each) for each in one.promise.sends), []).append(named(one))
    return [{"protocol": ", ".join(names), "what": what} for what, names in found.items()]


def _noise(expected: Expected | None) -> str:
    if expected is None or expected.noise is None:
        return "-"
    return f"{expected.noise:.2g}, {expected.loss} loss"


def who(one: Ranked) -> list[Roles]:
    """Return who has, sees and is trusted with what, with the one server that a scenario has unless it names others."""
    return roles(disclosed(one.place, "one", one.promise.sends))


def chosen(advice: Advice, wish: Wish) -> list[str]:
    """Return what to do and what follows from it, in sentences."""
    if not advice.ranked:
        return [f"No protocol protects {UNITS[Unit(wish.needed)]} with {_TRUST[wish.trust]}."]
    first = advice.ranked[0]
    guarantee, expected = first.guarantee, first.expected
    told = [_use(first, wish)]
    told += in_lines(who(first))
    if wish.public_features and any(not each.private for each in first.promise.sends):
        told.append("Are features private? Set --features private.")
    spent = f"epsilon {guarantee.epsilon:g} and delta {guarantee.delta:g} for a release"
    adjacency = str(guarantee.adjacency).replace("_", " or ")
    told.append(f"The guarantee protects {UNITS[guarantee.unit]} ({adjacency}): {spent}.")
    if expected is not None and expected.constant is None and wish.task in ("binary", "multiclass"):
        told.append("The share of the most frequent class is not known: with --majority it is compared with that.")
    return told


def _use(first: Ranked, wish: Wish) -> str:
    expected = first.expected
    if expected is None:
        return f"Use {named(first)}: no formula says what to expect of it, so try it with --pilot."
    basis = f"{predicted(expected, wish)} if {expected.assuming} ({_BASIS[expected.basis]})"
    if expected.hopeless:
        same = f"the answer that is the same for all rows has {predicted(_constant(expected), wish)}"
        return f"Nothing is useful here by these numbers: the best is {named(first)} with {basis}, and {same}."
    return f"Use {named(first)}: {basis}."


def _constant(expected: Expected) -> Expected:
    assert expected.constant is not None, "it is what is compared with"
    return Expected(expected.constant, None, expected.basis, expected.assuming)


def nearest_told(found: Sequence[tuple[Mapping[str, str], Ranked]], wish: Wish) -> list[str]:
    """The nearest wishes that can be kept, and what they cost."""
    told: list[str] = []
    for flags, one in found[:_SHOWN]:
        changed = " ".join(f"--{flag} {value}" for flag, value in flags.items())
        begins = "Or" if told else "The nearest is"
        told.append(f"{begins} {changed}, by {named(one)}: {predicted(one.expected, wish)}; {noise(one.place)}.")
    return told


def premises(subject: Subject, assumed: Sequence[str]) -> list[str]:
    """What advice rests on, to be said before it; `assumed` are flags that nobody gave."""
    counted = f", but that {subject.counted}" if subject.counted else ""
    told = [f"From public numbers only: nothing of your data was read for this{counted}."]
    if assumed:
        told.append(f"Not said, and so taken to be: {', '.join(assumed)}.")
    return [*told, *(f"{remark[:1].upper()}{remark[1:]}." for remark in subject.remarks)]


def reached(wish: Wish, accuracy: float) -> str:
    """Between which epsilons an accuracy is reached, as far as a formula can tell; that is not far.

    Raises `InputError` for a wish that is not about classes, and an accuracy that is no share.
    """
    require_accuracy(wish, accuracy)
    for epsilon in _EPSILONS:
        ranked = rank(replace(wish, epsilon=epsilon)).ranked
        expected = ranked[0].expected if ranked else None
        if expected is not None and 1 - expected.error >= accuracy:
            if epsilon == _EPSILONS[0]:
                return f"Accuracy {accuracy:g} is reached below epsilon {epsilon:g} already, if {expected.assuming}."
            low, high = epsilon / _EITHER_WAY, epsilon * _EITHER_WAY
            return (
                f"Accuracy {accuracy:g} is reached somewhere between epsilon {low:.2g} and {high:.2g}, if "
                f"{expected.assuming}: so it was in nine of ten cases where that was known (--pooled), in a quarter "
                "where 0.9 was taken for granted. A pilot tells better."
            )
    return f"Accuracy {accuracy:g} is not reached by epsilon {_EPSILONS[-1]:g}, as far as public numbers tell."


def require_accuracy(wish: Wish, accuracy: float) -> None:
    """Raise `InputError` unless an accuracy may be asked for."""
    if wish.task not in ("binary", "multiclass"):
        raise InputError(f"--accuracy is for classes, and the task is {wish.task}; leave it out")
    if not 0 < accuracy <= 1:
        raise InputError(f"--accuracy must be a share above 0 and at most 1, got {accuracy:g}")


def verdict(advice: Advice) -> str:
    """`useful`, or `none` where nothing keeps the wish or the constant answer is as good; `unknown` beside no constant.

    Examples:
        >>> verdict(Advice((), ()))
        'none'
    """
    if not advice.ranked:
        return "none"
    expected = advice.ranked[0].expected
    if expected is None or expected.constant is None:
        return "unknown"
    return "none" if expected.hopeless else "useful"


def why(advice: Advice, wish: Wish) -> str:
    """Why the first was chosen, for a comment of a scenario; without a full stop."""
    first = advice.ranked[0]
    told = f"chosen by public numbers alone: {predicted(first.expected, wish)}"
    if first.expected is not None:
        told += f" if {first.expected.assuming} ({_BASIS[first.expected.basis]})"
    if len(advice.ranked) > 1:
        second = advice.ranked[1]
        told += f"; then {named(second)}: {predicted(second.expected, wish)}"
    return f"{told}; {noise(first.place)}"


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
    suffix = path.suffix.removeprefix(".")
    if suffix not in FORMATS:
        raise InputError(f"--figure must end in .{', .'.join(FORMATS)}, got {path}")
    with styled():
        figure = canvas(*_INCHES)
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
        known = wish.terms
        return replace(wish, terms=TrustTerms(count) if known is None else replace(known, parties=count))
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
