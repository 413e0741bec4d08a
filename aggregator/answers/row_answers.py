"""Adds up the noisy X'X, X'y and y'y of all parties' private rows, and refuses what no honest party can say."""

from __future__ import annotations

import numpy as np

from aggregator.answers.local_answers import SummedAnswers
from federation.contract.guarantee import Guarantee
from federation.questions.row_moments import RowMomentsQuestion

_REACH = 40.0  # standard deviations, which noise does not exceed
_ROUNDING = 1e-6


class RowAnswers(SummedAnswers):
    """The sum over parties of their noisy sums, and of their numbers of rows.

    A sum over n rows which add a vector of some norm at most has entries of at most n times that, and noise takes them
    40 standard deviations further at most.
    """

    question: RowMomentsQuestion

    def __init__(self, question: RowMomentsQuestion, parties: int, promise: Guarantee | None) -> None:
        super().__init__(question, parties, promise)
        self._variance = question.mechanism().variance() if question.noise.aims else 0.0

    @property
    def rows(self) -> float:
        """Rows of the parties that answered."""
        return float(self.total("size"))

    @property
    def variance(self) -> float:
        """Of the noise in each number of the sum: that of all shares, or of all parties' own noise."""
        return self.answered / (self.question.contributors or 1) * self._variance

    def _well_formed(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        sizes = arrays["size"]
        largest = self.question.statistic.longest * sizes * (1 + _ROUNDING) + _REACH * self._variance**0.5
        inside = (np.abs(arrays["sums"]) <= largest[:, None, None]).all(axis=(1, 2))
        return np.asarray(inside & (sizes == np.floor(sizes)))
