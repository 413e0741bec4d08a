"""Tables of results for terminal and page: variants against epsilon or a swept setting, and sentences about a run.

There is one model of a table: this module draws it for a terminal, and the page's template as HTML. The sentences state
which variant leads, how many releases a mean covers, and whom the run protects.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from federation.contract.guarantee import Adjacency, Unit
from scenarios.reports.summary import (
    NON_PRIVATE,
    Spread,
    VariantSummary,
    at,
    broken,
    differing,
    epsilons,
    equals,
    is_number,
    lines_of,
    name_width,
    without,
)
from scenarios.scores.results import heading, in_percent, metric_named, shown
from scenarios.settings.guarantees import CHANGES, UNITS
from scenarios.settings.protocol_options import POOLED

if TYPE_CHECKING:
    from rich.table import Table as Drawn


MEANS = "mean ± standard deviation over single releases"
CLAIMING = f"{NON_PRIVATE} under some ε: it is claimed, not kept"
FEW = "Below a mean of two splits: the mean of each, as two are too few for an interval"
KEEPING = "ε under a value: kept instead of the one aimed at"
_PREFIX = "protocols."
_PAGE, _NAMES, _GAP = 125, 26, 2  # letters of a page's width, of its column of names, and between columns


@dataclass(frozen=True)
class Cell:
    """What stands in one place of a table; all texts are empty where nothing was measured.

    `interval` is that of the mean, or the means of two splits, `quantiles` those of single releases. `kept` is the
    epsilon that is kept where it is not the one that was aimed at.
    """

    text: str = ""
    interval: str = ""
    quantiles: str = ""
    kept: str = ""

    @classmethod
    def of(cls, spread: Spread | None, metric: str, *, percent: bool = False) -> Cell:
        """Mean ± standard deviation of a metric over releases, or the single value.

        Examples:
            >>> Cell.of(Spread.of({0: [0.825, 0.843]}), "accuracy").text
            '0.834 ± 0.013'
        """
        if spread is None:
            return cls()
        text = partial(shown, metric, beside=spread.mean, percent=percent)
        kept = "" if spread.kept is None else equals(spread.kept)
        ends = spread.interval_of(metric)
        interval = " and ".join(map(text, spread.points)) if ends is None else " to ".join(map(text, ends))
        if spread.deviation is None:
            return cls(text(spread.mean), interval, kept=kept)
        quantiles = f"5-95 % of single releases: {text(spread.low)} to {text(spread.high)}; {spread.releases} releases"
        return cls(f"{text(spread.mean)} ± {text(spread.deviation)}", interval, quantiles, kept)


@dataclass(frozen=True)
class Line:
    """A row of a table: its name, and for a variant its `mark` and its setting, a text for each swept key."""

    name: str
    cells: Sequence[Cell]
    mark: str = ""
    place: tuple[str, ...] = ()
    default: bool = False


@dataclass(frozen=True)
class Table:
    """Lines over columns, all as texts; `corner` says what the lines are, `caption` and `notes` how to read them.

    One that is `folded` is too wide for a page: each line stands as a list of its cells.
    """

    title: str
    corner: str
    columns: Sequence[str]
    lines: Sequence[Line]
    caption: str = MEANS
    notes: Sequence[str] = ()
    folded: bool = False


def results(summaries: Sequence[VariantSummary]) -> Table:
    """Variants, in every setting of the swept keys, over epsilons; what has no guarantee has a column of its own."""
    columns = epsilons(summaries)
    lines = [
        Line(
            one.name,
            [Cell.of(one.by_epsilon.get(epsilon), one.metric) for epsilon in columns],
            one.mark,
            tuple(f"{key} = {value}" for key, value in one.setting.items()),
            one.default,
        )
        for one in summaries
    ]
    notes = [CLAIMING] if any(one.claiming for one in summaries) else []
    notes += [FEW] if any(spread.points for one in summaries for spread in one.by_epsilon.values()) else []
    notes += [KEEPING] if any(cell.kept for line in lines for cell in line.cells) else []
    title = heading(summaries[0].metric) if summaries else "no results"
    return Table(title, "variant", [at(epsilon) for epsilon in columns], lines, notes=notes)


def fitting(table: Table) -> Table:
    """The table as a page can show it whole: as it is, with lines and columns exchanged, or folded.

    Lines of variants are not exchanged: they have marks and settings.
    """
    if _width(table) <= _PAGE:
        return table
    if not any(line.mark or line.place for line in table.lines):
        heads = [line.name for line in table.lines]
        lines = [Line(name, [line.cells[at] for line in table.lines]) for at, name in enumerate(table.columns)]
        other = replace(table, corner="", columns=heads, lines=lines)
        if _width(other) <= _PAGE:
            return other
    return replace(table, folded=True)


def _width(table: Table) -> int:
    """Letters of a line, where names and heads are broken at spaces."""
    cells = zip(*(line.cells for line in table.lines), strict=True)
    columns = [
        max(
            [*map(len, head.split()), *(len(text) for cell in column for text in (cell.text, cell.interval, cell.kept))]
        )
        for head, column in zip(table.columns, cells, strict=True)
    ]
    return _NAMES + sum(width + _GAP for width in columns)


def pivots(summaries: Sequence[VariantSummary]) -> list[Table]:
    """The tables of all variants over a swept setting that is no number, and of each protocol over its swept numbers.

    The first kind has a row for each variant and a column for each value of the first such setting of worlds: one table
    for each epsilon and each setting of all else, as in Lacombe et al. 2021, Table 2. The second kind is for protocols
    with options swept over two numbers or more. With one such option its values are the rows and epsilons the columns.
    With two options the values of one are the rows and those of the other the columns, in a table for each epsilon.
    Every value of a further option has tables of its own.
    """
    return [*_over_settings(summaries), *_over_options(summaries)]


def _over_settings(summaries: Sequence[VariantSummary]) -> Iterator[Table]:
    several = differing(summary.setting for summary in summaries)
    key = next((key for key, values in several.items() if not all(map(is_number, values))), None)
    if key is None or len({summary.variant for summary in summaries}) == 1:
        return
    groups: dict[str, list[VariantSummary]] = {}
    for summary in summaries:
        if key in summary.setting:
            groups.setdefault(summary.place_but_for(key), []).append(summary)
    for place, members in groups.items():
        labels = {member.variant: member.label for member in members}
        leading = next((member.variant for member in members if member.default), "")
        values = dict.fromkeys(member.setting[key] for member in members)
        for epsilon in list(filter(math.isfinite, epsilons(members))) or [math.inf]:
            placed = {(one.setting[key], labels[one.variant]): found for one in members if (found := one.at(epsilon))}
            metric, title = members[0].metric, _joined(place, at(epsilon))
            table = _crossed(title, key, values, labels.values(), placed, metric, in_percent(metric))
            pairs = [[placed.get((value, labels.get(name, ""))) for name in (POOLED, leading)] for value in values]
            yield _with_ratios(table, [_ratio(metric, *pair) for pair in pairs], leading)


def _ratio(metric: str, pooled: Spread | None, leading: Spread | None) -> str:
    """How much worse than `pooled` the leading variant is, relative to it; empty where either is missing."""
    if pooled is None or leading is None or pooled.mean == 0:
        return ""
    sign = 1 if metric_named(metric).higher_is_better else -1
    return f"{sign * (pooled.mean - leading.mean) / pooled.mean:.3f}"


def _with_ratios(table: Table, ratios: Sequence[str], leading: str) -> Table:
    """The table with these in a last column, if there are any."""
    if not any(ratios):
        return table
    lines = [replace(line, cells=[*line.cells, Cell(text)]) for line, text in zip(table.lines, ratios, strict=True)]
    meaning = f"Ratio: by how much {leading} is worse than {POOLED}, as a share of {POOLED}"
    return replace(table, columns=[*table.columns, "ratio"], lines=lines, notes=[*table.notes, meaning])


def _over_options(summaries: Sequence[VariantSummary]) -> Iterator[Table]:
    groups: dict[tuple[str, ...], list[VariantSummary]] = {}
    for summary in summaries:
        keys = [key for key, value in summary.swept.items() if key.startswith(_PREFIX) and is_number(value)]
        rest = without(summary.variant, map(_option, keys))
        groups.setdefault((summary.protocol, _joined(rest, summary.place), *keys), []).append(summary)
    for (_, name, *keys), members in groups.items():
        axes = [key for key in keys if len({member.swept[key] for member in members}) > 1]
        if axes:
            yield from _over_numbers(name, axes, members)


def _over_numbers(name: str, axes: Sequence[str], members: Sequence[VariantSummary]) -> Iterator[Table]:
    """One swept number over epsilons, or the first over the second at each epsilon and setting of the others."""
    placed: dict[str, dict[tuple[str, str], Spread]] = {}
    for member in members:
        value, *across = (member.swept[key] for key in axes[:2])
        fixed = [f"{_option(key)} = {member.swept[key]}" for key in axes[2:]]
        for epsilon, spread in member.by_epsilon.items():
            title = ", ".join([name, *fixed, at(epsilon)]) if across else name
            placed.setdefault(title, {})[value, across[0] if across else at(epsilon)] = spread
    for title, spreads in placed.items():
        values = sorted({value for value, _ in spreads}, key=float)
        columns = [at(epsilon) for epsilon in epsilons(members)]
        if len(axes) > 1:
            columns = sorted({column for _, column in spreads}, key=float)
        yield _crossed(title, ", by ".join(map(_option, axes[:2])), values, columns, spreads, members[0].metric)


def _crossed(
    title: str,
    corner: str,
    values: Iterable[str],
    columns: Collection[str],
    placed: Mapping[tuple[str, str], Spread],
    metric: str,
    percent: bool = False,
) -> Table:
    """A line for each of `values`, with the spreads that are `placed` at it and each of the columns."""
    lines = [
        Line(value, [Cell.of(placed.get((value, column)), metric, percent=percent) for column in columns])
        for value in values
    ]
    caption = f"{title}: {heading(metric).lower()}{' in percent' if percent else ''}, {MEANS}"
    notes = [FEW] if any(spread.points for spread in placed.values()) else []
    return Table(title, corner, list(columns), lines, caption, notes)


def _option(key: str) -> str:
    return key.removeprefix(_PREFIX)


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


TERMINAL = 80
_SETTING_WIDTH = 30
_COLUMN_GAP = 2  # between the columns of a table


def tables(summaries: Sequence[VariantSummary], terminal: int = TERMINAL) -> list[Drawn]:
    """Variants by epsilons for a terminal of so many characters; blocks of epsilons where all of them do not fit.

    Names are broken only where they take the room of a column. Settings of swept keys stand above their variants. What
    has no guarantee has a column of its own. Nothing where nothing was scored.
    """
    if not summaries:
        return []
    whole = results(summaries)
    narrow = name_width(line.name for line in whole.lines)
    for width in (max([narrow, *(len(f"{line.name} {line.mark}") for line in whole.lines)]), narrow):
        places: dict[str, list[tuple[str, Line]]] = {}  # by the setting: each variant's name, broken, and its line
        for line in whole.lines:
            setting = [text for part in line.place for text in broken(part, max(width, _SETTING_WIDTH))]
            name = "\n".join(lines_of(line.name, line.mark, width))
            places.setdefault("\n".join(setting), []).append((name, line))
        room = terminal - _widest([*places, *(name for members in places.values() for name, _ in members)])
        joint, blocks = " ", _blocks(whole, " ", room)
        if len(blocks) == 1 and sum(_widths(whole, " ")) <= room:
            break
    else:
        joint, blocks = "\n", _blocks(whole, "\n", room)
    return [_drawn(whole, places, block, joint, terminal) for block in blocks]


def _widest(texts: Iterable[str]) -> int:
    return max(map(len, "\n".join(texts).split("\n")))


def _widths(table: Table, joint: str) -> list[int]:
    """Letters that each column takes, with the gap before it."""
    return [
        _COLUMN_GAP + _widest([head, *(_text(line.cells[place], joint) for line in table.lines)])
        for place, head in enumerate(table.columns)
    ]


def _blocks(table: Table, joint: str, room: int) -> list[slice]:
    """The fewest blocks of columns, about equally long, that fit into `room` letters beside the names."""
    columns, widths = len(table.columns), _widths(table, joint)
    for size in sorted({math.ceil(columns / count) for count in range(1, columns + 1)}, reverse=True):
        blocks = [slice(start, start + size) for start in range(0, columns, size)]
        if size == 1 or all(sum(widths[block]) <= room for block in blocks):
            return blocks
    return [slice(columns)]


def _drawn(table: Table, places: dict[str, list[tuple[str, Line]]], block: slice, joint: str, terminal: int) -> Drawn:
    from rich import box
    from rich.table import Column
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(
        Column(table.corner, overflow="fold"),
        *(Column(Text(head), justify="right", no_wrap=True) for head in table.columns[block]),
        title=Text(table.title),
        caption="\n".join([table.caption, *(note for note in table.notes if note != FEW)]),
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
        show_edge=False,
        min_width=min(60, terminal),
    )
    for setting, members in places.items():
        present = [(name, line) for name, line in members if any(cell.text for cell in line.cells[block])]
        if present and setting:
            drawn.add_section()
            drawn.add_row(Text(setting, style="underline"))
        for name, line in present:
            cells = (Text(_text(cell, joint)) for cell in line.cells[block])
            drawn.add_row(Text(name, style="bold" if line.default else ""), *cells)
    return drawn


def _text(cell: Cell, joint: str) -> str:
    """The mean and its deviation without the interval, joined so, above the epsilon that is kept."""
    return "\n".join(filter(None, (cell.text.replace(" ± ", f"{joint}± "), cell.kept)))


MEANINGFUL_EPSILON = 10.0  # beyond it an epsilon is hardly a promise


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
        f"Protected is {UNITS[Unit(known['unit'])]}: when it {CHANGES[Adjacency(known['adjacency'])]}, no "
        f"probability of anything that one release may tell changes by more than the factor e^ε ({factors}){slack}. "
        f"This holds for one release, under the assumptions listed below.{_UNPROTECTED.get(known['unit'], '')}"
    )
