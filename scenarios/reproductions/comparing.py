"""What was measured beside what the paper says: cell by cell, claim by claim, with the reasons for differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from scenarios.reports.summary import Spread
from scenarios.reproductions.intervals import FEWEST, Paired, paired
from scenarios.reproductions.kept import Kept
from scenarios.reproductions.paper import EXACT, Claim, Item, Paper, Reason
from scenarios.reproductions.published import Published, published

Verdict = Literal["holds", "does not hold", "no difference seen", "cannot be told"]


@dataclass(frozen=True)
class Cell:
    """One place of a table or curve: the paper's value, and ours in both roles, each None where there is none.

    `difference` is how much larger our default is than ours as published, on the same splits. `reasons` are those that
    are declared for it, whether or not it differs.
    """

    setting: str
    series: str
    x: str
    paper: Published | None
    ours: Spread | None
    default: Spread | None
    difference: Paired | None
    reasons: tuple[Reason, ...]

    @property
    def inside(self) -> bool | None:
        """Whether the paper's value lies in our interval as published, or equals ours where that is exact.

        Half a unit of its last printed digit is allowed; None where one of the two is not there, or too few splits.
        """
        if self.paper is None or self.ours is None:
            return None
        interval = _interval(self.ours)
        if interval is None:
            return None
        low, high = interval
        slack = self.paper.half * (1 + 1e-9)  # for what is rounded to exactly half a unit
        return low - slack <= self.paper.value <= high + slack

    @property
    def unexplained(self) -> bool:
        """Whether it differs and no reason is declared."""
        return self.inside is False and not self.reasons


@dataclass(frozen=True)
class Tested:
    """A claim in one setting: how much larger its `larger` series is, by the splits as pairs, and what follows."""

    claim: Claim
    setting: str
    found: Paired
    verdict: Verdict
    reasons: tuple[Reason, ...]

    @property
    def unexplained(self) -> bool:
        """Whether it does not hold and no reason is declared."""
        return self.verdict == "does not hold" and not self.reasons


def cells(paper: Paper, item: Item, kept: Kept) -> list[Cell]:
    """All that are printed or measured: settings in the order of the parts, in each the series, in each the axis."""
    printed = published(paper.name, item.name)
    known = {(one.setting, one.series, one.x) for one in kept.observations} | printed.keys()
    order = [*item.settings, *sorted({setting for setting, _, _ in known} - set(item.settings))]
    names = [*(one.name for one in item.series), *(one.series for one in kept.observations), *(k[1] for k in printed)]
    places = [*item.at, *(one.x for one in kept.observations), *(x for _, _, x in printed)]
    return [
        _cell(item, kept, (setting, series, x), printed.get((setting, series, x)))
        for setting in order
        for series in dict.fromkeys(names)
        for x in dict.fromkeys(places)
        if (setting, series, x) in known
    ]


def _cell(item: Item, kept: Kept, key: tuple[str, str, str], value: Published | None) -> Cell:
    setting, series, x = key
    by_role = {role: kept.by_split(setting, series, role, x) for role in ("published", "default")}
    spreads = {role: _spread(values) for role, values in by_role.items()}
    difference = paired(by_role["default"], by_role["published"]) if all(by_role.values()) else None
    why = tuple(_reasons(item, kept, setting, series))
    return Cell(setting, series, x, value, spreads["published"], spreads["default"], difference, why)


def claims(item: Item, kept: Kept) -> list[Tested]:
    """Every claim in every of its settings where both series were measured."""
    return [
        tested
        for claim in item.claims
        for setting in claim.settings or item.settings
        if (tested := _tested(item, kept, claim, setting)) is not None
    ]


def _tested(item: Item, kept: Kept, claim: Claim, setting: str) -> Tested | None:
    places = claim.at or item.at
    larger = _over_axis(places, kept, setting, claim.larger)
    smaller = _over_axis(claim.from_at or places, kept, claim.against or setting, claim.smaller)
    found = paired(larger, smaller)
    if found is None:
        return None
    verdict: Verdict = "cannot be told"
    if not claim.seen:
        verdict = "does not hold" if found.surely else "no difference seen" if found.interval else "cannot be told"
    elif found.surely:
        verdict = "holds" if found.surely > 0 else "does not hold"
    return Tested(claim, setting, found, verdict, tuple(_reasons(item, kept, setting, claim.larger, claim.smaller)))


def _over_axis(places: Iterable[str], kept: Kept, setting: str, series: str) -> dict[int, float]:
    """The mean over places of the axis, as published, by split."""
    found: dict[int, list[float]] = {}
    for x in places:
        for split, value in kept.by_split(setting, series, "published", x).items():
            found.setdefault(split, []).append(value)
    return {split: fmean(values) for split, values in found.items()}


def _reasons(item: Item, kept: Kept, setting: str, *series: str) -> Iterator[Reason]:
    if other := kept.record.data.get(setting):
        yield Reason("other data", other, settings=(setting,))
    yield from (reason for reason in item.reasons if reason.covers(setting, *series))


def _spread(values: Mapping[int, float]) -> Spread | None:
    return Spread.of({split: [value] for split, value in values.items()}) if values else None


def _interval(spread: Spread) -> tuple[float, float] | None:
    if EXACT in spread.by_split:
        return spread.mean, spread.mean
    return spread.interval if spread.splits >= FEWEST else None


def unexplained(compared: Iterable[Cell | Tested]) -> list[str]:
    """What differs from the paper without a declared reason, a line each."""
    return [_line(one) for one in compared if one.unexplained]


def _line(one: Cell | Tested) -> str:
    if isinstance(one, Tested):
        return f"{one.setting}: '{one.claim.says}' does not hold"
    value = "" if one.paper is None else f" {one.paper.value:g}"
    place = f" at {one.x}" if one.x else ""
    return f"{one.setting}, {one.series}{place}: the paper's{value} is outside of our interval"
