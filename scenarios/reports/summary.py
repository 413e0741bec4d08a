"""Summaries of the rows of results.csv: per variant and epsilon a mean, its spread and its uncertainty.

`labels` gives the variants of a run short names. Of the options in a long name, a short name keeps those that tell the
variant from the others.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from scipy.special import stdtrit

from scenarios.scores.results import AIMED, COLUMNS, NOBODY, Row, metric_named, primary
from scenarios.settings.protocol_options import BASELINES, NOISE_FREE

NON_PRIVATE = "NON-PRIVATE"
CONFIDENCE = 0.95
QUANTILES = (0.05, 0.95)
_FEWEST_SPLITS = 3  # that tell how far splits lie from each other: two give an interval over nearly everything
_NAME_WIDTH = 22
_LONGEST_WORD = 40
_BREAKS = re.compile(r"(?<= )|(?<=[-_.])(?=[^\W\d])")  # before a word, so that 1e-06 stays whole
_FIXED = frozenset(COLUMNS)
_Group = tuple[str, tuple[tuple[str, str], ...]]  # a variant, and the swept keys with their values


@dataclass(frozen=True)
class Spread:
    """One metric over the releases (splits x noise draws) of a variant at one epsilon.

    `deviation` is the sample standard deviation over releases (None for one release), `low` and `high` are the
    5 % and 95 % quantiles of single releases. `interval` is a 95 % confidence interval of the mean with the splits
    as independent units, None with one split: the draws of a split share its parties and its test rows. `kept` is the
    epsilon that the releases keep, the largest of the splits, where it is not the one that they aimed at. `by_split`
    are the values of the releases.
    """

    mean: float
    deviation: float | None
    low: float
    high: float
    releases: int
    splits: int
    interval: tuple[float, float] | None
    kept: float | None = None
    by_split: Mapping[int, Sequence[float]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, by_split: Mapping[int, Sequence[float]], kept: float | None = None) -> "Spread":
        """From the values of each split's releases; at least one value per split.

        Examples:
            >>> spread = Spread.of({0: [0.1, 0.3], 1: [0.5, 0.7]})
            >>> spread.mean, spread.deviation, spread.releases
            (0.4, 0.258, 4)
        """
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
            kept=kept,
            by_split=by_split,
        )

    def interval_of(self, metric: str) -> tuple[float, float] | None:
        """The interval as tables and figures show it: within the values that the metric can have, of 3 splits or more.

        Examples:
            >>> Spread.of({0: [0.9], 1: [1.0], 2: [1.0]}).interval_of("accuracy")
            (0.82, 1.0)
        """
        if self.interval is None or self.splits < _FEWEST_SPLITS:
            return None
        least, most = metric_named(metric).bounds
        return max(least, self.interval[0]), min(most, self.interval[1])

    @property
    def points(self) -> list[float]:
        """The mean of each split where these are two, which tell no interval; else none."""
        few = 1 < self.splits < _FEWEST_SPLITS
        return [float(np.mean(values)) for values in self.by_split.values()] if few else []


@dataclass(frozen=True)
class VariantSummary:
    """One variant in one setting of the swept keys.

    Releases stand under the epsilon that they aimed at, and those without a guarantee under the one that they claim,
    or infinity; the unit of these is `NOBODY`. `delta` is the largest over all epsilons. `short` is the variant's name
    in tables and figures, if it has a shorter one (`labels`).
    """

    variant: str
    protocol: str
    default: bool
    unit: str
    delta: float
    swept: Mapping[str, str]
    metric: str
    by_epsilon: Mapping[float, Spread]
    short: str = ""

    @property
    def name(self) -> str:
        """As tables and figures call it."""
        return self.short or self.variant

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
        return self.place_but_for("")

    def place_but_for(self, key: str) -> str:
        """The setting of all other swept keys as text."""
        return ", ".join(f"{name} = {value}" for name, value in self.setting.items() if name != key)

    @property
    def mark(self) -> str:
        """What a reader must know about the variant: (default), (NON-PRIVATE) or nothing."""
        marks = ", ".join(["default"] * self.default + [NON_PRIVATE] * self.non_private)
        return f"({marks})" if marks else ""

    @property
    def label(self) -> str:
        """The variant's short name and mark."""
        return f"{self.name} {self.mark}".strip()

    def at(self, epsilon: float) -> Spread | None:
        """What it reaches where it aimed at an epsilon, or else without any guarantee."""
        return self.by_epsilon.get(epsilon) or self.by_epsilon.get(math.inf)

    def kept(self, epsilon: float) -> float:
        """The epsilon that releases keep which aimed at this one."""
        known = self.by_epsilon[epsilon].kept
        return epsilon if known is None else known

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; epsilon is null where there is no guarantee, and else what is kept."""
        values = []
        for aimed, spread in self.by_epsilon.items():
            missed = {} if spread.kept is None else {AIMED: aimed}
            known = {name: value for name, value in asdict(spread).items() if name not in ("kept", "by_split")}
            values.append({"epsilon": None if math.isinf(aimed) else self.kept(aimed), **missed, **known})
        record = {name: getattr(self, name) for name in ("variant", "protocol", "default", "unit", "delta", "metric")}
        return {**record, "swept": dict(self.swept), "non_private": self.non_private, "values": values}


def lines_of(name: str, mark: str, width: int) -> list[str]:
    """A name and its mark in lines of at most `width` letters, the name `broken` and the mark never."""
    label = f"{name} {mark}".strip()
    return [label] if len(label) <= width else [*broken(name, width), *([mark] if mark else [])]


def broken(name: str, width: int) -> list[str]:
    """A name in lines of at most `width` letters, broken before words: after hyphens, underscores, dots and spaces.

    A word that is longer than `width` is cut; `name_width` gives a width at which that does not happen.

    Examples:
        >>> broken("soft_vote-output-published", 12)
        ['soft_vote-', 'output-', 'published']
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
    """mean ± t_{0.975, n-1} s / sqrt(n) of n independent means; None when n is 1.

    Examples:
        >>> student_interval([0.2, 0.6])
        (-2.14, 2.94)
    """
    if len(means) < 2:
        return None
    centre, error = float(np.mean(means)), float(np.std(means, ddof=1)) / math.sqrt(len(means))
    reach = float(stdtrit(len(means) - 1, (1 + CONFIDENCE) / 2)) * error
    return centre - reach, centre + reach


