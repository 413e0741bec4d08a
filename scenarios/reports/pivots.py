"""Tables over swept values, as papers print them: of one protocol over its options, of all variants over settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scenarios.reports.summary import NON_PRIVATE, Spread, VariantSummary, epsilons
from scenarios.scores.metrics import in_percent
from scenarios.scores.tasks import primaries
from scenarios.settings.protocol_options import POOLED

_PREFIX = "protocols."


@dataclass(frozen=True)
class Pivot:
    """`rows` are (the row's value, a spread for each of `columns`, None where nothing was measured).

    `percent`: whether values are to be shown in percent. `ratios`, if any, are a last column, texts that `meaning`
    explains.
    """

    title: str
    corner: str
    columns: list[str]
    rows: list[tuple[str, list[Spread | None]]]
    percent: bool = False
    ratios: tuple[str, ...] = ()
    meaning: str = ""


def pivots(summaries: Sequence[VariantSummary]) -> list[Pivot]:
    """The tables of all variants over a swept setting that is no number, and of each protocol over its swept numbers.

    Variants stand against the values of the first such setting of worlds, in a table for each epsilon and each setting
    of all else, as in Lacombe et al. 2021, Table 2. Protocols with an option swept over two numbers or more have a
    table for each setting of all else: one such option stands against epsilon; of two, one stands against the other,
    in a table for each epsilon; further ones make further tables.
    """
    return [*_over_settings(summaries), *_over_options(summaries)]


def _over_settings(summaries: Sequence[VariantSummary]) -> list[Pivot]:
    values: dict[str, dict[str, None]] = {}
    for summary in summaries:
        for key, value in summary.setting.items():
            values.setdefault(key, {})[value] = None
    texts = [key for key, found in values.items() if len(found) > 1 and not all(map(_is_number, found))]
    if not texts or len({summary.variant for summary in summaries}) == 1:
        return []
    key = texts[0]
    groups: dict[str, list[VariantSummary]] = {}
    for summary in summaries:
        if key in summary.setting:
            others = ", ".join(f"{other} = {value}" for other, value in summary.setting.items() if other != key)
            groups.setdefault(others, []).append(summary)
    return [
        _setting_table(key, members, epsilon, place)
        for place, members in groups.items()
        for epsilon in [epsilon for epsilon in epsilons(members) if math.isfinite(epsilon)] or [math.inf]
    ]


def _setting_table(key: str, members: Sequence[VariantSummary], epsilon: float, place: str) -> Pivot:
    placed = {(member.setting[key], member.variant): member.at(epsilon) for member in members}
    labels = {member.variant: member.label for member in members}
    values = dict.fromkeys(value for value, _ in placed)
    title = ", ".join(part for part in (place, _at(epsilon)) if part)
    rows = [(value, [placed.get((value, variant)) for variant in labels]) for value in values]
    leading = next((member.variant for member in members if member.default), None)
    pairs = [(placed.get((value, POOLED)), placed.get((value, leading or ""))) for value in values]
    metric = members[0].metric
    ratios = tuple(_ratio(metric, *pair) for pair in pairs)
    known = any(ratios)
    meaning = f"by how much {leading} is worse than {POOLED}, as a share of {POOLED}" if known else ""
    return Pivot(title, key, list(labels.values()), rows, in_percent(metric), ratios if known else (), meaning)


def _ratio(metric: str, pooled: Spread | None, leading: Spread | None) -> str:
    """How much worse than `pooled` the leading variant is, relative to it; empty where either is missing."""
    if pooled is None or leading is None or pooled.mean == 0:
        return ""
    worse = -1 if any(known.name == metric and not known.higher_is_better for known in primaries()) else 1
    return f"{worse * (pooled.mean - leading.mean) / pooled.mean:.3f}"


def _over_options(summaries: Sequence[VariantSummary]) -> list[Pivot]:
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
