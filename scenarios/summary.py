"""What the rows of results.csv say together: per variant and epsilon a mean, its spread and its uncertainty."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scenarios.metrics import heading, primary, shown
from scenarios.results import COLUMNS, NOBODY, Row

if TYPE_CHECKING:
    from rich.table import Table

NON_PRIVATE = "NON-PRIVATE"
CAPTION = "mean ± standard deviation over single releases"
CLAIMING = f"{NON_PRIVATE} under some ε: it is claimed, not kept"
CONFIDENCE = 0.95
QUANTILES = (0.05, 0.95)
_TERMINAL = 80
_GAP = 2  # between the columns of a table
_NAME_WIDTH = 22
_LONGEST_WORD = 40
_BREAKS = re.compile(r"(?<= )|(?<=[-_.])(?=[^\W\d])")  # before a word, so that 1e-06 stays whole
_FIXED = frozenset(COLUMNS)


@dataclass(frozen=True)
class Spread:
    """One metric over the releases (splits x noise draws) of a variant at one epsilon.

    `deviation` is the sample standard deviation over releases (None for one release), `low` and `high` are the
    5 % and 95 % quantiles of single releases. `interval` is a 95 % confidence interval of the mean with the splits
    as independent units, None with one split: the draws of a split share its parties and its test rows.
    """

    mean: float
    deviation: float | None
    low: float
    high: float
    releases: int
    splits: int
    interval: tuple[float, float] | None

    @classmethod
    def of(cls, by_split: Mapping[int, Sequence[float]]) -> Spread:
        """From the values of each split's releases; at least one value per split."""
        values = np.concatenate([np.asarray(part, dtype=float) for part in by_split.values()])
        low, high = np.quantile(values, QUANTILES)
        return cls(
            mean=float(values.mean()),
            deviation=float(values.std(ddof=1)) if len(values) > 1 else None,
            low=float(low),
            high=float(high),
            releases=len(values),
            splits=len(by_split),
            interval=student_interval([float(np.mean(part)) for part in by_split.values()]),
        )

    def text(self, metric: str) -> str:
        """Mean ± standard deviation of the metric over releases, or the single value."""
        mean = shown(metric, self.mean)
        return mean if self.deviation is None else f"{mean} ± {shown(metric, self.deviation, self.mean)}"


@dataclass(frozen=True)
class VariantSummary:
    """One variant in one setting of the swept keys.

    Releases without a guarantee stand under the epsilon that they claim, or infinity; their unit is `NOBODY`. `delta`
    is the largest over all epsilons.
    """

    variant: str
    protocol: str
    default: bool
    unit: str
    delta: float
    swept: Mapping[str, str]
    metric: str
    by_epsilon: Mapping[float, Spread]

    @property
    def non_private(self) -> bool:
        """Whether some of these values were released without any guarantee."""
        return self.unit == NOBODY

    @property
    def claiming(self) -> bool:
        """Whether it is without any guarantee at an epsilon that it claims."""
        return self.non_private and not all(map(math.isinf, self.by_epsilon))

    @property
    def setting(self) -> dict[str, str]:
        """The swept keys of the world; those of the protocol are in the variant's name."""
        return {key: value for key, value in self.swept.items() if not key.startswith("protocols.")}

    @property
    def place(self) -> str:
        """The setting as text, empty without a sweep."""
        return ", ".join(f"{key} = {value}" for key, value in self.setting.items())

    @property
    def mark(self) -> str:
        """What a reader must know about the variant: (default), (NON-PRIVATE) or nothing."""
        marks = [*(["default"] if self.default else []), *([NON_PRIVATE] if self.non_private else [])]
        return f"({', '.join(marks)})" if marks else ""

    @property
    def label(self) -> str:
        """The variant's name and mark."""
        return f"{self.variant} {self.mark}".strip()

    def lines(self, width: int) -> list[str]:
        """The label in lines of at most `width` letters, the name `broken` and the mark never."""
        if len(self.label) <= width:
            return [self.label]
        return [*broken(self.variant, width), *([self.mark] if self.mark else [])]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; epsilon is null where there is no guarantee."""
        values = [
            {"epsilon": None if math.isinf(epsilon) else epsilon, **asdict(spread)}
            for epsilon, spread in self.by_epsilon.items()
        ]
        record = {name: getattr(self, name) for name in ("variant", "protocol", "default", "unit", "delta", "metric")}
        return {**record, "swept": dict(self.swept), "non_private": self.non_private, "values": values}


def broken(name: str, width: int) -> list[str]:
    """A name in lines of at most `width` letters, broken before words: after hyphens, underscores, dots and spaces.

    A word that is longer than `width` is cut; `name_width` gives a width at which that does not happen.
    """
    lines = [""]
    for part in _BREAKS.split(name):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    stripped = [line.strip() for line in lines]  # lest a space that ends a full line takes a line of its own
    return [line[start : start + width] for line in stripped for start in range(0, max(1, len(line)), width)]


def name_width(names: Iterable[str]) -> int:
    """How wide a terminal's column of names should be: 22 letters, or as many as its longest word needs, up to 40."""
    longest = max((len(part.rstrip()) for name in names for part in _BREAKS.split(name)), default=0)
    return min(max(_NAME_WIDTH, longest), _LONGEST_WORD)


