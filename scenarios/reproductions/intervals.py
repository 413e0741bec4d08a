"""Two things measured on the same splits, and further splits of the same thing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, stdev

from scenarios.reports.summary import CONFIDENCE, student_interval

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


def of_further(values: Sequence[float], further: int) -> tuple[float, float]:
    """Where the mean of so many further splits lies with 95 % probability, by the splits measured: 2 or more.

    Examples:
        >>> low, high = of_further([0.7, 0.8, 0.75, 0.72, 0.78], further=2)
        >>> low, high
        (0.66, 0.84)
    """
    from scipy.special import stdtrit

    error = stdev(values) * math.sqrt(1 / len(values) + 1 / further)
    reach = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * error
    return fmean(values) - reach, fmean(values) + reach
