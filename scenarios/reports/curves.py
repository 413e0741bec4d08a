"""What a figure shows of each variant: its values along an axis, and a look that nothing else has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.reports.summary import Spread, VariantSummary, lines_of

# Okabe and Ito 2008, without the yellow and the black; told apart with every common colour blindness.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_GREYS = ("#333333", "#777777", "#555555")
_DASHES = ((0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))
_FILLED = {"markersize": 5, "markeredgecolor": "white", "markeredgewidth": 0.6}
_HOLLOW = {"markersize": 5, "markerfacecolor": "white", "markeredgewidth": 1.2}
_CROWD = 9  # variants with markers whose bands would hide each other
_LONGEST_NAME = 64
Placed = tuple[str, VariantSummary, Mapping[float, Spread]]  # a panel, and what a variant has there along the axis


@dataclass(frozen=True)
class Style:
    """How a variant is drawn: what matplotlib calls the properties of its line and markers, and whether it has a band.

    `hollow` markers tell of an epsilon that is claimed and not kept. References are without any epsilon.
    """

    line: Mapping[str, Any]
    zorder: float
    band: bool = False
    hollow: bool = False
    reference: bool = False


@dataclass(frozen=True)
class Curve:
    """One variant in one panel: a spread for every x, or for infinity alone when it does not depend on x."""

    label: str
    style: Style
    points: Mapping[float, Spread]


@dataclass(frozen=True)
class Axis:
    """The horizontal axis that all panels of a figure share."""

    name: str
    values: tuple[float, ...]
    logarithmic: bool

    def position(self, value: float) -> float:
        """Where a value stands, between 0 and 1."""
        scale = math.log if self.logarithmic else float
        first, last = scale(self.values[0]), scale(self.values[-1])
        return (scale(value) - first) / (last - first)

    def shifted(self, value: float, share: float) -> float:
        """A value moved to the right by `share` of the axis."""
        first, last = self.values[0], self.values[-1]
        return value * (last / first) ** share if self.logarithmic else value + share * (last - first)


def curves(
    placed: Iterable[Placed], summaries: Sequence[VariantSummary], notes: Mapping[str, str]
) -> dict[str, list[Curve]]:
    """The curves of each panel, from parts of them; looks are the same in all figures of the same `summaries`.

    `notes`, by variant, stand below the names.
    """
    looks = styles(summaries)
    found: dict[str, dict[str, Curve]] = {}
    for panel, summary, points in placed:
        name, members = summary.variant, found.setdefault(panel, {})
        known = members[name].points if name in members else {}
        lines = [*lines_of(name, summary.mark, _LONGEST_NAME), *filter(None, [notes.get(name)])]
        members[name] = Curve("\n".join(lines), looks[name], {**known, **points})
    return {panel: list(members.values()) for panel, members in found.items()}


def styles(summaries: Sequence[VariantSummary]) -> dict[str, Style]:
    """Colour and marker by variant, the same in every panel; greys and dashes for references, without any epsilon.

    In a crowd only the default and each protocol's first published variant have bands.
    """
    first: dict[str, VariantSummary] = {}
    for summary in summaries:
        first.setdefault(summary.variant, summary)
    marked = {name: one for name, one in first.items() if not one.non_private or one.claiming}
    published = {one.protocol: name for name, one in reversed(marked.items()) if _is_published(name)}
    found = {}
    for number, name in enumerate(name for name in first if name not in marked):
        grey, dashes = _GREYS[number % len(_GREYS)], _DASHES[number % len(_DASHES)]
        look = {"color": grey, "linestyle": dashes, "linewidth": 1.2, "marker": "", **_FILLED}
        found[name] = Style(look, 1.5, reference=True)
    for number, (name, one) in enumerate(marked.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        look = {
            "color": colour,
            "linestyle": "--" if one.claiming or number >= len(_COLOURS) else "-",
            "linewidth": 2.6 if one.default else 1.3,
            "marker": _MARKERS[number % len(_MARKERS)],
            **({**_HOLLOW, "markeredgecolor": colour} if one.claiming else _FILLED),
        }
        band = len(marked) < _CROWD or one.default or name in published.values()
        found[name] = Style(look, 4.0 if one.default else 3.0, band, one.claiming)
    return found


def _is_published(name: str) -> bool:
    """Whether a variant has an option as published: `published`, or one such as `published_laplace`."""
    return any(option.split("_")[0] == "published" for option in name.split("-"))
