"""What a figure shows of each variant: its values along an axis, and a look that nothing else has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.reports.summary import Spread, VariantSummary

# Okabe and Ito 2008, without the yellow and the black; told apart with every common colour blindness.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_GREYS = ("#333333", "#777777", "#555555")
_DASHES = ((0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))
_CROWD = 9  # variants with markers whose bands would hide each other
_LONGEST_NAME = 64


@dataclass(frozen=True)
class Style:
    """How a variant is drawn; `hollow` markers tell of an epsilon that is claimed and not kept."""

    colour: str
    marker: str
    line: Any
    width: float
    zorder: float
    band: bool = False
    hollow: bool = False

    @property
    def marks(self) -> dict[str, Any]:
        """What matplotlib calls the properties of the markers."""
        if self.hollow:
            return {"markersize": 5, "markerfacecolor": "white", "markeredgecolor": self.colour, "markeredgewidth": 1.2}
        return {"markersize": 5, "markeredgecolor": "white", "markeredgewidth": 0.6}


@dataclass(frozen=True)
class Curve:
    """One variant in one panel: a spread for every x, or for infinity alone when it does not depend on x."""

    label: str
    style: Style
    points: Mapping[float, Spread]
    reference: bool


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


def styles(summaries: Sequence[VariantSummary]) -> dict[str, Style]:
    """Colour and marker by variant, the same in every panel; greys and dashes for references, without any epsilon.

    In a crowd only the default and each protocol's first published variant have bands.
    """
    names = {summary.variant: summary for summary in summaries if not _is_reference(summary)}
    published = {s.protocol: name for name, s in reversed(names.items()) if _is_published(name)}
    found: dict[str, Style] = {}
    marked = references = 0
    for summary in summaries:
        if summary.variant in found:
            continue
        if _is_reference(summary):
            grey, dashes = _GREYS[references % len(_GREYS)], _DASHES[references % len(_DASHES)]
            found[summary.variant] = Style(grey, "", dashes, 1.2, 1.5)
            references += 1
        else:
            colour, marker = _COLOURS[marked % len(_COLOURS)], _MARKERS[marked % len(_MARKERS)]
            line = "--" if summary.claiming or marked >= len(_COLOURS) else "-"
            width, zorder = (2.6, 4.0) if summary.default else (1.3, 3.0)
            band = len(names) < _CROWD or summary.default or summary.variant in published.values()
            found[summary.variant] = Style(colour, marker, line, width, zorder, band, summary.claiming)
            marked += 1
    return found


def curve(summary: VariantSummary, looks: Mapping[str, Style], points: Mapping[float, Spread], note: str = "") -> Curve:
    """The curve of a variant with one of these looks; a `note` stands below its name."""
    lines = [*summary.lines(_LONGEST_NAME), *([note] if note else [])]
    return Curve("\n".join(lines), looks[summary.variant], points, _is_reference(summary))


def _is_published(name: str) -> bool:
    """Whether a variant has an option as published: `published`, or one such as `published_laplace`."""
    return any(option.split("_")[0] == "published" for option in name.split("-"))


def _is_reference(summary: VariantSummary) -> bool:
    """Whether a variant has no epsilon at all."""
    return summary.non_private and not summary.claiming
