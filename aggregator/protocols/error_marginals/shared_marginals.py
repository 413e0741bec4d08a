"""The noisy counts of all parties together about one query of an exchange, where they share its noise."""

from __future__ import annotations

import math

import numpy as np

from aggregator.answers.honest_range import REACH
from aggregator.answers.shared_answers import SharedAnswers, require_reachable
from aggregator.protocols.error_marginals.marginal_answers import possible_rows
from aggregator.world.plan import WorldPlan
from federation.contract.query import Submission
from federation.mechanisms.marginals.shared_noise import SharedMarginalNoise
from federation.queries.marginals import MarginalsQuestion
from federation.secure_aggregation.masks import require_room


class SharedMarginals(SharedAnswers):
    """As `MarginalAnswers`, but nobody sees, checks or scales an answer; a total beyond honest ones is refused.

    Numbers of rows that are public, as where labels are protected, are checked of each party of at most `most` rows.
    Raises `InputError`, before anybody is asked, where honest counts might wrap around modulo 2^64.
    """

    question: MarginalsQuestion

    def __init__(self, question: MarginalsQuestion, plan: WorldPlan, most: int) -> None:
        super().__init__(question, plan)
        noise = question.mechanism()
        assert isinstance(noise, SharedMarginalNoise), "parties share it"
        self._most, self._deviation = most, noise.deviation
        require_room(most / noise.step, noise.additive, noise.contributors, plan.parties, self.numbers)

    @property
    def errors(self) -> np.ndarray | None:
        """Noisy errors per bin (K,); None where only rows were asked for."""
        return self.total("errors") if self.question.asks == "errors" else None

    @property
    def rows(self) -> np.ndarray:
        """Rows per bin (K,), noisy where rows are protected."""
        return self.total("rows")

    @property
    def changes(self) -> None:
        """No answer is scaled or clipped."""

    def total(self, name: str) -> np.ndarray:
        """As `SharedAnswers.total`. Raises `FederationError` for counts that no honest parties have."""
        found: np.ndarray = super().total(name)
        reach = REACH * math.sqrt(2 * self.wholes) * self._deviation  # rows are errors and corrects, with noise of each
        require_reachable(found, -reach, self.answered * self._most + reach, self.answered)
        return found

    def _impossible(self, submission: Submission) -> np.ndarray:
        bad = super()._impossible(submission)
        if "rows" in self._open:
            bad |= ~possible_rows(self.question.bins, submission.arrays["rows"], self._most)
        return bad
