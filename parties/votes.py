"""Answers `votes`: each party's local classifier labels the public auxiliary rows."""

from __future__ import annotations

import numpy as np

from federation.errors import InputError
from federation.messages import Submission, VotesQuestion
from parties.classifiers import Predict
from parties.holdings import Cohort
from parties.isolation import Failure, isolated
from parties.training import trained


def _vote(predict: Predict, question: VotesQuestion) -> np.ndarray:
    declared = question.fields()["votes"]
    codes = np.asarray(predict(question.rows))
    if codes.shape != declared.shape or codes.dtype.kind not in "iu":
        raise InputError(f"the classifier must predict one class code per row, got {codes.dtype} of {codes.shape}")
    if codes.min(initial=0) < 0 or codes.max(initial=0) >= question.training.classes:
        raise InputError(f"the classifier predicted a class outside 0..{question.training.classes - 1}")
    return codes.astype(declared.dtype)


def answer(cohort: Cohort, question: VotesQuestion) -> Submission:
    """One class per auxiliary row and party; a trusted-only submission, for the aggregator's eyes (Hamm, Alg. 1-2).

    A party whose data, training or prediction fails is named among the failures, and costs no other party.
    """
    outcome = trained(cohort, question.training)
    failures = dict(outcome.failures)
    declared = question.fields()["votes"]
    votes = np.empty((len(outcome.classifiers), *declared.shape), dtype=declared.dtype)
    parties: list[int] = []
    for party, predict in outcome.classifiers.items():
        cast = isolated(cohort, party, lambda predict=predict: _vote(predict, question))  # type: ignore[misc]
        if isinstance(cast, Failure):
            failures[party] = cast.reason
        else:
            votes[len(parties)] = cast
            parties.append(party)
    ids = np.array(parties, dtype=np.int64)
    return Submission(question.kind, ids, {"votes": votes[: len(parties)]}, None, failures)
