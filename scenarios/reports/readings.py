"""A run in plain sentences: what its leading variant reached beside the others, who it protects, what would help."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aggregator.contract.task import Metric
from scenarios.reports.summary import NON_PRIVATE, VariantSummary
from scenarios.scores.metrics import shown
from scenarios.scores.results import NOBODY, Row
from scenarios.scores.tasks import ACCURACY, L1, MSE
from scenarios.settings.protocol_options import BASELINES, CONSTANT, INDIVIDUAL

_MEANINGFUL_EPSILON = 10.0
_POOLED = {
    ACCURACY.name: "The parties' classifier trained on all their rows together",
    MSE.name: "Least squares on all private rows with their true labels",
    L1.name: "Adjusted classify-and-count with the label of every private row",
}
_LEAST = {  # baselines that a release is of no use without passing
    INDIVIDUAL: "A party that trains on its own rows alone",
    CONSTANT: "To say the most frequent class of every row",
}
_MEAN_LABEL = "To say the mean label of every row, which no private model knows"
_UNITS = {
    "party": "one party, with everything it holds",
    "party_and_auxiliary_row": "one party, with everything it holds, and one auxiliary row, together",
    "row": "one row of one party",
    "person": "the set of labels of one person",
    "label": "the label of one row",
}
_CHANGES = {"replace": "is replaced by anything else", "add_remove": "is added or taken away"}


def said(epsilon: float) -> str:
    """An epsilon in a sentence."""
    return f"ε\u00a0=\u00a0{epsilon:g}"  # never broken over two lines


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def listed(parts: Sequence[str]) -> str:
    """One, one and two, or one, two and three.

    Examples:
        >>> listed(["0.1", "1", "10"])
        '0.1, 1 and 10'
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def leaders(summaries: Iterable[VariantSummary]) -> list[VariantSummary]:
    """The default variant in every setting; without a default, the first variant that has a guarantee."""
    private = [summary for summary in summaries if not summary.non_private]
    chosen = next((s.variant for s in private if s.default), private[0].variant if private else None)
    return [summary for summary in private if summary.variant == chosen]


def readings(summaries: Sequence[VariantSummary], metric: Metric) -> list[tuple[str, str]]:
    """(setting, plain-language reading) of the values of a metric, one per setting of the swept keys."""
    chosen = leaders(summaries)
    if not chosen:
        return [("", "No variant of this run has a guarantee.")]
    return [(s.place, _reading(s, [o for o in summaries if o.place == s.place and o is not s], metric)) for s in chosen]


def _reading(leading: VariantSummary, others: Sequence[VariantSummary], metric: Metric) -> str:
    name = f"The {'default' if leading.default else 'first'} variant, {leading.variant},"
    reached = listed(
        [
            f"{shown(metric.name, spread.mean)} at {said(leading.kept(aim))}"
            for aim, spread in leading.by_epsilon.items()
        ]
    )
    first = next(iter(leading.by_epsilon.values()))
    sentences = [
        f"{name} reaches a {metric.mean} of {reached}, over {_count(first.releases, 'release')} at each ε "
        f"({_count(first.splits, 'split')} of the data)."
    ]
    by_protocol = {other.protocol: next(iter(other.by_epsilon.values())).mean for other in others}
    for baseline in BASELINES:
        if baseline in by_protocol:
            value = by_protocol[baseline]
            learned = _POOLED.get(metric.name, "What learns from all rows together")
            passing = f"; {_passing(leading, value, metric)}" if baseline in _LEAST else ""
            told = f"reaches {shown(metric.name, value)}{passing}."
            does = _LEAST.get(baseline, learned)
            if (baseline, metric) == (CONSTANT, MSE):
                does = _MEAN_LABEL
            sentences.append(f"{does} ({baseline}, {NON_PRIVATE}) {told}")
    sentences += _ahead(leading, [other for other in others if not other.non_private], metric)
    return " ".join(sentences)


def _passing(leading: VariantSummary, least: float, metric: Metric) -> str:
    """From which epsilon on the variant is better than a baseline."""
    passed: float | None = None
    for epsilon, spread in reversed(list(leading.by_epsilon.items())):
        if not metric.better(spread.mean, least):
            break
        passed = leading.kept(epsilon)
    return f"{leading.variant} is better from {said(passed)} on" if passed else f"{leading.variant} is not better"


