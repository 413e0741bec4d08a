"""A run in plain sentences: which variant leads, over how many releases its means are, and whom it protects."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from scenarios.reports.summary import VariantSummary

MEANINGFUL_EPSILON = 10.0  # beyond it an epsilon is hardly a promise
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


def _count(numbers: Collection[int], what: str) -> str:
    least, most = min(numbers), max(numbers)
    return f"{least if least == most else f'{least} to {most}'} {what}{'' if most == 1 else 's'}"


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


def measured(leading: Sequence[VariantSummary]) -> str:
    """Over how many releases and splits the means of the leading variant are taken."""
    if not leading:
        return "No variant of this run has a guarantee."
    spreads = [spread for summary in leading for spread in summary.by_epsilon.values()]
    releases, splits = ({getattr(spread, name) for spread in spreads} for name in ("releases", "splits"))
    return f"Means are over {_count(releases, 'release')} at each ε ({_count(splits, 'split')} of the data)."


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
    meaningful = [epsilon for epsilon in known_epsilons if epsilon <= MEANINGFUL_EPSILON]
    factors = listed([f"{math.exp(epsilon):.3g} at {said(epsilon)}" for epsilon in meaningful]) if meaningful else ""
    if len(meaningful) < len(known_epsilons):
        factors += f"{'; ' if factors else ''}beyond ε = {MEANINGFUL_EPSILON:g} that is hardly a promise"
    delta = max(summary.delta for summary in leading)
    where = "" if all(summary.delta == delta for summary in leading) else " at most"
    slack = f", up to a probability of δ = {delta:g}{where}" if delta else ""
    return (
        f"Protected is {_UNITS.get(known['unit'], known['unit'])}: when it {_CHANGES.get(known['adjacency'])}, no "
        f"probability of anything that one release may tell changes by more than the factor e^ε ({factors}){slack}. "
        f"This holds for one release, under the assumptions listed below.{_UNPROTECTED.get(known['unit'], '')}"
    )
