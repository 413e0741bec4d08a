"""How variants look in figures, and which of them a figure shows first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from scenarios.reports.labels import is_published
from scenarios.reports.summary import VariantSummary, middle_of
from scenarios.scores.metrics import metric_named
from scenarios.settings.protocol_options import BASELINES, CONSTANT, POOLED

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


def groups(summaries: Sequence[VariantSummary], most: int = MOST_CURVES) -> list[list[str]]:
    """All variants in small groups to be drawn side by side, each with those to compare with: the default and pooled.

    No group has more than `most`; none where all are shown first.
    """
    names = list(dict.fromkeys(one.variant for one in summaries))
    if len(names) <= most:
        return []
    beside = chosen([one for one in summaries if one.default or one.protocol == POOLED], 2)
    others = [name for name in names if name not in beside]
    count = math.ceil(len(others) / (most - len(beside)))
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
