"""Assessment of a run's releases: useful or not, the kept part of the pooled gain, the losses, and suggestions.

A suggestion is a larger epsilon, more parties, or another variant. All of them follow from the numbers of the run
itself. The assessment contains no guess: it omits what the run has not measured and no accountant can compute from it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from federation.contract.guarantee import Unit
from federation.mechanisms.noise import gaussian
from scenarios.reports.summary import Spread, VariantSummary, student_interval, summarise
from scenarios.reports.tables import leaders, listed
from scenarios.scores.results import BALANCED, Row, metric_named, primary, shown
from scenarios.scores.scoring import ACCURACY, L1, MSE
from scenarios.settings.protocol_options import BASELINES, CONSTANT, INDIVIDUAL, NOISE_FREE, POOLED

Finding = Literal["useful", "no better", "cannot be told"]
Interval = tuple[float, float]
_Beside = Mapping[str, Spread]  # what baselines reach in a setting

_LEAST_KEPT = 0.1  # of the gain of pooled rows: what keeps less is not worth the effort
_LITTLE_KEPT = 0.25  # what surely keeps less than this, and may keep nothing, is no better
_NOTICED = 0.02  # of what the constant answer has, or of 1 for shares: a smaller gain nobody notices
_LITTLE = 0.05  # the same: what surely gains less, and may gain nothing, is no better
_SURE = 0.9  # of releases are better than the constant answer, where one can count on it: only one is made
_RANKING = 0.6  # an AUC from which rows are ordered, wherever the line between classes lies
_OF_MEAN = "noise_to_signal"  # the diagnostic of a release that hides a party by noise on a mean over the parties


@dataclass(frozen=True)
class Lost:
    """What is lost on the way from pooled rows to a release, as shares of what pooled rows gain.

    `to_protocol` is what the protocol has less without noise than pooled rows, below 0 where it is ahead of them;
    `to_noise` what the release has less than that, with all that the noise forces, such as fewer dimensions. Both with
    95 % intervals of splits as pairs, None with one split.
    """

    to_protocol: float
    protocol_interval: Interval | None
    to_noise: float
    noise_interval: Interval | None


@dataclass(frozen=True)
class Ranking:
    """AUC, which leads beside balanced accuracy where classes are uneven: 0.5 is chance. None for what was not run."""

    mean: float
    interval: Interval | None
    pooled: float | None
    individual: float | None
    noise_free: float | None


@dataclass(frozen=True)
class Verdict:
    """What releases of a variant in one setting at one epsilon are worth, by the mean of a metric over splits.

    `gain` is by how much they are better than the constant answer, in the metric's units, with a 95 % interval of
    splits as pairs (None with one split). `kept` is its share of what all rows `pooled` gain, None where they
    gain nothing; `surely` is the share of single releases that are better. `constant`, `pooled`, `individual` and
    `noise_free`, the variant without its noise, are means of the baselines, None where they were not run;
    `without_noise` is the finding on the last. `lost` says to what the rest of the gain goes, where pooled rows gain,
    `remedies` at which epsilon, or with how many parties, a release would be useful or keep half of the gain, `rivals`
    which variants of the run are ahead: the best with a guarantee as good, and one with another guarantee if it is
    better still. `parties_needed` is by public numbers: from so many on the noise is at most a quarter as loud as all
    that they can say (`aggregator.contract.session`); None where that many take part, or no rule is known.
    """

    variant: str
    setting: str
    epsilon: float
    metric: str
    finding: Finding
    mean: float
    gain: float
    interval: Interval | None
    kept: float | None
    surely: float
    constant: float
    pooled: float | None
    individual: float | None
    splits: int
    remarks: tuple[str, ...]
    noise_free: float | None = None
    without_noise: Finding | None = None
    lost: Lost | None = None
    ranking: Ranking | None = None
    remedies: "tuple[Remedy, ...]" = ()
    rivals: "tuple[Rival, ...]" = ()
    parties_needed: int | None = None

    @property
    def doubtful(self) -> bool:
        """Whether releases are surely better in the mean, and too few single ones are to count on it."""
        return self.interval is not None and self.interval[0] > 0 and self.surely < _SURE

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "epsilon": None if math.isinf(self.epsilon) else self.epsilon}


@dataclass(frozen=True)
class Known:
    """What a run says beside its rows, as far as it is known.

    Which variant `noise_free` stands for, the declared parties by setting, the adjacency of each variant's guarantee,
    and the parties `needed` by setting, variant and epsilon (`aggregator.contract.session`).
    """

    noise_free_of: str | None = None
    parties: Mapping[str, int] = field(default_factory=dict)
    adjacencies: Mapping[str, str] = field(default_factory=dict)
    needed: Mapping[tuple[str, str, float], int] = field(default_factory=dict)


def verdicts(rows: Sequence[Row], known: Known = Known()) -> list[Verdict]:
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
    aucs = summarise(rows, "auc") if metric == BALANCED else []
    accuracies = summarise(rows, ACCURACY.name) if metric == BALANCED else []
    of_mean = {row["variant"] for row in rows if row["metric"] == _OF_MEAN and row["unit"] == Unit.PARTY.value}
    told: list[Verdict] = []
    for leading in leaders(found):
        place = leading.place
        beside = _beside(found, place)
        if leading.protocol in BASELINES or CONSTANT not in beside:
            continue
        if known.noise_free_of not in (None, leading.variant):
            beside.pop(NOISE_FREE, None)
        made: dict[float, Verdict] = {}
        for aim, spread in leading.by_epsilon.items():
            if beside[CONSTANT].by_split.keys().isdisjoint(spread.by_split):
                continue  # neither was finished where the other was
            verdict = _verdict(leading, aim, spread, metric, beside)
            rivals = _rivals(leading, aim, [one for one in found if one.place == place], known.adjacencies)
            ranking = _ranking(leading.variant, aim, aucs, place)
            remarks = [*_beside_baselines(verdict, spread, beside)]
            remarks += _of_classes(verdict, aim, accuracies, place, ranking)
            needed = known.needed.get((place, leading.variant, aim))
            made[aim] = replace(
                verdict, ranking=ranking, rivals=tuple(rivals), remarks=tuple(remarks), parties_needed=needed
            )
        curve = {one.epsilon: Point(one.finding == "useful", one.kept) for one in made.values()}
        parties, averaged = known.parties.get(place), leading.variant in of_mean
        for one in made.values():
            helping = remedies(curve, one.epsilon, parties=parties, delta=leading.delta, of_mean=averaged)
            told.append(replace(one, remedies=tuple(helping)))
    return told


def _beside(found: Iterable[VariantSummary], place: str) -> dict[str, Spread]:
    """What each protocol and baseline reaches in a setting, a protocol where it aims lowest."""
    return {one.protocol: next(iter(one.by_epsilon.values())) for one in found if one.place == place}


def _verdict(leading: VariantSummary, aim: float, spread: Spread, metric: str, beside: _Beside) -> Verdict:
    constant, pooled, free = beside[CONSTANT], beside.get(POOLED), beside.get(NOISE_FREE)
    least = _least(metric, constant.mean)
    gains = _gains(spread, constant, metric)
    gain = _mean(gains)
    most = None if pooled is None else _mean(_gains(pooled, constant, metric))
    available = most if most is not None and most > least else None
    lost = None if available is None else _lost(spread, beside, metric, available)
    return Verdict(
        variant=leading.variant,
        setting=leading.place,
        epsilon=leading.kept(aim),
        metric=metric,
        finding=_finding(gains, most, least),
        mean=spread.mean,
        gain=gain,
        interval=_interval(gains),
        kept=None if available is None else gain / available,
        surely=_surely(gains),
        constant=constant.mean,
        pooled=None if pooled is None else pooled.mean,
        individual=beside[INDIVIDUAL].mean if INDIVIDUAL in beside else None,
        splits=len(gains),
        remarks=(),
        noise_free=None if free is None else free.mean,
        without_noise=None if free is None else _finding(_gains(free, constant, metric), most, least),
        lost=lost,
    )


def _lost(spread: Spread, beside: _Beside, metric: str, available: float) -> Lost | None:
    """By protocol and noise, of what pooled rows gain; None without the reference in the splits of both."""
    if NOISE_FREE not in beside:
        return None
    free = beside[NOISE_FREE]
    protocol = _gains(beside[POOLED], free, metric)
    noise = _gains(free, spread, metric)
    if not protocol or not noise:
        return None
    by_protocol, by_noise = ([[one / available for one in part] for part in parts] for parts in (protocol, noise))
    return Lost(_mean(by_protocol), _interval(by_protocol), _mean(by_noise), _interval(by_noise))


def _least(metric: str, constant: float) -> float:
    """A gain that is too small to notice."""
    return _NOTICED * (constant if metric in (MSE.name, L1.name) else 1.0)


def _finding(gains: Sequence[Sequence[float]], most: float | None, least: float) -> Finding:
    """By the gains with their interval, what pooled rows gain if it is known, and how many of the releases gain."""
    if not gains:
        return "cannot be told"
    gain, interval, available = _mean(gains), _interval(gains), most or 0.0
    if interval is not None and interval[0] > 0:
        worth = gain >= max(least, _LEAST_KEPT * available) and _surely(gains) >= _SURE
        return "useful" if worth else "no better"
    if most is not None and most <= least:
        return "no better"  # there is nothing to be learned that the constant answer has not
    if interval is None:
        return "cannot be told"
    little = least * _LITTLE / _NOTICED
    return "no better" if interval[1] < max(little, _LITTLE_KEPT * available) else "cannot be told"


def _gains(spread: Spread, other: Spread, metric: str) -> list[list[float]]:
    """By how much each release of each split is better than the mean of another's in the split."""
    sign = 1 if metric_named(metric).higher_is_better else -1
    return [
        [sign * (value - float(np.mean(other.by_split[split]))) for value in values]
        for split, values in spread.by_split.items()
        if split in other.by_split
    ]


