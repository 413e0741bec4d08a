"""Answers `votes`: each party's local classifier labels the public auxiliary rows."""

from __future__ import annotations

import numpy as np

from federation.contract.submission import Submission
from federation.numerics.memory import keep_freed_memory
from federation.questions.votes import VotesQuestion
from parties.holdings.cohort import Cohort
from parties.holdings.groups import Group, asked
from parties.training.training import trained


def answer(cohort: Cohort, question: VotesQuestion) -> Submission:
    """One class per auxiliary row and party; a trusted-only submission, for the aggregator's eyes (Hamm, Alg. 1-2).

    A party whose data, training or prediction fails is named among the failures, and costs no other party.
    """
    keep_freed_memory()
    outcome = trained(cohort, question.training)
    declared = question.fields()["votes"]
    votes = np.empty((sum(len(group.parties) for group in outcome.groups), *declared.shape), dtype=declared.dtype)
    filled = 0

    def vote(group: Group) -> None:
        nonlocal filled
        end = filled + len(group.parties)
        group.votes(question.rows, out=votes[filled:end])
        filled = end

    cast, failures = asked(cohort, outcome.groups, vote)
    parties = np.concatenate([np.empty(0, np.int64), *(group.parties for group, _ in cast)])
    return Submission(question.kind, parties, {"votes": votes[:filled]}, None, outcome.failures | failures)
