"""What every mechanism for single labels can do; each is made of public numbers only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from federation.contract.guarantee import Assumption, Check, Keeper
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels.label_range import LabelRange
from federation.mechanisms.noise.mechanism import NOISE_KEY, Mechanism, Replacement
from federation.numerics.arrays import Floats

PUBLIC_ROWS = Assumption(
    "the rows' features, and how many rows there are, are public: only labels are protected",
    Check.DECLARED,
    Keeper.HOLDER,
)


class LabelMechanism(Mechanism, Protocol):
    """Releases of labels (n,), each of them (epsilon, delta)-private for itself: one label is in one release only."""

    @property
    def labels(self) -> LabelRange:
        """The public range in which labels lie."""

    def release(self, labels: Floats, bits: NoiseBits) -> Floats:
        """Private labels (n,) float64. Raises `InputError` as `LabelRange.checked`."""

    def variance(self, labels: Floats | None = None) -> Floats | float:
        """Of the released value of each given label (n,); without labels the largest that any label has."""

    def bias(self, labels: Floats | None = None) -> Floats | float:
        """E released - label, for each given label (n,); without labels the largest size that it has."""


class LabelReplacement(Replacement, ABC):
    """What every guarantee of private labels rests on, with what is particular to a mechanism in between."""

    labels: LabelRange

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on, and how each premise is kept."""
        return PUBLIC_ROWS, self.labels.assumption, *self._own_assumptions, NOISE_KEY

    @property
    @abstractmethod
    def _own_assumptions(self) -> tuple[Assumption, ...]:
        """Premises about how the released values are drawn."""