def _mean(gains: Sequence[Sequence[float]]) -> float:
    return float(np.mean([np.mean(part) for part in gains]))


def _surely(gains: Sequence[Sequence[float]]) -> float:
    return float(np.mean([one > 0 for part in gains for one in part]))


def _interval(gains: Sequence[Sequence[float]]) -> Interval | None:
    return student_interval([float(np.mean(part)) for part in gains])


def _rivals(
    leading: VariantSummary, aim: float, found: Sequence[VariantSummary], adjacencies: Mapping[str, str]
) -> "list[Rival]":
    """The best private variant that is surely ahead with a guarantee as good, and one with another if better still."""
    metric, spread = metric_named(leading.metric), leading.by_epsilon[aim]
    ahead = []
    for other in found:
        at = None if other.non_private or other is leading else other.by_epsilon.get(aim)
        interval = None if at is None else _interval(_gains(at, spread, leading.metric))
        if at is None or interval is None or interval[0] <= 0 or other.kept(aim) > leading.kept(aim):
            continue
        differs = _differs(other, leading, adjacencies)
        ahead.append(Rival(other.variant, at.mean, interval, other.delta, other.unit, differs))
    ahead.sort(key=lambda one: one.mean, reverse=metric.higher_is_better)
    as_good = next((one for one in ahead if not one.differs), None)
    best = ahead[0] if ahead and ahead[0] is not as_good else None
    return [one for one in (as_good, best) if one is not None]


