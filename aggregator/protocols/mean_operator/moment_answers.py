"""Adds up what parties say about the mean operator, and refuses what no honest party can say."""

from __future__ import annotations

import numpy as np

from aggregator.answers.local_answers import SummedAnswers
from federation.contract.guarantee import Guarantee
from federation.questions.moments import MomentQuestion

_REACH = 40.0  # standard deviations: Laplace noise goes further with a probability below e^-56
_ROUNDING = 1e-6


class MomentAnswers(SummedAnswers):
    """The sum over parties of the noisy sums of y x, and of the numbers of rows.

    The sum of n rows of norm 1 has entries of at most n, and noise takes them 40 standard deviations further at most.
    """

    question: MomentQuestion

    def __init__(self, question: MomentQuestion, parties: int, promise: Guarantee | None) -> None:
        super().__init__(question, parties, promise)
        self._variance = question.mechanism().variance() if question.noise.aims else 0.0

    @property
    def rows(self) -> float:
        """Rows of the parties that answered."""
        return float(self.total("size"))

    @property
    def moments(self) -> np.ndarray:
        """Estimates of the mean of y x over all rows, one per noise draw, (draws, d)."""
        return self.total("sums") / self.rows

    @property
    def noise_variance(self) -> float:
        """Variance of the noise in each entry of an estimate: that of all shares, or of all parties' own noise."""
        wholes = self.answered / self.question.contributors if self.question.contributors else self.answered
        return wholes * self._variance / self.rows**2

    def _well_formed(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        sizes = arrays["size"]
        largest = sizes * (1 + _ROUNDING) + _REACH * np.sqrt(self._variance)
        inside = (np.abs(arrays["sums"]) <= largest[:, None, None]).all(axis=(1, 2))
        return np.asarray(inside & (sizes == np.floor(sizes)))
