"""Tables of one protocol over the values of its swept options, as papers print them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scenarios.summary import NON_PRIVATE, Spread, VariantSummary, epsilons

_PREFIX = "protocols."


@dataclass(frozen=True)
class Pivot:
    """`rows` are (value of the row's option, a spread for each of `columns`, None where nothing was measured)."""

    title: str
    corner: str
    columns: list[str]
    rows: list[tuple[str, list[Spread | None]]]


def pivots(summaries: Sequence[VariantSummary]) -> list[Pivot]:
    """One table for every protocol, and setting of all else, with an option swept over two numbers or more.

    One such option stands against epsilon; of two, one stands against the other, in a table for each epsilon; further
    ones make further tables.
    """
    groups: dict[tuple[str, ...], list[VariantSummary]] = {}
    for summary in summaries:
        keys = _numbers(summary)
        if keys:
            groups.setdefault((summary.protocol, _rest(summary, keys), summary.place, *keys), []).append(summary)
    return [pivot for members in groups.values() for pivot in _tables(members)]


def _numbers(summary: VariantSummary) -> list[str]:
    """The swept options of the protocol that are numbers here."""
    return [key for key, value in summary.swept.items() if key.startswith(_PREFIX) and _is_number(value)]


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _rest(summary: VariantSummary, keys: Sequence[str]) -> str:
    """The variant's name without the values of the swept options."""
    names = tuple(f"{key.removeprefix(_PREFIX)}=" for key in keys)
    return "-".join(part for part in summary.variant.split("-") if not part.startswith(names))


def _tables(members: Sequence[VariantSummary]) -> list[Pivot]:
    keys = _numbers(members[0])
    axes = [key for key in keys if len({member.swept[key] for member in members}) > 1]
    if not axes:
        return []
    name = ", ".join(part for part in (_rest(members[0], keys), members[0].place) if part)
    if len(axes) == 1:
        columns = epsilons(members)
        rows = [
            (member.swept[axes[0]], [member.by_epsilon.get(epsilon) for epsilon in columns])
            for member in sorted(members, key=lambda member: float(member.swept[axes[0]]))
        ]
        return [Pivot(name, _label(axes[0]), [_at(epsilon) for epsilon in columns], rows)]
    down, across, *others = axes
    found = []
    for further in dict.fromkeys(tuple(member.swept[key] for key in others) for member in members):
        chosen = [member for member in members if tuple(member.swept[key] for key in others) == further]
        placed = {(member.swept[down], member.swept[across]): member for member in chosen}
        values = [sorted({pair[side] for pair in placed}, key=float) for side in (0, 1)]
        fixed = [f"{_label(key)} = {value}" for key, value in zip(others, further, strict=True)]
        for epsilon in epsilons(chosen):
            rows = [
                (
                    value,
                    [
                        placed[value, other].by_epsilon.get(epsilon) if (value, other) in placed else None
                        for other in values[1]
                    ],
                )
                for value in values[0]
            ]
            title = ", ".join([name, *fixed, _at(epsilon)])
            found.append(Pivot(title, f"{_label(down)}, by {_label(across)}", values[1], rows))
    return found


def _label(key: str) -> str:
    return key.removeprefix(_PREFIX)


def _at(epsilon: float) -> str:
    return NON_PRIVATE if math.isinf(epsilon) else f"ε = {epsilon:g}"
