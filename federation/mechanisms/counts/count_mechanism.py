"""What every mechanism for the label counts of one bag can do; each is made of public numbers only."""

from __future__ import annotations

from typing import ClassVar, Protocol

from federation.contract.guarantee import Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.mechanism import Mechanism, Replacement
from federation.numerics.arrays import Floats, Integers


class CountMechanism(Mechanism, Protocol):
    """Releases of the label counts (C,) of a bag of public size m, (epsilon, delta)-private for one replaced label.

    Neighbouring counts differ by +1 in one class and -1 in another. Nothing in a mechanism depends on counts.
    """

    @property
    def classes(self) -> int:
        """C, how many classes there are."""

    def release(self, counts: Integers, bits: NoiseBits, draws: int = 1) -> Floats:
        """Estimates of the counts, shape (draws, C) float64; each row sums to m and may have negative entries."""

    def covariance(self, size: int) -> Floats:
        """Covariance (C, C) of the released counts of a bag of that size; at equal counts where it depends on them.

        Rows and columns sum to zero.
        """


class CountReplacement(Replacement):
    """The guarantee of counts, also for all labels of a person who is in the bag with one record."""

    units: ClassVar[tuple[Unit, ...]] = (Unit.LABEL, Unit.PERSON)
