"""Comparison of measured and published values: cell by cell and claim by claim, with reasons for differences.

Paired values come from the same splits. The texts of cells and claims are the same on the terminal and on the pages.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Literal

from scenarios.reports.summary import Spread, student_interval
from scenarios.reproductions.paper import EXACT, Claim, Item, Kept, Paper, Published, Reason, published
from scenarios.scores import results as metrics

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
    difference: "Paired | None"
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
    found: "Paired"
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


NOTHING = "-"


def lines(item: Item, compared: Iterable[Cell], reasons: Sequence[Reason]) -> list[dict[str, str]]:
    """A row for each cell; `reasons` are all of the item's, which rows name by their numbers from 1."""
    return _filled([_cell_row(item, cell, reasons) for cell in compared])


def _cell_row(item: Item, cell: Cell, reasons: Sequence[Reason]) -> dict[str, str]:
    place = {item.axis: cell.x} if item.axis else {}
    return {
        "setting": cell.setting,
        "series": cell.series,
        **place,
        "paper": _paper(item.metric, cell),
        "ours as published": _spread_text(item.metric, cell.ours),
        "inside": {True: "yes", False: "no", None: NOTHING}[cell.inside],
        "our default": _spread_text(item.metric, cell.default),
        "default less published": difference(item.metric, cell.difference),
        "why": numbers(cell.reasons, reasons) if cell.inside is False else "",
    }


def claim_lines(item: Item, tested: Iterable[Tested], reasons: Sequence[Reason]) -> list[dict[str, str]]:
    """A row for each claim in each setting."""
    found = [
        {
            "the paper says": one.claim.says,
            "setting": one.setting,
            "difference": difference(item.metric, one.found),
            "verdict": one.verdict,
            "why": numbers(one.reasons, reasons) if one.verdict == "does not hold" else "",
        }
        for one in tested
    ]
    return _filled(found)


def _filled(rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The rows without columns that are empty everywhere."""
    names = {name for row in rows for name, text in row.items() if text not in ("", NOTHING)}
    return [{name: text for name, text in row.items() if name in names} for row in rows]


def used(compared: Iterable[Cell], tested: Iterable[Tested]) -> list[Reason]:
    """The reasons for what differs, in order, each once."""
    found = [reason for cell in compared if cell.inside is False for reason in cell.reasons]
    found += [reason for one in tested if one.verdict == "does not hold" for reason in one.reasons]
    return list(dict.fromkeys(found))


def numbers(own: Iterable[Reason], reasons: Sequence[Reason]) -> str:
    """The numbers of some reasons among all."""
    return ", ".join(map(str, sorted(reasons.index(reason) + 1 for reason in own)))


def difference(metric: str, found: "Paired | None") -> str:
    """A paired difference with its interval and Wilcoxon's p.

    Examples:
        >>> difference("accuracy", Paired(0.03, (0.01, 0.05), 0.031, 6))
        '+0.030 [+0.010, +0.050], p = 0.031'
    """
    if found is None:
        return NOTHING
    text = _signed(metric, found.difference)
    if found.interval is not None:
        text += f" [{', '.join(_signed(metric, end) for end in found.interval)}]"
    return text if found.p is None else f"{text}, p = {found.p:.2g}"


def shown(metric: str, value: float) -> str:
    """A value as all tables show this metric, whole numbers as such.

    Examples:
        >>> shown("accuracy", 0.5), shown("rows", 2500.0)
        ('0.500', '2500')
    """
    return f"{value:.0f}" if abs(value) >= 1 and value == round(value) else metrics.shown(metric, value)


def _signed(metric: str, value: float) -> str:
    text = shown(metric, value)
    return text if text.startswith("-") else f"+{text}"


def _paper(metric: str, cell: Cell) -> str:
    if cell.paper is None:
        return NOTHING
    text = shown(metric, cell.paper.value)
    return text if cell.paper.plus_minus is None else f"{text} ± {shown(metric, cell.paper.plus_minus)}"


def _spread_text(metric: str, spread: Spread | None) -> str:
    if spread is None:
        return NOTHING
    ends = spread.interval_of(metric)
    text = shown(metric, spread.mean)
    return text if ends is None else f"{text} [{', '.join(shown(metric, end) for end in ends)}]"


FEWEST = 3  # splits that an interval is shown of


@dataclass(frozen=True)
class Paired:
    """The mean difference over the splits that both have, its Student interval, and Wilcoxon's signed-rank p-value.

    `interval` is None below three splits, and `p` (two-sided) there and where no split differs.
    """

    difference: float
    interval: tuple[float, float] | None
    p: float | None
    splits: int

    @property
    def surely(self) -> int:
        """The sign of the difference where its interval is on one side of zero, else 0."""
        if self.interval is None or self.interval[0] <= 0 <= self.interval[1]:
            return 0
        return 1 if self.interval[0] > 0 else -1


def paired(one: Mapping[int, float], other: Mapping[int, float]) -> Paired | None:
    """How much larger `one` is than the `other`, both by split; None without a common split.

    Examples:
        >>> found = paired({0: 0.8, 1: 0.9, 2: 0.85, 3: 0.7}, {0: 0.7, 1: 0.7, 2: 0.75, 4: 0.1})
        >>> found.difference, found.splits, found.surely
        (0.133, 3, 0)
    """
    differences = [one[split] - other[split] for split in sorted(one.keys() & other.keys())]
    if not differences:
        return None
    told = len(differences) >= FEWEST
    return Paired(
        fmean(differences),
        student_interval(differences) if told else None,
        _signed_rank(tuple(differences)) if told and any(differences) else None,
        len(differences),
    )


@cache  # with ties scipy goes through all signs, and pages and their checks ask for the same splits again
def _signed_rank(differences: tuple[float, ...]) -> float:
    """Wilcoxon's p, two-sided."""
    from scipy.stats import wilcoxon

    return float(wilcoxon(differences).pvalue)
