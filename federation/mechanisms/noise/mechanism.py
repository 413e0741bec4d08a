"""The interface of a calibrated mechanism, its guarantee, and the checks of its public numbers.

A refusal names the parameter, what is allowed and what was given. `require_scale` accepts the scales that the exact
samplers take; `first` searches for the smallest one that is enough.
"""

from bisect import bisect_left
from collections.abc import Callable, Container, Sequence
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np

from federation.contract.errors import InputError, nearest_name
from federation.contract.guarantee import (
    Adjacency,
    Assumption,
    Check,
    Guarantee,
    Keeper,
    Unit,
    require_delta,
    require_epsilon,
)
from federation.contract.validation import required, shown

NOISE_KEY = Assumption(
    "the ChaCha20 key of the noise is secret and serves no other release; the stream is as good as random",
    Check.DECLARED,
    Keeper.NOISE_MAKER,
)


Parameters = dict[str, float | int | str]  # public numbers of a guarantee


class Claim(Protocol):
    """What a mechanism says of itself, in public numbers."""

    @property
    def name(self) -> str:
        """The mechanism's name in its guarantee."""

    @property
    def epsilon(self) -> float:
        """The epsilon that one release claims."""

    @property
    def delta(self) -> float:
        """The delta that one release claims; 0 when it is pure."""

    @property
    def parameters(self) -> Parameters:
        """Public numbers of the mechanism, as its guarantee lists them."""

    @property
    def gaussian_mu(self) -> float | None:
        """Sensitivity over standard deviation where the loss is that of a Gaussian, else None."""


class Mechanism(Claim, Protocol):
    """A calibrated mechanism that hides how one unit is replaced; each kind has a `release` of its own."""

    units: ClassVar[tuple[Unit, ...]]

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on, and how each premise is kept."""

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0 (where noted, a proved bound)."""

    def guarantee(
        self, unit: Unit = Unit.LABEL, adjacency: Adjacency = Adjacency.REPLACE, further: tuple[Assumption, ...] = ()
    ) -> Guarantee:
        """As `Replacement.guarantee`."""


class Replacement:
    """The part of a `Mechanism` that turns its claim into a guarantee."""

    units: ClassVar[tuple[Unit, ...]] = (Unit.LABEL,)

    @property
    def gaussian_mu(self) -> float | None:
        """Sensitivity over standard deviation where the loss is that of a Gaussian, else None."""
        return None

    def guarantee(
        self: Mechanism,
        unit: Unit = Unit.LABEL,
        adjacency: Adjacency = Adjacency.REPLACE,
        further: tuple[Assumption, ...] = (),
    ) -> Guarantee:
        """What one release promises; `further` assumptions come before its own.

        Raises `InputError` for a unit that is not among `units`, and unless it is replaced.
        """
        if unit not in self.units or adjacency is not Adjacency.REPLACE:
            raise InputError(
                f"adjacency must be {Adjacency.REPLACE} and unit must be {' or '.join(self.units)} for {self.name}, "
                f"got {adjacency} of {unit}: how many rows there are is public"
            )
        return promised(self, unit, adjacency, (*further, *self.assumptions))


def promised(claim: Claim, unit: Unit, adjacency: Adjacency, assumptions: tuple[Assumption, ...]) -> Guarantee:
    """A claim as a guarantee; whether unit and adjacency are its own is for the mechanism to check."""
    known = (claim.epsilon, claim.delta, unit, adjacency, claim.name, dict(claim.parameters))
    return Guarantee(*known, assumptions, claim.gaussian_mu)


MAX_SCALE = 2**40  # beyond, too many draws need interval arithmetic, and sums could leave the exact doubles


def require_scale(name: str, scale: int | Fraction) -> None:
    """Raises `InputError` for a scale at which the samplers would not be exact and fast."""
    parts = (scale.numerator, scale.denominator) if isinstance(scale, int | Fraction) and scale is not True else (0, 0)
    if not all(1 <= part <= MAX_SCALE for part in parts):
        raise InputError(
            f"{name} must be an integer from 1 to 2^40 grid units, or a Fraction of two such, got {shown(scale)}; "
            "choose another step"
        )


def first(enough: Callable[[int], bool], low: int) -> int:
    """The smallest integer above `low` that is enough, if all larger ones are: by doubling steps, then bisection.

    Examples:
        >>> first(lambda n: n * n > 1000, low=0)
        32
    """
    step = 1
    while not enough(low + step):
        low, step = low + step, 2 * step
    return first_between(enough, low, low + step)


def first_between(enough: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest integer above `low` that is enough, at most `high`, which is taken to be."""
    return bisect_left(range(high), True, low + 1, key=enough)


MOST_WHOLE = 2**63 - 1  # of arrays and of the accountants
MOST_DRAWN = 2**40  # numbers in one array of noise


def require_positive(name: str, value: float) -> float:
    """The value. Raises `InputError` unless it is positive and finite."""
    return required(name, value, "be a positive finite number", lambda number: number > 0)


def require_whole(name: str, value: object, least: int, most: int = MOST_WHOLE, every: str = "") -> None:
    """Raises `InputError` unless the value is an integer from `least` to `most`; `every` is put before the latter."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (isinstance(value, int | np.integer) and whole and least <= value <= most):
        endless = most == MOST_WHOLE and not (whole and value > most)  # type: ignore[operator]
        allowed = f"of at least {least}" if endless else f"from {least} to {every}{most}"
        raise InputError(f"{name} must be an integer {allowed}, got {shown(value)}")


def require_epsilon_from_zero(epsilon: float) -> float:
    """As a double. Raises `InputError` unless epsilon is finite and at least 0."""
    return float(require_from_zero("epsilon", epsilon))


def require_draws(draws: object) -> None:
    """Raises `InputError` unless it is a number of independent releases, which may be 0."""
    require_whole("draws", draws, 0, MOST_DRAWN)


def require_from_zero(name: str, value: float) -> float:
    """The value. Raises `InputError` unless it is finite and at least 0."""
    return required(name, value, "be a finite number >= 0", lambda number: number >= 0)


def require_delta_above_zero(delta: float) -> None:
    """Raises `InputError` unless 0 < delta < 1: for what no noise gives at delta 0."""
    require_share("delta", delta)


def require_share(name: str, value: float) -> float:
    """The value. Raises `InputError` unless 0 < value < 1."""
    return required(name, value, "lie strictly between 0 and 1", lambda number: 0 < number < 1)


def require_wanted(
    noise: str, epsilon: float, delta: float, *, known: Sequence[str], with_delta: Container[str], pure: str
) -> None:
    """Raises `InputError` unless `noise` is known, epsilon positive and finite, and delta in [0, 1).

    Kinds of noise `with_delta` need one above 0; `pure` says what to choose in place of them.
    """
    require_known("noise", noise, known)
    require_epsilon(epsilon)
    require_delta(delta)
    if delta == 0 and noise in with_delta:
        raise InputError(f"delta must be above 0 for noise {noise}, got 0; choose {pure} for delta 0")


def require_known(name: str, value: str, known: Sequence[str]) -> None:
    """Raises `InputError` unless the value is one of the known ones, and names the nearest of them."""
    if value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}, got {value!r}{nearest_name(value, known)}")
