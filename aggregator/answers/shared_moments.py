"""The noisy sum over all parties of what they say of all their rows, where they share its noise."""

from __future__ import annotations

import math

import numpy as np

from aggregator.answers.honest_range import REACH, ROUNDING
from aggregator.answers.moment_answers import MomentTotals
from aggregator.answers.shared_answers import SharedAnswers, require_reachable
from aggregator.world.plan import WorldPlan
from federation.contract.query import Submission
from federation.queries.row_sums import SummedQuestion


class SharedMoments(SharedAnswers, MomentTotals):
    """As `MomentAnswers`, but nobody sees, checks or scales an answer; a total that honest ones cannot have is refused.

    Only the total can be looked at, which is private already: its entries are at most all rows times `longest`, and
    the noise of all shares goes 40 standard deviations further.
    """

    question: SummedQuestion

    def __init__(self, question: SummedQuestion, plan: WorldPlan) -> None:
        super().__init__(question, plan)
        self._variance = question.mechanism().variance()

    @property
    def summed_variance(self) -> float:
        """Of all shares: more come than are needed for the whole noise, as a rule."""
        return self.wholes * self._variance

    def total(self, name: str) -> np.ndarray:
        """As `SharedAnswers.total`. Raises `FederationError` for a total that no honest parties have."""
        found: np.ndarray = super().total(name)
        if name == "sums":
            largest = self.rows * self.question.longest * (1 + ROUNDING) + REACH * math.sqrt(self.summed_variance)
            require_reachable(found, -largest, largest, self.answered)
        return found

    def _impossible(self, submission: Submission) -> np.ndarray:
        sizes = submission.arrays["size"]
        return np.asarray(super()._impossible(submission) | (sizes != np.floor(sizes)))
