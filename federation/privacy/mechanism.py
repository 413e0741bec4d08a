"""What every calibrated mechanism says of itself, and how it puts that as a guarantee."""

from __future__ import annotations

from typing import Protocol

from federation.guarantee import Adjacency, Assumption, Check, Guarantee, Unit

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
    """A calibrated mechanism of label privacy; each kind has a `release` of its own."""

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0 (where noted, a proved bound)."""
        ...

    def guarantee(
        self, unit: Unit = Unit.LABEL, adjacency: Adjacency = Adjacency.REPLACE, further: tuple[Assumption, ...] = ()
    ) -> Guarantee:
        """What one release promises; `further` assumptions come before its own.

        Raises `InputError` unless labels are replaced.
        """
        ...


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