def summarise(rows: Sequence[Row], metric: str | None = None) -> list[VariantSummary]:
    """Summaries per (variant, swept values) in the order of the rows, epsilons rising; none without such rows.

    `metric` None is the one by which variants are compared (`scenarios.scores.results.primary`).
    """
    wanted = primary(rows).name if metric is None else metric
    groups: dict[_Group, list[Row]] = {}
    aims: dict[tuple[_Group, int, float], float] = {}  # by the split of a release, and the epsilon that it keeps
    for row in rows:
        if row["metric"] == wanted:
            groups.setdefault(_group(row), []).append(row)
        elif row["metric"] == AIMED:
            aims[_group(row), row["split"], row["epsilon"]] = row["value"]
    found = []
    short = labels({row["variant"]: row["protocol"] for row in rows})
    for (variant, swept), members in groups.items():
        values: dict[float, dict[int, list[float]]] = {}
        kept: dict[float, float] = {}
        for row in members:
            epsilon: float = row["epsilon"]
            aim = aims.get(((variant, swept), row["split"], epsilon), epsilon)
            values.setdefault(aim, {}).setdefault(row["split"], []).append(row["value"])
            kept[aim] = max(kept.get(aim, 0.0), epsilon)
        spreads = {
            aim: Spread.of(values[aim], None if equals(kept[aim]) == equals(aim) else kept[aim])
            for aim in sorted(values)
        }
        unit = NOBODY if any(row["unit"] == NOBODY for row in members) else members[0]["unit"]
        delta, default = max(row["delta"] for row in members), bool(members[0]["default"])
        found.append(
            VariantSummary(
                variant, members[0]["protocol"], default, unit, delta, dict(swept), wanted, spreads, short[variant]
            )
        )
    return found


def _group(row: Row) -> _Group:
    """The variant of a row, and the swept keys that apply to it with their values."""
    if len(row) == len(_FIXED):
        return row["variant"], ()
    return row["variant"], tuple((key, str(value)) for key, value in row.items() if key not in _FIXED and value != "")


def equals(epsilon: float, *others: float) -> str:
    """An epsilon, or the first and the last of several, as a text of four digits each."""
    return f"ε = {' to '.join(f'{value:.4g}' for value in (epsilon, *others))}"


