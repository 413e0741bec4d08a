"""The ball that vectors of parties are brought into before they are added: by the aggregator, or by each party."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federation.contract.numbers import required
from federation.features.steps import UnitNorm
from federation.numerics.arrays import Floats

UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True)
class Ball:
    """Vectors of L2 norm at most `norm` > 0; where they are `scaled`, every vector but zero takes that norm.

    Raises `InputError` for a norm that is not positive and finite.

    Examples:
        >>> vectors = np.array([[3.0, 4.0], [0.5, 0.0]])
        >>> Ball(2.0).of(vectors), Ball(2.0, scaled=True).of(vectors)
        (array([[1.2, 1.6],
               [0.5, 0. ]]), array([[1.2, 1.6],
               [2. , 0. ]]))
    """

    norm: float
    scaled: bool = False

    def __post_init__(self) -> None:
        required("norm", self.norm, "be a positive finite number", lambda value: 0 < value < np.inf)

    def units(self, vectors: Floats) -> Floats:
        """Finite vectors (P, D) in units of the norm, each by itself: those beyond it are shortened to it."""
        found: Floats = UnitNorm().apply(vectors)
        if not self.scaled:
            with np.errstate(over="ignore"):  # beyond the range of doubles is beyond the ball
                whole = vectors / self.norm
                inside = np.linalg.norm(whole, axis=1) <= 1
            found[inside] = whole[inside]
        return found

    def of(self, vectors: Floats) -> Floats:
        """As `units`, in the vectors' own units."""
        return self.units(vectors) * self.norm

    def excess(self, dimension: int) -> float:
        """By how much, relative to the norm, double precision may exceed it: (D + 9) u with the product of `of`."""
        return (dimension + 9) * UNIT_ROUNDOFF

    @property
    def told(self) -> str:
        """What is done to every vector, in words."""
        return f"scaled to norm {self.norm:.9g}" if self.scaled else f"shortened to norm {self.norm:.9g} at most"
