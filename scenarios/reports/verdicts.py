"""What a release is worth: whether it beats the constant answer, and how much of the gain of pooled rows it keeps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from scenarios.reports.readings import leaders, listed
from scenarios.reports.summary import Spread, VariantSummary, student_interval, summarise
from scenarios.scores.metrics import CONSTANT_CLASS, heading, metric_named, primary, shown
from scenarios.scores.results import Row
from scenarios.scores.tasks import ACCURACY, L1, MSE
from scenarios.settings.protocol_options import BASELINES, CONSTANT, INDIVIDUAL, POOLED

Finding = Literal["useful", "no better", "cannot be told"]

_LEAST_KEPT = 0.1  # of the gain of pooled rows: what keeps less is not worth the effort
_LITTLE_KEPT = 0.25  # what surely keeps less than this, and may keep nothing, is no better
_NOTICED = 0.02  # of what the constant answer has, or of 1 for shares: a smaller gain nobody notices
_LITTLE = 0.05  # the same: what surely gains less, and may gain nothing, is no better
_SURE = 0.9  # of releases are better than the constant answer, where one can count on it: only one is made
_RANKING = 0.6  # an AUC from which rows are ordered, wherever the line between classes lies


@dataclass(frozen=True)
class Verdict:
    """What releases of a variant in one setting at one epsilon are worth, by the mean of a metric over splits.

    `gain` is by how much they are better than the constant answer, in the metric's units, with a 95 % interval of
    splits as pairs (None with one split). `kept` is its share of what all rows `pooled` gain, None where they
    gain nothing; `surely` is the share of single releases that are better. `constant`, `pooled` and `individual` are
    means of the baselines, None where they were not run.
    """

    variant: str
    setting: str
    epsilon: float
    metric: str
    finding: Finding
    mean: float
    gain: float
    interval: tuple[float, float] | None
    kept: float | None
    surely: float
    constant: float
    pooled: float | None
    individual: float | None
    splits: int
    remarks: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "epsilon": None if math.isinf(self.epsilon) else self.epsilon}


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """One for every epsilon and setting of the default variant, or of the first with a guarantee.

    By accuracy where classes are about even, else by balanced accuracy; by the error that the task is scored by. None
    where the constant answer was not run. A release is

    - `useful` where it is surely better than the constant answer in the mean, by .02 or more and a tenth of what pooled
      rows gain, and nine of ten single releases are: whoever uses it makes one;
    - `no better` where it is surely better and not useful, where its gain is surely less than .05 or a quarter of what
      pooled rows gain, or where these gain nothing either;
    - else it `cannot be told`, as with one split.

    "Surely" is by the interval; .02 and .05 are shares of the constant answer's error where the metric is an error.
    """
    metric, found = primary(rows).name, summarise(rows)
    by_accuracy = {(one.variant, one.place): one for one in summarise(rows, ACCURACY.name)}
    by_auc = {(one.variant, one.place): one for one in summarise(rows, "auc")}
    told = []
    for leading in leaders(found):
        beside = {one.protocol: next(iter(one.by_epsilon.values())) for one in found if one.place == leading.place}
        if leading.protocol in BASELINES or CONSTANT not in beside:
            continue
        place = leading.place
        accuracy = by_accuracy.get((leading.variant, place)) if metric != ACCURACY.name else None
        always = by_accuracy.get((CONSTANT, place))
        auc = by_auc.get((leading.variant, place))
        for aim, spread in leading.by_epsilon.items():
            if beside[CONSTANT].by_split.keys().isdisjoint(spread.by_split):
                continue  # neither was finished where the other was
            verdict = _verdict(leading, aim, spread, metric, beside)
            remarks = [*_beside_baselines(verdict, spread, beside)]
            if accuracy is not None and always is not None and verdict.finding == "useful":
                remarks += _below(accuracy.by_epsilon[aim].mean, next(iter(always.by_epsilon.values())).mean)
            if auc is not None and verdict.finding != "useful":
                remarks += _ranking(auc.by_epsilon[aim])
            told.append(Verdict(**{**vars(verdict), "remarks": tuple(remarks)}))
    return told


def _verdict(leading: VariantSummary, aim: float, spread: Spread, metric: str, beside: dict[str, Spread]) -> Verdict:
    constant, pooled = beside[CONSTANT], beside.get(POOLED)
    gains = _gains(spread, constant, metric)
    gain, interval = _mean(gains), _interval(gains)
    most = None if pooled is None else _mean(_gains(pooled, constant, metric))
    surely = float(np.mean([one > 0 for part in gains for one in part]))
    kept = gain / most if most is not None and most > _least(metric, constant.mean) else None
    return Verdict(
        variant=leading.variant,
        setting=leading.place,
        epsilon=leading.kept(aim),
        metric=metric,
        finding=_finding(gain, interval, most, _least(metric, constant.mean), surely),
        mean=spread.mean,
        gain=gain,
        interval=interval,
        kept=kept,
        surely=surely,
        constant=constant.mean,
        pooled=None if pooled is None else pooled.mean,
        individual=beside[INDIVIDUAL].mean if INDIVIDUAL in beside else None,
        splits=len(gains),
        remarks=(),
    )


def _least(metric: str, constant: float) -> float:
    """A gain that is too small to notice."""
    return _NOTICED * (constant if metric in (MSE.name, L1.name) else 1.0)


def _finding(
    gain: float, interval: tuple[float, float] | None, most: float | None, least: float, surely: float
) -> Finding:
    """By the gain with its interval, that of pooled rows if it is known, and the share of releases that gain."""
    available = most or 0.0
    if interval is not None and interval[0] > 0:
        worth = gain >= max(least, _LEAST_KEPT * available) and surely >= _SURE
        return "useful" if worth else "no better"
    if most is not None and most <= least:
        return "no better"  # there is nothing to be learned that the constant answer has not
    if interval is None:
        return "cannot be told"
    little = least * _LITTLE / _NOTICED
    return "no better" if interval[1] < max(little, _LITTLE_KEPT * available) else "cannot be told"


def _gains(spread: Spread, constant: Spread, metric: str) -> list[list[float]]:
    """By how much each release of each split is better than the split's constant answer."""
    sign = 1 if metric_named(metric).higher_is_better else -1
    return [
        [sign * (value - float(np.mean(constant.by_split[split]))) for value in values]
        for split, values in spread.by_split.items()
        if split in constant.by_split
    ]


