"""Advice in plain words: what is expected of a protocol, what leaves a party, who sees it, who must be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aggregator.advice import Advice, Ranked, Wish, rank
from aggregator.contract.expectations import Expected
from aggregator.contract.protocol import Place, Trust
from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee
from scenarios.settings.promises import sent

if TYPE_CHECKING:
    from scenarios.advice.subject import Subject

_SHOWN = 3  # other wishes
_EITHER_WAY = 10**0.5  # as far as a formula's epsilon may be off
_EPSILONS = tuple(round(10 ** (step / 8 - 2), 4) for step in range(29))  # .01 to 31.6

MADE_BY = {
    Place.AGGREGATOR: "the aggregator",
    Place.PARTY: "each party",
    Place.SHARES: "all parties in shares",
}
_UNIT = {"party": "all that a party holds", "person": "all rows of a person", "row": "a row", "label": "a label"}
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
        >>> wish = Wish("binary", "label", Trust.NONE, rows=100, features=3, parties=1)
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
        "noise_made_by": str(one.place),
        "leaves_a_party": [sent(each) for each in one.promise.sends],
        "seen_by": seen_by(one),
        "trusted": trusted(one),
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
            "made by": MADE_BY[one.place],
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


def seen_by(one: Ranked) -> dict[str, str]:
    """By whom what is seen of every party, besides the released model, which everybody may see."""
    exact = " and ".join(each.what for each in one.promise.sends if not each.private)
    noisy = " and ".join(each.what for each in one.promise.sends if each.private)
    if one.place is Place.AGGREGATOR:
        return {"the aggregator": f"of every party {exact or noisy}, as it is"}
    seen = [f"of every party {exact}, as it is"] if exact else []
    if one.place is Place.SHARES:
        return {"whoever adds up": "; ".join([*seen, f"of {noisy} nothing but the total of all parties, with noise"])}
    return {"the aggregator": "; ".join([*seen, *([f"of every party {noisy}, with noise"] if noisy else [])])}


def trusted(one: Ranked) -> str:
    """Who must be trusted, and with what."""
    if one.place is Place.AGGREGATOR:
        return "the aggregator: it sees every party's answer as it is, and must add the noise and tell nobody"
    if one.place is Place.SHARES:
        return (
            "enough parties, who must not tell whoever adds up what they sent (parties.colluding), and the list of "
            "their keys; nobody sees a part of the sum"
        )
    exact = [each.what for each in one.promise.sends if not each.private]
    hidden = _UNIT[str(one.guarantee.unit)]
    if exact:
        return (
            f"nobody with {hidden}; but everybody may see {' and '.join(exact)}. Are they private? --features private"
        )
    return f"nobody, as what leaves a party hides {hidden} by itself"


def _trusts(one: Ranked) -> str:
    return f"to be trusted: {trusted(one)}"


def chosen(advice: Advice, wish: Wish) -> list[str]:
    """What to do, and what that means, in sentences; the verdict is theirs, too."""
    if not advice.ranked:
        return [f"Nothing keeps this: to hide {_UNIT[wish.needed]} with {_TRUST[wish.trust]}."]
    first = advice.ranked[0]
    guarantee, expected = first.guarantee, first.expected
    told = [_use(first, wish)]
    seen = "; ".join(f"{who} sees {what}" for who, what in seen_by(first).items())
    told.append(f"Who sees what: {seen}; everybody may see the released model.")
    told.append(f"Who must be trusted: {trusted(first)}.")
    spent = f"epsilon {guarantee.epsilon:g} and delta {guarantee.delta:g} for a release"
    adjacency = str(guarantee.adjacency).replace("_", " or ")
    told.append(f"What is promised: nobody can tell much of {_UNIT[_unit(guarantee)]} ({adjacency}), {spent}.")
    if expected is not None and expected.constant is None and wish.task in ("binary", "multiclass"):
        told.append("The share of the most frequent class is not known: with --majority it is compared with that.")
    return told


def _unit(guarantee: Guarantee) -> str:
    return "party" if str(guarantee.unit).startswith("party") else str(guarantee.unit)


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
        told.append(f"{begins} {changed}, by {named(one)}: {predicted(one.expected, wish)}; {_trusts(one)}.")
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
    return f"{told}. Noise is made by {MADE_BY[first.place]}"