def _differs(other: VariantSummary, leading: VariantSummary, adjacencies: Mapping[str, str]) -> tuple[str, ...]:
    """What another guarantee at the same epsilon has that the leading one has not."""
    differing = {
        "delta": other.delta > leading.delta,
        "unit": other.unit != leading.unit,
        "adjacency": adjacencies.get(other.variant) != adjacencies.get(leading.variant),
    }
    return tuple(name for name, found in differing.items() if found)


def _ranking(variant: str, aim: float, aucs: Sequence[VariantSummary], place: str) -> Ranking | None:
    own = next((one for one in aucs if one.variant == variant and one.place == place), None)
    if own is None or aim not in own.by_epsilon:
        return None
    beside = {name: spread.mean for name, spread in _beside(aucs, place).items()}
    spread = own.by_epsilon[aim]
    return Ranking(spread.mean, spread.interval, *(beside.get(name) for name in (POOLED, INDIVIDUAL, NOISE_FREE)))


def _beside_baselines(found: Verdict, spread: Spread, beside: _Beside) -> Iterable[str]:
    """What is to be said beside what pooled rows, single parties and the protocol without noise reach."""
    metric = metric_named(found.metric)
    if found.finding == "useful" and found.individual is not None and not metric.better(found.mean, found.individual):
        yield f"one party alone has {shown(found.metric, found.individual)}, so that nobody gains by taking part"
    if found.doubtful:
        yield f"better in the mean, but not to be counted on: {100 * found.surely:.0f} % of single releases are better"
    if POOLED in beside:
        ahead = _interval(_gains(spread, beside[POOLED], found.metric))
        if ahead is not None and ahead[0] > 0:
            yield "it is better than all rows pooled: the pooled model does not suit these data, or these features"


