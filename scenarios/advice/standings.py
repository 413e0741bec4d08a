"""How candidates of a pilot stand beside each other and beside references: means, intervals, verdict, choice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

import numpy as np

from aggregator.contract.protocol import Metric

Useful = Literal["useful", "as the constant", "below the constant"]

LEAST_FOR_INTERVAL = 3  # splits: two give one degree of freedom, and intervals without sense
_TIES = 0.005  # of accuracy, and of ratios, by which the first by public numbers may be behind and still be taken
_TIES_OF_ERRORS = 0.05  # the same of squared errors, as a share
_CHANCE = 0.55  # balanced accuracy of two classes below which nothing is learned
_LEVEL = 0.95


@dataclass(frozen=True)
class Standing:
    """One candidate: its mean over splits, and how far it is behind the best where both have as many splits.

    `interval` is of that distance, at 95 %; None with fewer than three splits.
    """

    name: str
    mean: float
    splits: int
    behind: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Verdict:
    """What the best is worth: beside the constant answer, and as a share of what the pooled rows gain over that.

    `kept` is None where they gain nothing.
    """

    finding: Useful
    best: float
    constant: float
    pooled: float
    kept: float | None


def standings(values: Mapping[str, Mapping[int, Sequence[float]]], metric: Metric) -> list[Standing]:
    """The candidates by their means, the best first; those with most splits first. `values` by name and split.

    Draws within a split are averaged first.

    Examples:
        >>> from scenarios.scores.tasks import ACCURACY
        >>> found = standings({"a": {0: [0.8, 0.9]}, "b": {0: [0.7, 0.7], 1: [0.9]}}, ACCURACY)
        >>> [(one.name, round(one.mean, 2), one.splits) for one in found]
        [('b', 0.8, 2), ('a', 0.85, 1)]
    """
    means = {name: {split: float(np.mean(draws)) for split, draws in found.items()} for name, found in values.items()}
    sign = -1 if metric.higher_is_better else 1
    order = sorted(means, key=lambda name: (-len(means[name]), sign * fmean(means[name].values())))
    found = []
    for name in order:
        common = sorted(means[name].keys() & means[order[0]].keys())
        differences = [sign * (means[name][split] - means[order[0]][split]) for split in common]
        own = interval(differences) if name != order[0] else None
        found.append(Standing(name, fmean(means[name].values()), len(means[name]), fmean(differences), own))
    return found


def interval(differences: Sequence[float]) -> tuple[float, float] | None:
    """A t-interval at 95 % of the mean of differences; None of fewer than three.

    Examples:
        >>> interval([0.1, 0.2]), [round(end, 3) for end in interval([0.1, 0.2, 0.3])]
        (None, [-0.048, 0.448])
    """
    if len(differences) < LEAST_FOR_INTERVAL:
        return None
    from scipy.stats import t

    mean, error = float(np.mean(differences)), float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    reach = float(t.ppf((1 + _LEVEL) / 2, len(differences) - 1)) * error
    return mean - reach, mean + reach


def better_half(values: Mapping[str, float], first: str, metric: Metric) -> list[str]:
    """The names that go on: the better half of them, at least two, and always the `first` by public numbers.

    Examples:
        >>> from scenarios.scores.tasks import MSE
        >>> better_half({"a": 4.0, "b": 1.0, "c": 2.0, "d": 3.0}, "a", MSE)
        ['b', 'c', 'a']
    """
    order = sorted(values, key=lambda name: -values[name] if metric.higher_is_better else values[name])
    kept = order[: max(2, math.ceil(len(order) / 2))]
    return kept if first in kept or first not in values else [*kept, first]


def choice(found: Sequence[Standing], first: str, metric: Metric) -> str:
    """The best, or the first by public numbers where it is hardly behind: a tie goes to what tells nothing.

    Examples:
        >>> from scenarios.scores.tasks import ACCURACY
        >>> near = [Standing("a", 0.85, 3, 0.0, None), Standing("b", 0.845, 3, 0.005, None)]
        >>> choice(near, "b", ACCURACY), choice(near, "c", ACCURACY)
        ('b', 'a')
    """
    own = next((one for one in found if one.name == first), None)
    if own is None:
        return found[0].name
    allowed = _TIES if metric.bounds[1] < math.inf else _TIES_OF_ERRORS * abs(found[0].mean)
    return first if own.behind <= allowed and own.splits == found[0].splits else found[0].name


def verdict(
    best: Mapping[int, Sequence[float]],
    constant: Mapping[int, float],
    pooled: Mapping[int, float],
    metric: Metric,
    balanced: float | None,
) -> Verdict:
    """What the best is worth; all by split. `balanced` is its balanced accuracy where there are two classes.

    It is as the constant answer where it is less than a standard error above it, or tells the classes apart by chance.

    Examples:
        >>> from scenarios.scores.tasks import ACCURACY
        >>> verdict({0: [0.8], 1: [0.82]}, {0: 0.6, 1: 0.6}, {0: 0.9, 1: 0.9}, ACCURACY, 0.8)
        Verdict(finding='useful', best=0.81, constant=0.6, pooled=0.9, kept=0.7)
    """
    sign = 1 if metric.higher_is_better else -1
    common = sorted(best.keys() & constant.keys())
    gains = [sign * (float(np.mean(best[split])) - constant[split]) for split in common]
    spread: Sequence[float] = gains if len(gains) > 1 else [sign * value for value in best[common[0]]]
    error = float(np.std(spread, ddof=1)) / math.sqrt(len(spread)) if len(spread) > 1 else 0.0
    gain = float(np.mean(gains))
    finding: Useful = "useful"
    if gain < -error:
        finding = "below the constant"
    elif gain <= error or (balanced is not None and balanced < _CHANCE):
        finding = "as the constant"
    most = sign * (fmean(pooled.values()) - fmean(constant.values()))
    means = (float(np.mean([np.mean(best[split]) for split in common])), fmean(constant.values()))
    return Verdict(finding, *means, fmean(pooled.values()), gain / most if most > 0 else None)
