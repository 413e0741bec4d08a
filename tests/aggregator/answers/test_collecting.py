"""Who counts, and why an answer does not; `test_rolls` asks the same of every collector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from aggregator.answers.collecting import Answers
from federation.contract.question import Field, Question
from federation.contract.submission import Submission


@dataclass(frozen=True)
class Numbers(Question):
    """One number of each party."""

    kind: ClassVar[str] = "numbers"

    def fields(self):
        return {"number": Field((), minimum=0.0, maximum=1.0)}


class Kept(Answers):
    """What was kept, in the order in which it came."""

    def __init__(self, question, parties):
        super().__init__(question, parties)
        self.kept = []

    def _faults(self, submission):
        return {"bad": self.question.fields()["number"].invalid(submission.arrays["number"])}

    def _keep(self, parties, arrays):
        self.kept += list(zip(parties.tolist(), arrays["number"].tolist(), strict=True))


def sent(parties, numbers):
    return Submission("numbers", np.array(parties, dtype=np.int64), {"number": np.array(numbers, dtype=np.float64)})


def test_declared_parties_count_once_and_the_first_cause_is_told():
    answers = Kept(Numbers(), 4)
    refused = answers.add(sent([0, 3, 9], [0.5, 2.0, 2.0]))
    assert refused == {3: "bad", 9: "not one of the 4 declared parties"}
    assert answers.kept == [(0, 0.5)]
    refused = answers.add(sent([3, 0], [0.25, 2.0]))  # a refused party may still answer well, a counted one not again
    assert "twice" in refused[0]
    assert (answers.answered, answers.parties, answers.present.tolist()) == (2, 4, [0, 3])
    assert answers.kept == [(0, 0.5), (3, 0.25)]


def test_nobody_may_answer():
    answers = Kept(Numbers(), 2)
    assert answers.add(sent([], [])) == {}
    assert (answers.answered, answers.kept) == (0, [])
