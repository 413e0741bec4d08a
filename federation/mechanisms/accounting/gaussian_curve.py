"""The privacy curve that a `gaussian_mu` claims: a delta at every epsilon, of one release or of several together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from federation.contract.guarantee import Guarantee
from federation.mechanisms.noise import discrete_gaussian, gaussian


@dataclass(frozen=True)
class GaussianCurve:
    """delta(epsilon) of mu-Gaussian noise, and where noise is discrete of its proved bound (`delta_bound`).

    `grid` is the number of coordinates and the smallest scale in steps of discrete noise, None of the continuous one.

    Examples:
        >>> curve = GaussianCurve(gaussian.mu(1.0, 1e-6))
        >>> curve.delta(1.0), curve.delta(0.25)
        (1e-06, 0.01997)
        >>> curve.epsilon(1e-6)
        1.0
    """

    mu: float
    grid: tuple[int, int] | None = None

    @classmethod
    def of(cls, guarantees: Sequence[Guarantee]) -> GaussianCurve | None:
        """What guarantees that all have a `gaussian_mu` promise together; None where one has none, or there are none.

        mu = sqrt(sum mu_i²) (Dong, Roth, Su 2022, Corollary 3.3); of discrete noise the joint law is bounded.
        """
        mus = [g.gaussian_mu for g in guarantees if g.gaussian_mu is not None]
        if not mus or len(mus) < len(guarantees):
            return None
        discrete = [g.parameters for g in guarantees if "grid_scale" in g.parameters]
        if not discrete:
            return cls(gaussian.compose(mus))
        coordinates = sum(int(p["dimension"]) for p in discrete)
        return cls(gaussian.compose(mus), (coordinates, min(int(p["grid_scale"]) for p in discrete)))

    def delta(self, epsilon: float) -> float:
        """The delta that is claimed at an epsilon >= 0."""
        if self.grid is None:
            return float(gaussian.delta(epsilon, self.mu))
        return discrete_gaussian.delta_bound(epsilon, self.mu, *self.grid)

    def epsilon(self, delta: float) -> float:
        """The epsilon that is claimed at a delta in (0, 1); infinite where the grid is too coarse."""
        if self.grid is None:
            return gaussian.epsilon(delta, self.mu)
        return discrete_gaussian.epsilon_bound(delta, self.mu, *self.grid)
