"""The baseline `individual`: mean accuracy of the parties' own classifiers, NON-PRIVATE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from aggregator.answers.roll import Roll
from federation.contract.submission import Submission, check_submission
from federation.questions.votes import IndividualQuestion


class IndividualScores:
    """Collects the scores of a sample of at most `parties` parties; sums in party order, whoever answers first."""

    recipe: tuple[Any, ...] = ()

    def __init__(self, question: IndividualQuestion, parties: int) -> None:
        self._question = question
        self._roll = Roll(min(parties, question.first))
        self._scores = {name: np.full(self._roll.parties, np.nan) for name in question.fields()}

    @property
    def answered(self) -> int:
        """Number of scores so far."""
        return self._roll.answered

    def add(self, submission: Submission) -> dict[int, str]:
        """Keep a submission's scores; returns the parties refused and why."""
        check_submission(self._question, submission)
        fields = self._question.fields()
        faults = {f"no {name} from 0 to 1": fields[name].invalid(found) for name, found in submission.arrays.items()}
        counted, refused = self._roll.admit(submission.parties, faults)
        for name, found in submission.arrays.items():
            self._scores[name][submission.parties[counted]] = found[counted]
        return refused

    def means(self) -> dict[str, float]:
        """Mean of each score over the parties that answered."""
        return {name: float(np.nanmean(scores)) for name, scores in self._scores.items() if self.answered}


def best_means(scores: Sequence[IndividualScores]) -> dict[str, float] | None:
    """The means behind the feature map that suits the parties' accuracy best, the first of equals; None for no map."""
    return max((one.means() for one in scores), key=lambda means: means.get("accuracy", 0.0), default=None)
