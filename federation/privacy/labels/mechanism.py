"""What every mechanism for single labels can do; each is made of public numbers only."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from federation.errors import InputError
from federation.guarantee import Adjacency, Assumption, Check, Guarantee, Unit
from federation.privacy.labels.label_range import LabelRange
from federation.privacy.mechanism import Mechanism, promised
from federation.randomness import NoiseBits

PUBLIC_ROWS = Assumption(
    "the rows' features, and how many rows there are, are public: only labels are protected", Check.DECLARED
)


class LabelMechanism(Mechanism, Protocol):
    """Releases of labels (n,), each of them (epsilon, delta)-private for itself: one label is in one release only."""

    @property
    def labels(self) -> LabelRange:
        """Where labels lie."""
        ...

    def release(self, labels: np.ndarray, bits: NoiseBits) -> np.ndarray:
        """Private labels (n,) float64. Raises `InputError` as `LabelRange.checked`."""
        ...

    def variance(self, labels: np.ndarray | None = None) -> np.ndarray | float:
        """Of the released value of each given label (n,); without labels the largest that any label has."""
        ...

    def bias(self, labels: np.ndarray | None = None) -> np.ndarray | float:
        """E released - label, for each given label (n,); without labels the largest size that it has."""
        ...


def promise(
    mechanism: LabelMechanism,
    unit: Unit,
    adjacency: Adjacency,
    assumptions: tuple[Assumption, ...],
    gaussian_mu: float | None = None,
) -> Guarantee:
    """The guarantee of a release of labels. Raises `InputError` unless labels are replaced."""
    if adjacency is not Adjacency.REPLACE:
        raise InputError(f"adjacency must be {Adjacency.REPLACE} for labels, got {adjacency}: how many rows is public")
    return promised(mechanism, unit, adjacency, assumptions, gaussian_mu)
