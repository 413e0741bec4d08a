"""Answers `votes`: each party's local classifier labels the public auxiliary rows."""

from __future__ import annotations

import numpy as np

from federation.messages import Submission, VotesQuestion
from parties.holdings import Cohort
from parties.training import trained


def answer(cohort: Cohort, question: VotesQuestion) -> Submission:
    """One class per auxiliary row and party; a trusted-only submission, for the aggregator's eyes (Hamm, Alg. 1-2).

    A party whose data or training fails is named among the failures.
    """
    outcome = trained(cohort, question.training)
    declared = question.fields()["votes"]
    votes = np.empty((len(outcome.classifiers), *declared.shape), dtype=declared.dtype)
    for row, predict in zip(votes, outcome.classifiers.values(), strict=True):
        row[:] = predict(question.rows)
    parties = np.fromiter(outcome.classifiers, dtype=np.int64, count=len(outcome.classifiers))
    return Submission(question.kind, parties, {"votes": votes}, None, outcome.failures)
