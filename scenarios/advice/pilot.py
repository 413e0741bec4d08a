"""The pilot: candidates tried on rows at hand, the worse half left out again and again, until the time is over."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import numpy as np

from aggregator.advice import Ranked, contenders
from aggregator.contract.protocol import Metric
from federation.contract.errors import InputError
from scenarios.advice.measuring import Bench, Deadline, OutOfTimeError, Values
from scenarios.advice.standings import Standing, Verdict, better_half, choice, standings, verdict
from scenarios.advice.subject import Subject
from scenarios.advice.words import named
from scenarios.settings.protocol_options import CONSTANT, NOISE_FREE, POOLED
from scenarios.settings.protocol_options import task as task_of

MOST_CANDIDATES, FEW, DRAWS, SPLITS = 12, 3, 24, 5  # few draws of noise at first, then all
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)  # at which an accuracy is looked for
FACTOR = 1.5  # either side of the epsilon that is found: 81 % of 245 cases of whole parties lay within
_REFERENCES = (CONSTANT, POOLED)
_WARMER = 1.2  # later measurements take about so much of what they are expected to


@dataclass
class Pilot:
    """What a pilot has found so far; `left_out` says what there was no time for.

    Values are by candidate (or reference) and split, in the order of the ranking.
    """

    metric: Metric
    ranked: dict[str, Ranked]
    values: dict[str, dict[int, Values]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def first(self) -> str:
        """The first by public numbers."""
        return next(iter(self.ranked))

    @property
    def tried(self) -> dict[str, dict[int, tuple[float, ...]]]:
        """The values of the candidates by split."""
        return {
            name: {split: found.values for split, found in self.values[name].items()}
            for name in self.ranked
            if self.values.get(name)
        }

    def standings(self) -> list[Standing]:
        """How the candidates stand; none where there was no time for any."""
        return standings(self.tried, self.metric)

    @property
    def finalists(self) -> list[Ranked]:
        """The choice, and the best of the others."""
        found = self.standings()
        if not found:
            return list(self.ranked.values())[:2]
        chosen = choice(found, self.first, self.metric)
        others = [one.name for one in found if one.name != chosen]
        return [self.ranked[name] for name in (chosen, *others[:1])]

    def reference(self, kind: str) -> dict[int, float]:
        """The values of a reference by split."""
        return {split: found.mean for split, found in self.values.get(kind, {}).items()}

    def verdict(self) -> Verdict | None:
        """What the choice is worth; None where it, the constant answer or the pooled rows were not tried."""
        chosen = named(self.finalists[0])
        tried = self.tried.get(chosen, {})
        constant, pooled = self.reference(CONSTANT), self.reference(POOLED)
        if not (tried.keys() & constant.keys()) or not pooled:
            return None
        balanced = [found.balanced for found in self.values[chosen].values() if found.balanced is not None]
        two = self.metric.name == "accuracy" and balanced
        return verdict(tried, constant, pooled, self.metric, float(np.mean(balanced)) if two else None)


def pilot(
    subject: Subject,
    ranked: Sequence[Ranked],
    until: Deadline,
    file: Path | None,
    private: bool,
    told: Callable[[str], None] = lambda _: None,
) -> Pilot:
    """Try candidates on the rows of a subject until the time is over; what was tried by then is what there is.

    Of protocols that differ in whom they trust only the least noisy ones are tried. One split and few draws of each;
    the better half with all draws, or as many as their share of half the time allows; then further splits while there
    is time, halving after each. The first by public numbers always stays. `file` keeps every value, and is read first.
    `private` says that the rows are. An interruption ends it as the time does. Raises `InputError` for data that
    cannot be used.
    """
    if not ranked:
        raise InputError("there is no protocol to try: nothing keeps this wish")
    ranked = contenders(ranked)
    metric, bench = _bench(subject, ranked[0], file, private)
    found = Pilot(metric, {named(one): one for one in ranked[:MOST_CANDIDATES]})
    found.left_out += [f"{named(one)} (beyond the first {MOST_CANDIDATES})" for one in ranked[MOST_CANDIDATES:]]
    epsilon = subject.wish.epsilon
    costs: dict[str, float] = {}

    def tried(names: Sequence[str], split: int, draws: Mapping[str, int]) -> bool:
        """Whether there was time for all of them."""
        for place, name in enumerate(names):
            expected = costs.get(name, 0.0) * _WARMER
            left_out = f"{', '.join(names[place:])} on split {split + 1} with {draws[name]} draws"
            if expected > until.left:
                found.left_out.append(left_out)
                return False
            told(f"split {split + 1}: {name}")
            references = [{"kind": kind} for kind in _references(found, name, split)]
            entries = [found.ranked[name].entry, *references]
            before = until.left
            try:
                values = bench.measured(entries, split, draws[name], [epsilon], until)
            except (OutOfTimeError, KeyboardInterrupt) as stopped:
                found.interrupted = isinstance(stopped, KeyboardInterrupt)
                found.left_out.append(left_out)
                return False
            costs[name] = max(costs.get(name, 0.0), before - until.left)
            if not any(position == 0 for position, _ in values):
                found.left_out.append(f"{name} (it failed on these rows)")
            for (position, _), value in values.items():
                kind = name if position == 0 else references[position - 1]["kind"]
                found.values.setdefault(kind, {})[split] = value
        return True

    names = list(found.ranked)
    if not tried(names, 0, dict.fromkeys(names, FEW)):
        return found
    alive = _going_on(found, names)
    share = until.left / 2 / len(alive)
    draws = {name: affordable_draws(costs.get(name, 0.0), share) for name in alive}
    if not tried(alive, 0, draws):
        return found
    for split in range(1, SPLITS):
        alive = _going_on(found, alive)
        if not tried(alive, split, draws):
            break
    return found


def affordable_draws(seconds: float, share: float) -> int:
    """How many draws of noise fit into a share of the time, where `FEW` took so many seconds with all around them.

    Where noise is cheap beside training that is too few, and where every draw is an exchange it is not.

    Examples:
        >>> affordable_draws(1.0, 60.0), affordable_draws(10.0, 20.0), affordable_draws(10.0, 1.0)
        (24, 6, 3)
    """
    if seconds * DRAWS <= share * FEW:
        return DRAWS
    return max(FEW, int(share * FEW / seconds))


def needed_epsilon(
    subject: Subject, ranked: Sequence[Ranked], accuracy: float, until: Deadline, file: Path | None, private: bool
) -> Needed:
    """At which epsilon the better of the first two reaches an accuracy: on as many splits as there is time for.

    What pooled rows reach is measured on all splits, so that curves of few are read as if these were as hard as all.
    Raises `OutOfTimeError` where there was no time for one, and `InputError`s.
    """
    _, bench = _bench(subject, ranked[0], file, private)
    beside = [{"kind": kind} for kind in _REFERENCES]
    curves: dict[str, dict[int, dict[float, float]]] = {}
    references: dict[str, dict[int, float]] = {}
    for split in range(SPLITS):
        found = bench.measured(beside, split, 1, EPSILONS, until)
        for (position, _), value in found.items():
            references.setdefault(beside[position]["kind"], {})[split] = value.mean
    for split in range(SPLITS):
        before = until.left
        try:
            for one in ranked[:2]:
                for (_, epsilon), value in bench.measured([one.entry], split, DRAWS, EPSILONS, until).items():
                    curves.setdefault(named(one), {}).setdefault(split, {})[epsilon] = value.mean
        except OutOfTimeError:
            if not split:
                raise
        if (before - until.left) * _WARMER > until.left:
            break
    pooled = references.get(POOLED, {})
    means = {name: levelled(found, pooled) for name, found in curves.items()}
    known = {kind: fmean(found.values()) for kind, found in references.items()}
    return Needed(accuracy, means, known.get(POOLED), known.get(CONSTANT))


def levelled(curves: Mapping[int, Mapping[float, float]], pooled: Mapping[int, float]) -> dict[float, float]:
    """The mean over splits of curves by epsilon, moved by how much better pooled rows are on all splits than on these.

    Examples:
        >>> {epsilon: round(value, 2) for epsilon, value in levelled({0: {1.0: 0.7}}, {0: 0.8, 1: 0.9}).items()}
        {1.0: 0.75}
    """
    here = [pooled[split] for split in curves if split in pooled]
    moved = fmean(pooled.values()) - fmean(here) if here else 0.0
    by_epsilon: dict[float, list[float]] = {}
    for curve in curves.values():
        for epsilon, value in curve.items():
            by_epsilon.setdefault(epsilon, []).append(value)
    return {epsilon: fmean(values) + moved for epsilon, values in by_epsilon.items()}


@dataclass(frozen=True)
class Needed:
    """The accuracy that is wanted, what each protocol had at every epsilon, and what the references have."""

    accuracy: float
    curves: Mapping[str, Mapping[float, float]]
    pooled: float | None
    constant: float | None

    @property
    def best(self) -> tuple[str, float] | None:
        """The protocol that reaches it first, and its epsilon; None where none does."""
        found = {name: crossing(curve, self.accuracy) for name, curve in self.curves.items()}
        reached = {name: epsilon for name, epsilon in found.items() if epsilon is not None}
        return min(reached.items(), key=lambda one: one[1]) if reached else None


def crossing(curve: Mapping[float, float], wanted: float) -> float | None:
    """The epsilon at which a curve reaches what is wanted: increasing after isotonic regression, linear in log epsilon.

    The least epsilon where that has it already; None where the largest has not.

    Examples:
        >>> round(crossing({0.1: 0.5, 1.0: 0.7, 10.0: 0.9}, 0.8), 2), crossing({0.1: 0.5, 1.0: 0.4}, 0.5)
        (3.16, None)
    """
    from sklearn.isotonic import isotonic_regression

    epsilons = sorted(curve)
    if not epsilons:
        return None
    values = isotonic_regression([curve[epsilon] for epsilon in epsilons])
    if values[-1] < wanted:
        return None
    if values[0] >= wanted:
        return epsilons[0]
    place = int(np.argmax(values >= wanted))
    low, high = (math.log(epsilons[i]) for i in (place - 1, place))
    share = (wanted - values[place - 1]) / (values[place] - values[place - 1])
    return math.exp(low + share * (high - low))


def _references(found: Pilot, name: str, split: int) -> list[str]:
    """What is measured beside the first candidate of a split: the references, once."""
    wanted = [kind for kind in _REFERENCES if split not in found.values.get(kind, {})]
    return [*wanted, NOISE_FREE] if wanted else []


def _going_on(found: Pilot, names: Sequence[str]) -> list[str]:
    """The better half of those that were tried, by means over their splits."""
    means = {
        name: float(np.mean([value.mean for value in found.values[name].values()]))
        for name in names
        if found.values.get(name)
    }
    return better_half(means, found.first, found.metric) if means else list(names)[:1]


def _bench(subject: Subject, first: Ranked, file: Path | None, private: bool) -> tuple[Metric, Bench]:
    """By which metric candidates are compared, and what runs them on the settings that a scenario of the first has."""
    metric = task_of([first.kind]).metric
    return metric, Bench(subject.settings(first.entry), subject.data_dir, metric.name, file, private)
