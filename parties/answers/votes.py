"""Answers `votes`: each party's local classifier labels the public auxiliary rows."""

from __future__ import annotations

from federation.contract.query import Submission
from federation.numerics.rows import keep_freed_memory
from federation.queries.votes import VotesQuestion
from parties.holdings.cohort import Cohort
from parties.training.training import answered_by_groups


def answer(cohort: Cohort, question: VotesQuestion) -> Submission:
    """One class per auxiliary row and party, for the trusted aggregator's eyes (Hamm et al. 2016, Alg. 1-2)."""
    keep_freed_memory()
    return answered_by_groups(cohort, question, lambda group: {"votes": group.votes(question.rows)})
