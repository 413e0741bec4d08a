"""What every calibrated mechanism says of itself, and how it puts that as a guarantee."""

from __future__ import annotations

from typing import ClassVar, Protocol

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Keeper, Unit

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
