"""What the aggregator knows after the votes are in, and the minimisers that several variants share."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, ClassVar, Literal

import numpy as np

from aggregator.ensembles.tally import VoteTally
from aggregator.world.public_rows import PublicRows
from federation.contract.query import Submission
from federation.numerics.erm import gradient_floor, risk_minimiser

Labels = Literal["soft", "majority"]


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Votes of K declared parties on public rows; `places` (N,) says which row that was voted on each of them is."""

    public: PublicRows
    tally: VoteTally
    places: np.ndarray | EllipsisType = ...
    recipe: ClassVar[tuple[Any, ...]] = ()  # votes are counted in one way
    _minimisers: dict[tuple[Labels, float], np.ndarray] = field(default_factory=dict)

    def add(self, submission: Submission) -> dict[int, str]:
        """Count votes; returns refused parties and why (`VoteTally.add`)."""
        return self.tally.add(submission)

    @property
    def answered(self) -> int:
        """Number of parties counted so far."""
        return self.tally.answered

    @property
    def parties(self) -> int:
        """The declared, public number of parties K."""
        return self.tally.parties

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.tally.counts.shape[1]

    def shares(self) -> np.ndarray:
        """Soft labels (N, C) of all public rows (`VoteTally.shares`)."""
        return self.tally.shares()[self.places]

    def gradient_tolerance(self, regularisation: float) -> float:
        """The public tolerance of a minimiser: a millionth of what one party can move the gradient.

        Not below what double precision can certify for rows of norm at most 1.
        """
        return max(1e-6 / self.parties, 4 * gradient_floor(regularisation))

    def minimiser(self, labels: Labels, regularisation: float) -> np.ndarray:
        """The certified minimiser of the regularised risk (Hamm, Eqs. 8 and 19; App. B), computed once.

        Shape (d,) for two classes (binary logistic loss), (C, d) for more (softmax).
        """
        key = (labels, regularisation)
        if key not in self._minimisers:
            shares = self.shares() if labels == "soft" else self.tally.majority()[self.places]
            tolerance = self.gradient_tolerance(regularisation)
            self._minimisers[key] = risk_minimiser(self.public.rows, shares, regularisation, tolerance)
        return self._minimisers[key]