def _of_classes(
    found: Verdict, aim: float, accuracies: Sequence[VariantSummary], place: str, ranking: Ranking | None
) -> Iterable[str]:
    """A release that tells classes apart may be wrong more often than an answer that never does, or order rows only."""
    by_variant = {one.variant: one for one in accuracies if one.place == place}
    if found.finding != "useful":
        if ranking is not None and ranking.interval is not None and ranking.interval[0] > _RANKING:
            yield f"it orders rows all the same (AUC {shown('auc', ranking.mean)}): move the line between the classes"
        return
    if found.variant in by_variant and CONSTANT in by_variant:
        own = by_variant[found.variant].by_epsilon[aim].mean
        always = next(iter(by_variant[CONSTANT].by_epsilon.values())).mean
        if own < always:
            yield (
                f"its accuracy {shown(ACCURACY.name, own)} is below the {shown(ACCURACY.name, always)} of the "
                "constant answer, which finds nobody of the other classes"
            )


Goal = Literal["useful", "half"]

_HALF = 0.5
_SLACK = 1e-9  # for what is half but for rounding


@dataclass(frozen=True)
class Point:
    """One epsilon of a curve: whether releases are useful there, and the share of the pooled gain that they keep."""

    useful: bool
    kept: float | None

    def misses(self) -> list[Goal]:
        """To be useful, and to keep half of what pooled rows gain, as far as it is known."""
        half: list[Goal] = [] if self.kept is None or self.reaches("half") else ["half"]
        return half if self.useful else ["useful", *half]

    def reaches(self, goal: Goal) -> bool:
        """Whether a goal is met for certain."""
        return self.useful if goal == "useful" else self.kept is not None and self.kept >= _HALF - _SLACK


@dataclass(frozen=True)
class Remedy:
    """What would reach a goal: `epsilon` in place of the release's own, or at that so many times the parties.

    The goal is met at all epsilons of the run from `between[1]` on and not at `between[0]`, the next smaller one. To be
    useful `epsilon` is the former, as usefulness does not come by degrees; for half of the pooled gain it is
    interpolated, the gain being taken for linear in log epsilon between the two. `times` is how many times the parties
    it takes for noise as faint as `epsilon` has it, rows and parties being like those of the run, and `parties` how
    many that are; None where noise is not the aggregator's on a mean of the parties, or their number is not given.
    """

    goal: Goal
    epsilon: float
    between: tuple[float, float]
    times: float | None
    parties: int | None


@dataclass(frozen=True)
class Rival:
    """A private variant of the run that is ahead at an epsilon, by `ahead` (95 % interval of splits as pairs).

    `differs` names what its guarantee has another of: a larger `delta`, another `unit`, another `adjacency`; empty
    where it is as good.
    """

    variant: str
    mean: float
    ahead: tuple[float, float]
    delta: float
    unit: str
    differs: tuple[str, ...]


