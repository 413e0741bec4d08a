"""Answers that each party gives by itself, gathered to one submission of its cohort."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from federation.guarantee import Guarantee
from federation.messages import Question, Submission
from parties.holdings import Cohort
from parties.isolation import Failure, isolated


def gathered(
    cohort: Cohort,
    question: Question,
    act: Callable[[int], Mapping[str, np.ndarray]],
    guarantee: Guarantee | None = None,
) -> Submission:
    """What `act` makes of each party: the question's fields without the party axis.

    A party for which it raises is named among the failures, and costs no other party.
    """
    fields = question.fields()
    answers: dict[int, Mapping[str, np.ndarray]] = {}
    failures: dict[int, str] = {}
    for party in cohort.parties:
        outcome = isolated(cohort, party, lambda party=party: act(party))  # type: ignore[misc]
        if isinstance(outcome, Failure):
            failures[party] = outcome.reason
        else:
            answers[party] = outcome
    arrays = {
        name: np.array([answer[name] for answer in answers.values()], dtype=declared.dtype).reshape(-1, *declared.shape)
        for name, declared in fields.items()
    }
    return Submission(question.kind, np.array(list(answers), dtype=np.int64), arrays, guarantee, failures)
