"""What all parties together have of each bag, with a noise that they share; the bags are the same at all of them."""

from __future__ import annotations

import math

import numpy as np

from aggregator.answers.honest_range import REACH, ROUNDING
from aggregator.answers.shared_answers import SharedAnswers, require_reachable
from aggregator.world.plan import WorldPlan
from federation.queries.bags import BagTotalsQuestion
from federation.secure_aggregation.masks import require_room


class SharedBags(SharedAnswers):
    """Totals of each bag, of which nobody sees a party's part; those that honest parties cannot have are refused.

    A party has at most `largest_bag` of the plan's rows of a bag. Raises `InputError`, before anybody is asked, where
    honest numbers might wrap around modulo 2^64.
    """

    question: BagTotalsQuestion

    def __init__(self, question: BagTotalsQuestion, plan: WorldPlan) -> None:
        super().__init__(question, plan)
        noise = question.mechanism()
        self._most, self._whole_variance = plan.largest_bag * question.longest, noise.variance()
        require_room(
            self._most / min(self._steps.values()), noise.additive, noise.contributors, plan.parties, self.numbers
        )

    @property
    def variance(self) -> float:
        """Of the noise on each number: of all shares, of which more come than are needed, as a rule."""
        return self.wholes * self._whole_variance

    def total(self, name: str) -> np.ndarray:
        """As `SharedAnswers.total`. Raises `FederationError` for totals that no honest parties have."""
        found: np.ndarray = super().total(name)
        noise = REACH * math.sqrt(self.variance)
        largest = self.answered * self._most * (1 + ROUNDING) + noise
        require_reachable(found, -largest if name == "sums" else -noise, largest, self.answered)
        return found
