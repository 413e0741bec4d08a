"""Answers `votes`: each party's local classifier labels the public auxiliary rows."""

from __future__ import annotations

import numpy as np

from federation.contract.submission import Submission
from federation.numerics.memory import keep_freed_memory
from federation.questions.votes import VotesQuestion
from parties.holdings.cohort import Cohort
from parties.holdings.groups import Group
from parties.training.linear import LinearGroup
from parties.training.training import answered_by_groups

_WORTHWHILE = 0.75  # share of different rows up to which copies of votes cost less than votes


def answer(cohort: Cohort, question: VotesQuestion) -> Submission:
    """One class per auxiliary row and party, for the trusted aggregator's eyes (Hamm et al. 2016, Alg. 1-2)."""
    keep_freed_memory()
    return answered_by_groups(cohort, question, lambda group: {"votes": _votes(group, question)})


def _votes(group: Group, question: VotesQuestion) -> np.ndarray:
    """Codes (P, N). Of linear classifiers, whose votes follow from a row alone, equal rows are voted on once."""
    if isinstance(group, LinearGroup):
        different, twins = question.different
        if len(different) <= _WORTHWHILE * len(twins):
            return np.take(group.votes(different), twins, axis=1, mode="clip")  # no place is checked: all are there
    return group.votes(question.rows)