def remedies(
    curve: Mapping[float, Point], epsilon: float, *, parties: int | None, delta: float, of_mean: bool
) -> list[Remedy]:
    """For each goal that is missed at an epsilon of the curve the smallest epsilon that reaches it and stays there.

    None for a goal that the largest epsilon does not reach. `of_mean`: the aggregator's noise is on a mean over the
    declared parties. Pure noise (`delta` 0) is then as faint with K parties at epsilon e as with K e' / e at e', for
    what one party moves goes as 1 / K and noise as 1 / e; Gaussian noise goes as 1 / mu(e, delta) (`gaussian.mu`).

    Examples:
        >>> curve = {1.0: Point(False, 0.1), 3.0: Point(True, 0.3), 10.0: Point(True, 0.7)}
        >>> for one in remedies(curve, 1.0, parties=50, delta=0.0, of_mean=True):
        ...     print(one.goal, round(one.epsilon, 2), one.between, one.parties)
        useful 3.0 (1.0, 3.0) 150
        half 5.48 (3.0, 10.0) 274
    """
    found = []
    for goal in curve[epsilon].misses():
        beyond = [other for other in sorted(curve) if other >= epsilon and not curve[other].reaches(goal)]
        reached = [other for other in sorted(curve) if other > beyond[-1]]
        if not reached:
            continue
        low, high = beyond[-1], reached[0]
        wanted = high if goal == "useful" else _crossing(low, high, curve[low].kept, curve[high].kept)
        times = _strength(wanted, delta) / _strength(epsilon, delta) if of_mean else None
        count = None if times is None or parties is None else math.ceil(parties * times * (1 - 1e-12))
        found.append(Remedy(goal, wanted, (low, high), times, count))
    return found


def _crossing(low: float, high: float, below: float | None, above: float | None) -> float:
    """Where half is kept between two epsilons; the larger one where it is not known what the smaller one keeps."""
    if below is None or above is None:
        return high
    share = (_HALF - below) / (above - below)
    return math.exp(math.log(low) + share * (math.log(high) - math.log(low)))


def _strength(epsilon: float, delta: float) -> float:
    """What noise at fixed sensitivity is inverse to: epsilon, or the mu of Gaussian noise."""
    return epsilon if delta == 0 else gaussian.mu(epsilon, delta)


def in_words(wanted: Sequence[tuple[float, Remedy]], goal: Goal) -> str:
    """What to do about a goal, of remedies with the epsilon that each is for.

    Examples:
        >>> in_words([(1.0, Remedy("useful", 3.0, (1.0, 3.0), 3.0, 150))], "useful")
        'useful from ε = 3 on, not yet at 1; or at ε = 1 with at most about 150 parties like those of this run'
        >>> in_words([(3.0, Remedy("half", 5.48, (3.0, 10.0), None, None))], "half")
        'half of the pooled gain from about ε = 5.5 on, between 3 and 10'
    """
    first = wanted[0][1]
    low, high = first.between
    if goal == "useful":
        text = f"useful from ε = {high:g} on, not yet at {low:g}"
    else:
        text = f"half of the pooled gain from about ε = {first.epsilon:.2g} on, between {low:g} and {high:g}"
    more = [(epsilon, one) for epsilon, one in wanted if one.times is not None]
    if not more:
        return text
    most = "at most " if goal == "useful" else ""
    at = listed([f"{epsilon:g}" for epsilon, _ in more])
    if all(one.parties is not None for _, one in more):
        many = listed([str(rounded(one.parties or 0)) for _, one in more])
        return f"{text}; or at ε = {at} with {most}about {many} parties like those of this run"
    many = listed([f"{one.times:.2g}" for _, one in more])
    return f"{text}; or at ε = {at} with {most}about {many} times as many parties like those of this run"


def rounded(count: int) -> int:
    """A number of parties in two digits, upwards.

    Examples:
        >>> rounded(274), rounded(12)
        (280, 12)
    """
    unit = int(10 ** max(0, len(str(count)) - 2))
    return -(-count // unit) * unit
