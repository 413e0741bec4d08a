"""The baseline `individual`: mean scores of the parties' own classifiers, NON-PRIVATE."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aggregator.answers.collecting import Answers
from federation.contract.query import Submission
from federation.queries.votes import IndividualQuestion


class IndividualScores(Answers):
    """Collects the scores of a sample of at most `parties` parties; sums in party order, whoever answers first."""

    question: IndividualQuestion

    def __init__(self, question: IndividualQuestion, parties: int) -> None:
        super().__init__(question, min(parties, question.first))
        self._scores = {name: np.full(self.parties, np.nan) for name in question.fields()}

    def _faults(self, submission: Submission) -> dict[str, np.ndarray]:
        fields = self.question.fields()
        return {f"no {name} from 0 to 1": fields[name].invalid(found) for name, found in submission.arrays.items()}

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        for name, found in arrays.items():
            self._scores[name][parties] = found

    def means(self) -> dict[str, float]:
        """Mean of each score over the parties that answered."""
        return {name: float(np.nanmean(scores)) for name, scores in self._scores.items() if self.answered}


def best_means(scores: Sequence[IndividualScores]) -> dict[str, float] | None:
    """The means behind the feature map that suits the parties' accuracy best, the first of equals; None for no map."""
    return max((one.means() for one in scores), key=lambda means: means.get("accuracy", 0.0), default=None)
