"""The noisy mean of one vector per party, of which nobody sees one."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from aggregator.answers.honest_range import REACH, ROUNDING
from aggregator.answers.shared_answers import SharedAnswers, require_reachable
from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.mechanisms.sums import shares
from federation.queries.votes import VectorSumQuestion


class SharedVectors(SharedAnswers):
    """Adds vectors that their parties brought into a ball; a total that honest parties cannot have is refused.

    The mean is over the parties that answered, whose number is public.
    """

    question: VectorSumQuestion

    @cached_property
    def mechanism(self) -> AdditiveMechanism:
        """The noise that is in the mean: more shares come than are needed, as a rule."""
        question = self.question
        return shares.in_mean(question.mechanism().additive, question.contributors, self.answered)

    @cached_property
    def means(self) -> np.ndarray:
        """Of each draw, (draws, D). Raises `FederationError` for a total that no honest parties have."""
        total = self.total("vectors")
        noise = REACH * math.sqrt(self.mechanism.variance()) * self.answered
        largest = self.answered * self.question.ball.norm * (1 + ROUNDING) + noise
        require_reachable(total, -largest, largest, self.answered)
        return np.asarray(total / self.answered)
