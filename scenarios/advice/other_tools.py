"""Privacy claims of other tools: the epsilon that a run really guarantees, by unit, for `federation check-claim`.

Such a run releases noisy sums of clipped contributions, round after round.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from federation.contract.errors import InputError
from federation.mechanisms.accounting.composition import group_delta
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.mechanism import require_whole

Sampling = Literal["poisson", "shuffled", "unknown"]
ClaimedAdjacency = Literal["add_remove", "replace"]
Clipped = Literal["row", "party"]

_MOVED: Mapping[ClaimedAdjacency, int] = {"add_remove": 1, "replace": 2}  # norms by which a sum moves
_CLOSE = 1e-3  # relative: by so much may an accountant that rounds be below what is exact
_MOST = 1e4
_MOST_ROUNDS = 10**7
# The grid of privacy losses: its least step for a unit of one row and of several, and its most points.
_STEP, _STEP_OF_SEVERAL = 1e-4, 1e-3
_POINTS, _COMPOSED_POINTS = 2**16, 2**20
_DEVIATIONS = 9  # of the noise, beyond which outputs are rarer than the accountant truncates


@dataclass(frozen=True)
class Run:
    """What is known of a run.

    multiplier: the deviation of the noise over the largest norm that one contribution has.
    rate: the share of contributions that take part in a round, on average.
    rounds: how many noisy sums there were.
    sampling: how it was drawn who takes part: each by itself (`poisson`), in shuffled batches, or nobody knows.
    clipped: whose contribution was clipped: one `row`'s, or all of a `party`'s together.
    rows_per_person: the most rows of a person, where rows were clipped.

    Raises `InputError` for numbers out of range.
    """

    multiplier: float
    rate: float
    rounds: int
    delta: float
    sampling: Sampling = "unknown"
    clipped: Clipped = "row"
    rows_per_person: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.multiplier < math.inf:
            raise InputError(f"the noise multiplier must be a positive finite number, got {self.multiplier}")
        if not 0 < self.rate <= 1:
            raise InputError(f"the sampling rate must be above 0 and at most 1, got {self.rate}")
        require_whole("rounds", self.rounds, 1, _MOST_ROUNDS)
        require_whole("rows_per_person", self.rows_per_person, 1)
        if not 0 < self.delta < 1:
            raise InputError(f"delta must lie between 0 and 1, got {self.delta}")

    @property
    def participations(self) -> int:
        """How often a contribution takes part in shuffled batches: once in each pass, rounded up."""
        return max(1, math.ceil(self.rate * self.rounds - 1e-9))


@dataclass(frozen=True)
class Promised:
    """The epsilon of a run for one unit under one adjacency, and how it is known.

    It is at most `epsilon` and at least `least`, which are the same where it is exact.
    """

    unit: str
    adjacency: ClaimedAdjacency
    sampling: Literal["poisson", "shuffled"]
    epsilon: float
    least: float
    delta: float
    how: str

    def keeps(self, claimed: float) -> bool | None:
        """Whether a claimed epsilon holds; None where that is not known."""
        if self.epsilon <= claimed * (1 + _CLOSE):
            return True
        return False if self.least > claimed * (1 + _CLOSE) else None


def promised(run: Run) -> Iterator[Promised]:
    """By unit, adjacency and what may be true of the sampling, the weakest claims to rest on last.

    Examples:
        >>> [(one.adjacency, one.sampling, round(one.epsilon, 2)) for one in promised(Run(1.0, 1.0, 10, 1e-5))]
        [('add_remove', 'poisson', 17.86), ('replace', 'poisson', 46.21)]
    """
    units: list[tuple[str, int]] = [(run.clipped, 1)]
    if run.clipped == "row" and run.rows_per_person > 1:
        units.append(("person", run.rows_per_person))
    ways: tuple[Literal["poisson", "shuffled"], ...] = ("poisson", "shuffled") if run.rate < 1 else ("poisson",)
    if run.sampling != "unknown" and run.rate < 1:
        ways = (run.sampling,)
    for way in ways:
        for unit, rows in units:
            yield from _promised(run, unit, rows, way)


def _promised(run: Run, unit: str, rows: int, sampling: Literal["poisson", "shuffled"]) -> Iterator[Promised]:
    """Yield the epsilon of a unit that is added or removed, then that of a unit that is replaced."""
    if sampling == "shuffled" or run.rate == 1:
        times = run.rounds if run.rate == 1 else run.participations
        how = f"exact for {times} sums with the {run.clipped} in each, without a gain by sampling"
        for adjacency, moved in _MOVED.items():
            epsilon = gaussian.epsilon(run.delta, moved * rows * math.sqrt(times) / run.multiplier)
            yield Promised(unit, adjacency, sampling, epsilon, epsilon, run.delta, how)
        return
    found = sampled_losses(run, rows)
    exact = float(found.get_epsilon_for_delta(run.delta))
    yield Promised(unit, "add_remove", sampling, exact, exact, run.delta, "exact, to six digits")
    # One that is replaced by one whose contribution is 0 is removed, so that it is no less.
    how = "a bound: one leaves, another one comes"
    yield Promised(unit, "replace", sampling, _replaced(found, run.delta), exact, run.delta, how)


def sampled_losses(run: Run, rows: int) -> Any:
    """Return the privacy loss distribution of a unit of `rows` rows, each drawn by itself in every round.

    The unit is added or removed; the worse of both counts. dp-accounting puts the losses on a grid so that its epsilons
    are upper bounds (Doroshenko et al. 2022). Raises `InputError` where dp-accounting is not installed.
    """
    try:
        from dp_accounting.pld import privacy_loss_distribution
    except ImportError:
        raise InputError(
            "sampling rates below 1 need the package dp-accounting; type: pip install 'multiparty-federation[claims]'"
        ) from None
    from scipy.stats import binom

    deviation, rate, counts = run.multiplier, run.rate, range(rows + 1)
    # Losses of one round, and about twenty standard deviations of their sum, must fit on the grid.
    span = (rows**2 + 2 * _DEVIATIONS * rows * deviation) / (2 * deviation**2)
    drawn = rate * math.sqrt(math.expm1(min(deviation**-2, 700.0)))
    summed = 20 * math.sqrt(run.rounds) * rows * min(1 / deviation, drawn)
    step = max(_STEP if rows == 1 else _STEP_OF_SEVERAL, span / _POINTS, summed / _COMPOSED_POINTS)
    if rows == 1:
        one = privacy_loss_distribution.from_gaussian_mechanism(
            deviation, sampling_prob=rate, value_discretization_interval=step
        )
    else:
        one = privacy_loss_distribution.from_mixture_gaussian_mechanism(
            deviation, counts, binom.pmf(counts, rows, rate), value_discretization_interval=step
        )
    return one.self_compose(run.rounds)


def _replaced(found: Any, delta: float) -> float:
    """The least epsilon that follows for a unit that is replaced, from its leaving and another one's coming."""

    def enough(epsilon: float) -> bool:
        return group_delta(epsilon / 2, float(found.get_delta_for_epsilon(epsilon / 2)), 2) <= delta

    return _least(enough, 0.0, 1.0, 1e-6)