def _mean(gains: Sequence[Sequence[float]]) -> float:
    return float(np.mean([np.mean(part) for part in gains]))


def _interval(gains: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    return student_interval([float(np.mean(part)) for part in gains])


def _beside_baselines(found: Verdict, spread: Spread, beside: dict[str, Spread]) -> Iterable[str]:
    """What is to be said beside what pooled rows and single parties reach."""
    metric = metric_named(found.metric)
    if found.finding == "useful" and found.individual is not None and not metric.better(found.mean, found.individual):
        yield f"one party alone has {shown(found.metric, found.individual)}: nobody gains by taking part"
    if found.interval is not None and found.interval[0] > 0 and found.surely < _SURE:
        yield f"better in the mean, but not to be counted on: {100 * found.surely:.0f} % of single releases are better"
    if POOLED in beside:
        ahead = _interval(_gains(spread, beside[POOLED], found.metric))
        if ahead is not None and ahead[0] > 0:
            yield "it is better than all rows pooled: the pooled model does not suit these data, or these features"


def _below(accuracy: float, constant: float) -> Iterable[str]:
    """A release that tells classes apart may be wrong more often than an answer that never does."""
    if accuracy < constant:
        yield (
            f"its accuracy {shown(ACCURACY.name, accuracy)} is below the {shown(ACCURACY.name, constant)} of the "
            "constant answer, which finds nobody of the other classes"
        )


def _ranking(auc: Spread) -> Iterable[str]:
    if auc.interval is not None and auc.interval[0] > _RANKING:
        yield f"it orders rows all the same (AUC {shown('auc', auc.mean)}): move the line between the classes"


def constant_answer(rows: Iterable[Row], classes: Sequence[str]) -> str:
    """What the baseline `constant` does, with the name of the class that it says in most splits, if names are known."""
    metrics = {MSE.name: "always saying the mean label", L1.name: "answering with the class shares of all private rows"}
    said: list[int] = []
    for row in rows:
        if row["metric"] in metrics:
            return metrics[row["metric"]]
        if row["metric"] == CONSTANT_CLASS:
            said.append(int(row["value"]))
    if not said or max(said) >= len(classes):
        return "always saying one class"
    return f"always saying “{classes[max(set(said), key=said.count)]}”"


def told(found: Sequence[Verdict], answer: str) -> list[tuple[Finding, str]]:
    """The verdicts in sentences, one for all epsilons of a setting of which the same is to be said; then remarks.

    `answer` is the `constant_answer`.

    Examples:
        >>> known = dict(variant="soft_vote", setting="", metric="accuracy", interval=None, splits=5, remarks=())
        >>> known |= dict(surely=1.0, constant=0.5, pooled=0.9, individual=0.7)
        >>> found = [
        ...     Verdict(epsilon=1.0, finding="no better", mean=0.51, gain=0.01, kept=0.025, **known),
        ...     Verdict(epsilon=3.0, finding="useful", mean=0.8, gain=0.3, kept=0.75, **known),
        ... ]
        >>> for finding, sentence in told(found, "always saying “no”"):
        ...     print(sentence)
        soft_vote is no better than always saying “no” at ε = 1: accuracy 0.510, that has 0.500
        soft_vote is useful at ε = 3: accuracy 0.800, always saying “no” has 0.500, one party alone 0.700, all rows
        pooled 0.900; 75 % of that gain are kept
    """
    groups: dict[tuple[str, str, Finding], list[Verdict]] = {}
    for one in found:
        groups.setdefault((one.variant, one.setting, one.finding), []).append(one)
    sentences: list[tuple[Finding, str]] = []
    for (variant, setting, finding), members in groups.items():
        place = f"{setting}: " if setting else ""
        sentences.append((finding, f"{place}{variant} {_sentence(finding, members, answer)}"))
        remarks: dict[str, list[Verdict]] = {}
        for one in members:
            for remark in one.remarks:
                remarks.setdefault(remark, []).append(one)
        sentences += [(finding, f"{place}{variant} {_at(alike)}: {remark}") for remark, alike in remarks.items()]
    return sentences


def _sentence(finding: Finding, members: Sequence[Verdict], answer: str) -> str:
    first = members[0]
    name = heading(first.metric).split(" (")[0]
    reached = f"{name} {listed([shown(first.metric, one.mean) for one in members])}"
    constant, where = shown(first.metric, first.constant), _at(members)
    if finding == "no better":
        nothing = "" if first.pooled is None or first.kept is not None else "; nor are all rows pooled"
        return f"is no better than {answer} {where}: {reached}, that has {constant}{nothing}"
    if finding == "useful":
        alone = "" if first.individual is None else f", one party alone {shown(first.metric, first.individual)}"
        beside = f"is useful {where}: {reached}, {answer} has {constant}{alone}"
        if first.pooled is None or first.kept is None:
            return beside
        kept = listed(
            [f"{100 * share:.0f}" if share <= 1 else "more than 100" for share in (one.kept or 0 for one in members)]
        )
        return f"{beside}, all rows pooled {shown(first.metric, first.pooled)}; {kept} % of that gain are kept"
    ends = listed(
        ["unknown" if one.interval is None else " to ".join(f"{end:+.3g}" for end in one.interval) for one in members]
    )
    more = f"{first.splits} split{'' if first.splits == 1 else 's'}; raise trials.splits"
    return (
        f"may be better than {answer} {where} or not, which cannot be told from {more}: {reached}, that has {constant} "
        f"(95 % interval of the difference: {ends})"
    )


def _at(members: Sequence[Verdict]) -> str:
    known = [f"{one.epsilon:g}" for one in members if not math.isinf(one.epsilon)]
    return f"at ε = {listed(known)}" if known else "without noise"