def _ahead(leading: VariantSummary, rivals: Sequence[VariantSummary], metric: Metric) -> list[str]:
    """Where the best other private variant is beyond the interval of the leading one's mean; one split has none.

    A variant that keeps a larger epsilon than the leading one is no rival there.
    """
    found: dict[str, list[str]] = {}
    choose = max if metric.higher_is_better else min
    for epsilon, spread in leading.by_epsilon.items():
        promised = leading.kept(epsilon)
        equals = [rival for rival in rivals if epsilon in rival.by_epsilon and rival.kept(epsilon) <= promised]
        known = [(rival.by_epsilon[epsilon].mean, rival) for rival in equals]
        best, rival = choose(known, key=lambda pair: pair[0], default=(spread.mean, leading))
        if spread.interval is not None and metric.better(best, choose(spread.interval)):
            weaker = f", which has δ = {rival.delta:g}," if rival.delta > leading.delta else ""
            found.setdefault(f"{rival.variant}{weaker}", []).append(f"{shown(metric.name, best)} at {said(promised)}")
    return [f"Ahead of it is {name} with {listed(values)}." for name, values in found.items()]


_FEATURES = (
    " Features, and who is at which party and in which bag, are not protected: where parties send rows, they leave the "
    "party as they are, without their labels."
)
_UNPROTECTED = {"label": _FEATURES, "person": _FEATURES}


def protection(leading: Sequence[VariantSummary], guarantees: Sequence[Mapping[str, Any]]) -> str:
    """Who is protected against what change by one release of the leading variant."""
    known = next((g for g in guarantees if leading and g["variant"] == leading[0].variant), None)
    if known is None or known["reason"]:
        return "Nobody is protected by these releases."
    known_epsilons = [leading[0].kept(epsilon) for epsilon in leading[0].by_epsilon]
    meaningful = [epsilon for epsilon in known_epsilons if epsilon <= _MEANINGFUL_EPSILON]
    factors = listed([f"{math.exp(epsilon):.3g} at {said(epsilon)}" for epsilon in meaningful]) if meaningful else ""
    if len(meaningful) < len(known_epsilons):
        factors += f"{'; ' if factors else ''}beyond ε = {_MEANINGFUL_EPSILON:g} that is hardly a promise"
    delta = max(summary.delta for summary in leading)
    where = "" if all(summary.delta == delta for summary in leading) else " at most"
    slack = f", up to a probability of δ = {delta:g}{where}" if delta else ""
    return (
        f"Protected is {_UNITS.get(known['unit'], known['unit'])}: when it {_CHANGES.get(known['adjacency'])}, no "
        f"probability of anything that one release may tell changes by more than the factor e^ε ({factors}){slack}. "
        f"This holds for one release, under the assumptions listed below.{_UNPROTECTED.get(known['unit'], '')}"
    )


_HELP = {
    "soft_vote": "more parties, a larger epsilon, Gaussian noise or fewer dimensions",
    "class_ratio": "larger bags, a larger epsilon or fewer classes",
    "mean_operator": "more rows, a larger epsilon or summation: secure",
}
SWAMPED = 1.0  # expected noise over the largest possible signal


def hints(rows: Iterable[Row]) -> list[str]:
    """A line when noise exceeds all signal that the leading variant could have, at the epsilons where it does.

    The leading variant is the default, or else the first with a guarantee that says how noisy it is. What is said rests
    on diagnostics that are public themselves.
    """
    known = [row for row in rows if row["unit"] != NOBODY]
    return [line for metric in ("noise_to_signal", "noise_norm") for line in _swamped(known, metric)]


def _swamped(rows: Sequence[Row], metric: str) -> list[str]:
    """By the noise over the largest possible signal, or its norm in a mean operator, which is 1 at most."""
    variant, protocol, ratios = _least(rows, metric)
    swamped = [f"{epsilon:g} ({ratio:.1f} times)" for epsilon, ratio in sorted(ratios.items()) if ratio > SWAMPED]
    if not swamped:
        return []
    remedy = _HELP.get(protocol, _HELP["soft_vote"])
    too_much = f"the noise exceeds the largest possible signal at epsilon {', '.join(swamped)}"
    return [f"{variant}: {too_much}; {remedy} would help"]


def _least(rows: Sequence[Row], metric: str) -> tuple[str, str, dict[float, float]]:
    """The leading variant of those that say how noisy they are by a metric, its protocol, and the least by epsilon."""
    known = [row for row in rows if row["metric"] == metric]
    leading = next(iter(sorted(known, key=lambda row: not row["default"])), None)
    if leading is None:
        return "", "", {}
    found: dict[float, float] = {}
    for row in known:
        if row["variant"] == leading["variant"]:
            found[row["epsilon"]] = min(row["value"], found.get(row["epsilon"], math.inf))
    return leading["variant"], leading["protocol"], found
