"""Adds shares of one noise through the summation that a simulation names."""

from __future__ import annotations

import numpy as np

from aggregator.answers.moment_answers import MomentAnswers
from aggregator.sums.summation import Summation
from federation.numerics.arrays import Integers
from federation.questions.moments import SummedQuestion


class SharedMomentAnswers(MomentAnswers):
    """As `MomentAnswers` of shares; where the sum is really masked, the total is what the masked sum gives.

    What a party sends is then whole numbers of grid steps, and a hostile party's is rounded to them.
    """

    def __init__(self, question: SummedQuestion, parties: int, summation: Summation) -> None:
        super().__init__(question, parties, None)
        self._summation, self._step = summation, question.mechanism().additive.step
        self._parts = np.zeros((parties if summation.masked else 0, question.draws * question.numbers), dtype=np.int64)
        self._whole: Integers | None = None

    def total(self, name: str) -> np.ndarray:
        """As `MomentAnswers.total`. Raises `QuorumError` where too few answered for a masked sum."""
        if name != "sums" or not self._summation.masked:
            return super().total(name)
        if self._whole is None:
            self._whole = self._summation.total(self._parts, self._answered)
        return (self._whole * self._step).reshape(self.question.draws, self.question.numbers)

    @property
    def told(self) -> tuple[str, ...]:
        """How the sum was made."""
        return (self._summation.told(self._answered),)

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        super()._keep(parties, arrays)
        self._whole = None
        if self._summation.masked:
            self._parts[parties] = np.rint(arrays["sums"] / self._step).reshape(len(parties), -1)