def _least(enough: Callable[[float], bool], low: float, high: float, precision: float) -> float:
    """Return the least number that is enough, up to a relative precision; infinity where it is beyond all reason."""
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST:
            return math.inf
    while low and enough(low):
        low, high = low / 2, low
    while high - low > precision * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def needed_multiplier(run: Run, claimed: float, rows: int) -> float:
    """The least noise multiplier that keeps a claim under add_remove, if sampling is as it is known to be."""
    if claimed <= 0:
        raise InputError(f"the claimed epsilon must be above 0, got {claimed}")

    def enough(multiplier: float) -> bool:
        if run.sampling == "shuffled" or run.rate == 1:
            times = run.rounds if run.rate == 1 else run.participations
            return gaussian.epsilon(run.delta, rows * math.sqrt(times) / multiplier) <= claimed
        return bool(
            sampled_losses(replace(run, multiplier=multiplier), rows).get_delta_for_epsilon(claimed) <= run.delta
        )

    return _least(enough, run.multiplier / 2, run.multiplier, 1e-3)


@dataclass(frozen=True)
class Judgement:
    """A claim beside what holds: `holds` is None where it depends on what nobody said, which `missing` names."""

    holds: bool | None
    spent: float
    told: str
    missing: tuple[str, ...]


def judged(run: Run, claimed: float, unit: str, adjacency: ClaimedAdjacency) -> Judgement:
    """Whether a claimed epsilon holds for a unit, and which premises nobody has vouched for.

    Examples:
        >>> judged(Run(1.1, 0.01, 1000, 1e-5, "shuffled"), 1.6, "row", "add_remove").holds
        False
    """
    found = [one for one in promised(run) if (one.unit, one.adjacency) == (unit, adjacency)]
    if not found:
        known = ", ".join(dict.fromkeys(one.unit for one in promised(run)))
        raise InputError(
            f"nothing is known of one {unit} where each {run.clipped} is clipped by itself; what can be told is about: "
            f"{known}; say --rows-per-person for persons"
        )
    if not 0 < claimed < math.inf:
        raise InputError(f"the claimed epsilon must be a positive number, got {claimed}")
    kept = [one.keeps(claimed) for one in found]
    holds = kept[0] if len(set(kept)) == 1 else None
    rows = run.rows_per_person if unit == "person" else 1
    subject = f"the claim of epsilon {claimed:g} for one {unit} ({adjacency})"
    first = found[0]
    spent = f"{first.epsilon:.4g} is spent" if first.least == first.epsilon else f"at most {first.epsilon:.4g} is spent"
    if holds:
        told = f"{subject} holds: {spent}"
    elif holds is False:
        told = f"{subject} does not hold: at least {first.least:.4g} is spent"
        if adjacency == "add_remove":
            told += f"; it takes a noise multiplier of {needed_multiplier(run, claimed, rows):.4g}"
    elif len(found) > 1 and kept[0]:
        told = (
            f"{subject} holds only if every {run.clipped} was drawn by itself in each round: then {spent}, and with "
            f"shuffled batches {found[1].epsilon:.4g}"
        )
    else:
        told = f"{subject} cannot be shown: between {first.least:.4g} and {first.epsilon:.4g} is spent"
    return Judgement(holds, first.epsilon, told, tuple(_missing(run)))


def _missing(run: Run) -> Iterator[str]:
    """What has to be true and cannot be seen in these numbers; the decisive ones first."""
    if run.sampling == "unknown" and run.rate < 1:
        yield f"each {run.clipped} is drawn by itself in every round, and not in shuffled batches (--sampling)"
    if run.sampling == "shuffled":
        yield f"each {run.clipped} is in one batch of every pass, and no oftener"
    if run.clipped == "row" and run.rows_per_person == 1:
        yield "a person has one row, or persons are not what is protected (--rows-per-person)"
    yield f"the contribution of each {run.clipped} is clipped by itself, before anything is added up or averaged"
    yield "the noise is drawn once for every sum, independently, with as much as the multiplier says of the sum"
    yield "the noise comes from a cryptographic generator, and rounding of floating-point samples tells nothing"
    yield "the number of rounds, the clip norm and all else were chosen without a look at the private rows"
    yield "nothing else of the rows is published: no losses, no other runs, no statistics for scaling"
