"""What would help a release, from the numbers of its own run: a larger epsilon, more parties, or another variant of it.

Nothing here is guessed: what the run has not measured, and no accountant can compute from it, is not said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from federation.mechanisms.noise import gaussian
from scenarios.reports.readings import listed

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