def epsilons(summaries: Iterable[VariantSummary]) -> list[float]:
    """All epsilons that were aimed at or claimed, rising; infinity last if something is non-private."""
    return sorted({epsilon for summary in summaries for epsilon in summary.by_epsilon})


def middle_of(summaries: Iterable[VariantSummary]) -> float:
    """The middle one of their finite epsilons, of two the larger; infinity where there is none."""
    finite = [epsilon for epsilon in epsilons(summaries) if math.isfinite(epsilon)]
    return finite[len(finite) // 2] if finite else math.inf


def at(epsilon: float) -> str:
    """An epsilon as the head of a column or table, or what stands there without a guarantee."""
    return NON_PRIVATE if math.isinf(epsilon) else f"ε = {epsilon:g}"


def differing(settings: Iterable[Mapping[str, str]]) -> dict[str, list[str]]:
    """The values of each setting that has two or more, where it has any."""
    values: dict[str, dict[str, None]] = {}
    for setting in settings:
        for key, value in setting.items():
            values.setdefault(key, {})[value] = None
    return {key: list(found) for key, found in values.items() if len(found) > 1}


def is_number(text: str) -> bool:
    """Whether a swept value is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


_CALLED = {NOISE_FREE: "without noise"}  # baselines whose names are written otherwise in files
_BEFORE_OPTION = re.compile(r"-(?=[^\W\d])")  # so that 1e-06 stays whole


def without(name: str, options: Iterable[str]) -> str:
    """An automatic name without these options, so that variants which differ in them alone have the same name.

    Examples:
        >>> without("soft_vote-output-regularisation=1e-06-votes=3", ["regularisation"])
        'soft_vote-output-votes=3'
    """
    left_out = tuple(f"{option}=" for option in options)
    return "-".join(part for part in _BEFORE_OPTION.split(name) if not part.startswith(left_out))


def is_published(name: str) -> bool:
    """Whether an option is as published: `published`, or one such as `published_laplace`; a chosen name may say so."""
    return any(map(_says_published, _BEFORE_OPTION.split(name)))


def labels(protocols: Mapping[str, str]) -> dict[str, str]:
    """A short name for each variant of a run, no two alike; `protocols` has the protocol of each.

    A name that somebody chose stays. Of an automatic one, which begins with its protocol, stay the options that the
    others of this protocol do not all have; one of several that the same variants have; and none that follows from
    another, because all with that one have it, too. "Published" always stays. The protocol stays beside other
    protocols, and where there are no options. The baseline `noise_free` is called "without noise".

    Examples:
        >>> names = ["soft_vote", "soft_vote-gaussian", "soft_vote-output-published-regularisation=0.1"]
        >>> list(labels({**dict.fromkeys(names, "soft_vote"), "pooled": "pooled"}).values())
        ['soft_vote', 'gaussian', 'published', 'pooled']
        >>> labels({**dict.fromkeys(names, "soft_vote"), "mine": "majority_vote"})["soft_vote-gaussian"]
        'soft_vote gaussian'
    """
    automatic = {name: kind for name, kind in protocols.items() if name == kind or name.startswith(f"{kind}-")}
    short = {}
    several = len(set(protocols.values()).difference(BASELINES)) > 1
    for kind in dict.fromkeys(automatic.values()):
        told = _told_apart({name: _BEFORE_OPTION.split(name)[1:] for name, own in automatic.items() if own == kind})
        for name, options in told.items():
            short[name] = " ".join([_CALLED.get(kind, kind), *options] if several or not options else options)
    found = {name: short.get(name, name) for name in protocols}
    times = Counter(found.values())
    return {name: label if times[label] == 1 else name for name, label in found.items()}


def _told_apart(variants: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the options of each variant of a protocol that tell it from the others, as `labels` says."""
    having: dict[str, set[str]] = {}
    for name, options in variants.items():
        for option in options:
            having.setdefault(option, set()).add(name)
    found = {}
    for name, options in variants.items():
        ranked = sorted(options, key=lambda option: (not _says_published(option), "=" in option, options.index(option)))
        kept: list[str] = []
        for option in ranked:
            follows = any(having[other] < having[option] for other in options)
            alike = any(having[other] == having[option] for other in kept)
            needless = follows or alike or len(having[option]) == len(variants)
            if _says_published(option) or not needless:
                kept.append(option)
        found[name] = [option for option in options if option in kept]
    return found


def _says_published(option: str) -> bool:
    return option.split("_")[0] == "published"
