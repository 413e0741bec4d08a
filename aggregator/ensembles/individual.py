"""The baseline `individual`: mean accuracy of the parties' own classifiers, NON-PRIVATE."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from federation.messages import IndividualQuestion, Submission, check_submission


class IndividualScores:
    """Collects the scores of a sample of at most `parties` parties; sums in party order, whoever answers first."""

    def __init__(self, question: IndividualQuestion, parties: int) -> None:
        self._question = question
        self._scores = {name: np.full(min(parties, question.first), np.nan) for name in question.fields()}

    @property
    def answered(self) -> int:
        """Number of scores so far."""
        return int(min(np.isfinite(scores).sum() for scores in self._scores.values()))

    def add(self, submission: Submission) -> dict[int, str]:
        """Keep a submission's scores; returns the parties refused and why."""
        check_submission(self._question, submission)
        fields, first = self._question.fields(), next(iter(self._scores.values()))
        refused = submission.parties >= len(first)
        refused |= np.isfinite(first[np.where(refused, 0, submission.parties)]) & ~refused
        for name, values in submission.arrays.items():
            refused |= fields[name].invalid(values)
        for name, values in submission.arrays.items():
            self._scores[name][submission.parties[~refused]] = values[~refused]
        return {int(party): "no score of a party in the sample" for party in submission.parties[refused]}

    def means(self) -> dict[str, float]:
        """Mean of each score over the parties that answered."""
        return {name: float(np.nanmean(scores)) for name, scores in self._scores.items() if self.answered}


def best_means(scores: Sequence[IndividualScores]) -> dict[str, float] | None:
    """The means behind the feature map that suits the parties' accuracy best, the first of equals; None for no map."""
    return max((one.means() for one in scores), key=lambda means: means.get("accuracy", 0.0), default=None)