def student_interval(means: Sequence[float]) -> tuple[float, float] | None:
    """mean ± t_{0.975, n-1} s / sqrt(n) of n independent means; None when n is 1."""
    from scipy.special import stdtrit

    if len(means) < 2:
        return None
    centre, error = float(np.mean(means)), float(np.std(means, ddof=1)) / math.sqrt(len(means))
    reach = float(stdtrit(len(means) - 1, (1 + CONFIDENCE) / 2)) * error
    return centre - reach, centre + reach


def summarise(rows: Sequence[Row], metric: str | None = None) -> list[VariantSummary]:
    """Summaries per (variant, swept values) in the order of the rows, epsilons rising; none without such rows.

    `metric` None is the one by which variants are compared (`metrics.primary`).
    """
    wanted = primary(rows).name if metric is None else metric
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[Row]] = {}
    for row in rows:
        if row["metric"] == wanted:
            swept = () if len(row) == len(_FIXED) else _swept(row)
            groups.setdefault((row["variant"], swept), []).append(row)
    return [_summary(variant, dict(swept), wanted, members) for (variant, swept), members in groups.items()]


def _swept(row: Row) -> tuple[tuple[str, str], ...]:
    """The swept keys that apply to a row, and their values."""
    return tuple((key, str(value)) for key, value in row.items() if key not in _FIXED and value != "")


def _summary(variant: str, swept: dict[str, str], metric: str, members: Sequence[Row]) -> VariantSummary:
    values: dict[float, dict[int, list[float]]] = {}
    for row in members:
        values.setdefault(row["epsilon"], {}).setdefault(row["split"], []).append(row["value"])
    first = members[0]
    return VariantSummary(
        variant=variant,
        protocol=first["protocol"],
        default=bool(first["default"]),
        unit=NOBODY if any(row["unit"] == NOBODY for row in members) else first["unit"],
        delta=max(row["delta"] for row in members),
        swept=swept,
        metric=metric,
        by_epsilon={epsilon: Spread.of(values[epsilon]) for epsilon in sorted(values)},
    )


def epsilons(summaries: Iterable[VariantSummary]) -> list[float]:
    """All epsilons that occur, rising; infinity last if something is non-private."""
    return sorted({epsilon for summary in summaries for epsilon in summary.by_epsilon})


def tables(summaries: Sequence[VariantSummary]) -> list[Table]:
    """Variants by epsilons for a terminal of 80 characters; blocks of epsilons where all of them do not fit.

    What has no guarantee has a column of its own.
    """
    columns = epsilons(summaries)
    names = _names(summaries)
    room = _TERMINAL - max((len(line) for lines in names for line in lines), default=0)
    joint, blocks = " ", _blocks(columns, summaries, " ", room)
    if len(blocks) > 1:
        joint, blocks = "\n", _blocks(columns, summaries, "\n", room)
    return [_table(summaries, names, block, joint) for block in blocks]


def _names(summaries: Sequence[VariantSummary]) -> list[list[str]]:
    """The lines of the first column's cells: the variant's label and its setting."""
    settings = [[f"{key} = {value}" for key, value in summary.setting.items()] for summary in summaries]
    width = name_width([*(summary.variant for summary in summaries), *(f"  {s}" for found in settings for s in found)])
    return [
        summary.lines(width) + [f"  {line}" for setting in found for line in broken(setting, width - 2)]
        for summary, found in zip(summaries, settings, strict=True)
    ]


def _blocks(
    columns: Sequence[float], summaries: Sequence[VariantSummary], joint: str, room: int
) -> list[Sequence[float]]:
    """The fewest blocks of columns, about equally long, that fit into `room` letters beside the names."""
    widths = []
    for epsilon in columns:
        texts = [_header(epsilon), *(_cell(summary, epsilon, joint) for summary in summaries)]
        widths.append(_GAP + max(len(line) for text in texts for line in text.splitlines()))
    for count in range(1, len(columns) + 1):
        size = math.ceil(len(columns) / count)
        starts = range(0, len(columns), size)
        if size == 1 or all(sum(widths[start : start + size]) <= room for start in starts):
            return [columns[start : start + size] for start in starts]
    return [columns]


def _table(
    summaries: Sequence[VariantSummary], names: Sequence[Sequence[str]], columns: Sequence[float], joint: str
) -> Table:
    from rich import box
    from rich.table import Column, Table
    from rich.text import Text

    drawn = Table(
        Column("variant", overflow="fold"),
        *(Column(Text(_header(epsilon)), justify="right", no_wrap=True) for epsilon in columns),
        title=Text(heading(summaries[0].metric) if summaries else "no results"),
        caption=CAPTION + (f"\n{CLAIMING}" if any(summary.claiming for summary in summaries) else ""),
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
        show_edge=False,
        min_width=60,
    )
    for summary, lines in zip(summaries, names, strict=True):
        if any(epsilon in summary.by_epsilon for epsilon in columns):
            cells = [_cell(summary, epsilon, joint) for epsilon in columns]
            drawn.add_row(Text("\n".join(lines), style="bold" if summary.default else ""), *map(Text, cells))
    return drawn


def _header(epsilon: float) -> str:
    return NON_PRIVATE if math.isinf(epsilon) else f"ε = {epsilon:g}"


def _cell(summary: VariantSummary, epsilon: float, joint: str) -> str:
    spread = summary.by_epsilon.get(epsilon)
    return "" if spread is None else spread.text(summary.metric).replace(" ± ", f"{joint}± ")
