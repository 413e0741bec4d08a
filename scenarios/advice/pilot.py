"""The pilot of `federation advise`: it tries candidates on available rows and drops the worse half until time is over.

The module also prints the pilot's results. Every number that comes from private rows is marked as such.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from aggregator.advice import Ranked, contenders
from aggregator.contract.protocol import Metric
from federation.contract.errors import InputError
from scenarios.advice.pilot_runs import (
    NON_PRIVATE,
    Bench,
    Deadline,
    OutOfTimeError,
    Standing,
    Values,
    Verdict,
    better_half,
    choice,
    standings,
    verdict,
)
from scenarios.advice.target import Subject
from scenarios.advice.texts import named
from scenarios.scores.results import shown
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
            references = [{"kind": kind} for kind in _references(found, split)]
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
) -> "Needed":
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


def _references(found: Pilot, split: int) -> list[str]:
    """Return the baselines to measure beside the first candidate of a split, once."""
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


MARK = " [NON-PRIVATE]"
AGAINST = "against the best (95 %)"
_LOST = 0.1  # of the pooled gain: more is worth a word


def record(found: Pilot, private: bool, seconds: float) -> dict[str, Any]:
    """All that a pilot found, as JSON has it."""
    verdict = found.verdict()
    references = {kind: found.reference(kind) for kind in (CONSTANT, POOLED, NOISE_FREE)}
    return {
        "non_private": private,
        "note": NON_PRIVATE if private else "",
        "metric": found.metric.name,
        "seconds": round(seconds, 1),
        "standings": [
            {
                "variant": one.name,
                "mean": one.mean,
                "splits": one.splits,
                "behind": one.behind,
                "interval": None if one.interval is None else list(one.interval),
            }
            for one in found.standings()
        ],
        "references": {kind: fmean(values.values()) for kind, values in references.items() if values},
        "verdict": None if verdict is None else verdict.finding,
        "kept": None if verdict is None else verdict.kept,
        "chosen": named(found.finalists[0]),
        "left_out": list(found.left_out),
        "interrupted": found.interrupted,
    }


def rows(found: Pilot, private: bool) -> list[dict[str, str]]:
    """The table of a pilot, references last."""
    metric, mark = found.metric, MARK if private else ""
    table = [
        {
            "variant": one.name,
            metric.label: shown(metric.name, one.mean),
            "splits": str(one.splits),
            AGAINST: _against(one, metric),
        }
        for one in found.standings()
    ]
    for kind in (POOLED, NOISE_FREE, CONSTANT):
        if values := found.reference(kind):
            label = f"{kind.replace('_', ' ')}{mark}"
            value = shown(metric.name, fmean(values.values()))
            table.append({"variant": label, metric.label: value, "splits": str(len(values)), AGAINST: "reference"})
    return table


def sentences(found: Pilot, private: bool, seconds: float, where: str) -> list[str]:
    """What was done, what it says, and what there was no time for."""
    standings = found.standings()
    told = [NON_PRIVATE + "."] if private else []
    most = max((one.splits for one in standings), default=0)
    splits = "one split, and so no interval" if most == 1 else f"{most} splits"
    told.append(f"Pilot on {where}: {splits}, up to {DRAWS} noise draws each, {seconds:.0f} s.")
    if found.left_out:
        why = "the pilot was interrupted" if found.interrupted else "there was no time"
        told.append(f"Left out, as {why}: {'; '.join(found.left_out)}.")
    if not standings:
        return [*told, "Nothing was tried to its end: give it more time."]
    chosen = named(found.finalists[0])
    if chosen != standings[0].name:
        told.append(f"{chosen}, the first by public numbers, is hardly behind, and so it is taken.")
    verdict = found.verdict()
    if verdict is None:
        return [*told, f"Use {chosen}; the references were not tried, so what it is worth is not known."]
    kept = "" if verdict.kept is None else f"; {verdict.kept:.0%} of what the pooled rows gain is kept"
    told.append(f"Verdict: {chosen} is {_finding(verdict.finding)}{kept}.")
    if verdict.finding != "useful":
        told.append(_cause(found, verdict.pooled, verdict.constant))
    return told


def needed(found: Needed, private: bool) -> str:
    """At which epsilon the accuracy is reached, with an interval; or that it is not, and what the pooled rows have."""
    pooled = "" if found.pooled is None else f"pooled has {found.pooled:.2f}"
    constant = "" if found.constant is None else f"the constant answer {found.constant:.2f}"
    beside = ", ".join(part for part in (pooled, constant) if part)
    mark = MARK if private else ""
    if found.best is None:
        most = max(epsilon for curve in found.curves.values() for epsilon in curve)
        return f"Accuracy {found.accuracy:g} is not reached by epsilon {most:g}; {beside}.{mark}"
    name, epsilon = found.best
    if epsilon <= min(found.curves[name]):
        return f"Accuracy {found.accuracy:g} is reached at epsilon {epsilon:g} already by {name}; {beside}.{mark}"
    ends = f"{epsilon / FACTOR:.2g} to {epsilon * FACTOR:.2g}"
    return f"Accuracy {found.accuracy:g} is reached at epsilon {epsilon:.2g} ({ends}) by {name}; {beside}.{mark}"


def why(found: Pilot, private: bool) -> str:
    """How the finalists were chosen, for a comment of a scenario: without a figure of the rows."""
    on = "the private rows (NON-PRIVATE: this choice is outside the guarantee)" if private else "public rows"
    return f"chosen by a pilot on {on}; the first by public numbers alone was {found.first}"


def _against(one: Standing, metric: Metric) -> str:
    if one.behind == 0 and one.interval is None:
        return "the best" if one.splits else "-"
    sign = "-" if metric.higher_is_better else "+"
    if one.interval is None:
        return f"{sign}{one.behind:.3g}, too few splits for an interval"
    low, high = one.interval
    return f"{sign}{one.behind:.3g} ({low:.3g} to {high:.3g})"


def _finding(finding: str) -> str:
    return {
        "useful": "useful",
        "as the constant": "no better than the answer that is the same for all rows",
        "below the constant": "worse than the answer that is the same for all rows",
    }[finding]


def _cause(found: Pilot, pooled: float, constant: float) -> str:
    """Whether it is the noise, or the model, that leaves nothing."""
    values = found.reference(NOISE_FREE)
    sign = 1 if found.metric.higher_is_better else -1
    if not values or sign * (pooled - constant) <= 0:
        return "Even the pooled rows hardly tell more than that answer."
    gain = sign * (fmean(values.values()) - constant) / (sign * (pooled - constant))
    if gain < _LOST:
        return "Without its noise the protocol would be no better: its model does not suit these rows."
    return (
        f"Without its noise it would keep {gain:.0%} of what the pooled rows gain: it is the noise that leaves nothing."
    )
