"""What a figure shows of each variant: its values along an axis, in panels."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from scenarios.reports.looks import Look
from scenarios.reports.summary import Spread, VariantSummary, lines_of
from scenarios.settings.words import PERIOD

_LONGEST_NAME = 64
_MAGNITUDES = 10.0
Placed = tuple[str, VariantSummary, Mapping[float, Spread]]  # a panel, and what a variant has there along the axis


@dataclass(frozen=True)
class Curve:
    """One variant in one panel: a spread for every x, or for infinity alone when it does not depend on x."""

    label: str
    look: Look
    points: Mapping[float, Spread]

    @property
    def across(self) -> bool:
        """Whether it is a line across, because it does not depend on x."""
        return list(self.points) == [math.inf]


@dataclass(frozen=True)
class Axis:
    """The horizontal axis that all panels of a figure share."""

    name: str
    values: tuple[float, ...]
    logarithmic: bool

    @classmethod
    def of(cls, name: str, values: Collection[float]) -> Axis:
        """Of numbers in any order, without infinity; but for periods logarithmic where the ends are ten times apart."""
        finite = tuple(sorted({value for value in values if math.isfinite(value)}))
        return cls(name, finite, name != PERIOD and finite[0] > 0 and finite[-1] >= _MAGNITUDES * finite[0])

    def position(self, value: float) -> float:
        """Where a value stands, between 0 and 1."""
        scale = math.log if self.logarithmic else float
        first, last = scale(self.values[0]), scale(self.values[-1])
        return (scale(value) - first) / (last - first)

    def shifted(self, value: float, share: float) -> float:
        """A value moved to the right by `share` of the axis."""
        first, last = self.values[0], self.values[-1]
        return value * (last / first) ** share if self.logarithmic else value + share * (last - first)


@dataclass(frozen=True)
class Panel:
    """Curves that are drawn together, and the setting that they are about."""

    title: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Plot:
    """A figure before anything is drawn: panels over one axis with one scale of a metric.

    `place` is what all panels are at, such as an epsilon; `bars` says whether means have intervals, which would hide
    the curves where there are many of both.
    """

    panels: tuple[Panel, ...]
    axis: Axis
    metric: str
    place: str = ""
    bars: bool = True

    @property
    def curves(self) -> list[Curve]:
        """Those of all panels."""
        return list(chain.from_iterable(panel.curves for panel in self.panels))

    @property
    def legend(self) -> list[Curve]:
        """One curve for each label, in the order in which they first appear."""
        return list({curve.label: curve for curve in self.curves}.values())

    @property
    def barred(self) -> list[Spread]:
        """Of what has intervals or the points of its splits beside the means: no line across, no reference to rows."""
        curves = [one for one in self.curves if not (one.across or (self.of_one_value and one.look.reference))]
        return [spread for curve in curves for spread in curve.points.values()] if self.bars else []

    @property
    def of_one_value(self) -> bool:
        """Whether the axis has a single value, so that variants have a row each in place of a curve."""
        return len(self.axis.values) < 2

    @property
    def unprotected(self) -> bool:
        """Whether nothing in it has a guarantee."""
        return all(curve.look.unprotected for curve in self.curves)


def panels(
    placed: Iterable[Placed], looks: Mapping[str, Look], notes: Mapping[str, str], names: Collection[str]
) -> tuple[Panel, ...]:
    """A panel for each setting with the curves of the variants `names`, whose parts may come one by one.

    `notes`, by variant, stand below the names.
    """
    found: dict[str, dict[str, Curve]] = {}
    for panel, summary, points in placed:
        name, members = summary.variant, found.setdefault(panel, {})
        if name in names:
            known = members[name].points if name in members else {}
            lines = [*lines_of(summary.name, summary.mark, _LONGEST_NAME), *filter(None, [notes.get(name)])]
            members[name] = Curve("\n".join(lines), looks[name], {**known, **points})
    return tuple(Panel(title, tuple(members.values())) for title, members in found.items() if members)
