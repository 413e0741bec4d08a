"""What every mechanism for the label counts of one bag can do; each is made of public numbers only."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from federation.guarantee import Adjacency, Assumption, Guarantee, Unit
from federation.randomness import NoiseBits


class CountMechanism(Protocol):
    """Releases of the label counts (C,) of a bag of public size m, (epsilon, delta)-private for one replaced label.

    Neighbouring counts differ by +1 in one class and -1 in another. Nothing in a mechanism depends on counts.
    """

    @property
    def name(self) -> str:
        """As in a guarantee."""
        ...

    @property
    def classes(self) -> int:
        """C."""
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

    def release(self, counts: np.ndarray, bits: NoiseBits, draws: int = 1) -> np.ndarray:
        """Estimates of the counts, shape (draws, C) float64; each row sums to m and may have negative entries."""
        ...

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0."""
        ...

    def covariance(self, size: int) -> np.ndarray:
        """Covariance (C, C) of the released counts of a bag of that size; at equal counts where it depends on them.

        Rows and columns sum to zero.
        """
        ...

    def guarantee(
        self, unit: Unit = Unit.LABEL, adjacency: Adjacency = Adjacency.REPLACE, further: tuple[Assumption, ...] = ()
    ) -> Guarantee:
        """What one release promises; `further` assumptions (why bags are disjoint) come before its own."""
        ...
