"""What every calibrated mechanism says of itself, and how it puts that as a guarantee."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import ClassVar, Protocol

from federation.contract.errors import InputError, nearest_name
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Unit, require_delta, require_epsilon

NOISE_KEY = Assumption(
    "the ChaCha20 key of the noise is secret and serves no other release; the stream is as good as random",
    Check.DECLARED,
)


class Claim(Protocol):
    """What a mechanism says of itself, in public numbers."""

    @property
    def name(self) -> str:
        """As in a guarantee."""
        ...

    @property
    def epsilon(self) -> float:
        """What one release claims."""
        ...

    @property
    def delta(self) -> float:
        """What one release claims; 0 when it is pure."""
        ...

    @property
    def parameters(self) -> dict[str, float | int | str]:
        """Public numbers."""
        ...


class Mechanism(Claim, Protocol):
    """A calibrated mechanism that hides how one unit is replaced; each kind has a `release` of its own."""

    units: ClassVar[tuple[Unit, ...]]

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on."""
        ...

    @property
    def gaussian_mu(self) -> float | None:
        """Sensitivity over standard deviation where the loss is that of a Gaussian, else None."""
        ...

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0 (where noted, a proved bound)."""
        ...

    def guarantee(
        self, unit: Unit = Unit.LABEL, adjacency: Adjacency = Adjacency.REPLACE, further: tuple[Assumption, ...] = ()
    ) -> Guarantee:
        """As `Replacement.guarantee`."""
        ...


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
        return promised(self, unit, adjacency, (*further, *self.assumptions), self.gaussian_mu)


def promised(
    claim: Claim,
    unit: Unit,
    adjacency: Adjacency,
    assumptions: tuple[Assumption, ...],
    gaussian_mu: float | None = None,
) -> Guarantee:
    """A claim as a guarantee; whether unit and adjacency are its own is for the mechanism to check."""
    return Guarantee(
        epsilon=claim.epsilon,
        delta=claim.delta,
        unit=unit,
        adjacency=adjacency,
        mechanism=claim.name,
        parameters=dict(claim.parameters),
        assumptions=assumptions,
        gaussian_mu=gaussian_mu,
    )


def require_wanted(
    noise: str, epsilon: float, delta: float, *, known: Sequence[str], with_delta: Container[str], pure: str
) -> None:
    """Raises `InputError` unless `noise` is known, epsilon positive and finite, and delta in [0, 1).

    Kinds of noise `with_delta` need one above 0; `pure` says what to choose in place of them.
    """
    if noise not in known:
        raise InputError(f"noise must be one of {', '.join(known)}, got {noise!r}{nearest_name(noise, known)}")
    require_epsilon(epsilon)
    require_delta(delta)
    if delta == 0 and noise in with_delta:
        raise InputError(f"delta must be above 0 for noise {noise}, got 0; choose {pure} for delta 0")
