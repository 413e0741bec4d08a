"""Who counts, and why an answer does not: of collectors in general, and of every one that there is."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from support import linear_labels, two_class_parties
from support.two_class_questions import marginals, moment

from aggregator.collectors.bags import BagAnswers
from aggregator.collectors.collectors import Answers
from aggregator.collectors.labels import LabelAnswers, LabelSumAnswers
from aggregator.collectors.marginals import MarginalAnswers
from aggregator.collectors.row_sums import MomentAnswers
from aggregator.collectors.vectors import VectorAnswers
from aggregator.ensembles.output import ProbabilityTally, VoteTally
from aggregator.server.app import IndividualScores
from aggregator.trial.feature_fitting import fit
from federation.contract.plugins import Reference
from federation.contract.query import Field, Question, ReleaseId, Submission
from federation.features.feature_map import Ball
from federation.queries.bags import Bags, CountsNoise, CountsQuestion
from federation.queries.labels import (
    LabelledRows,
    LabelsNoise,
    LabelSumsNoise,
    LabelSumsQuestion,
    PrivateLabelsQuestion,
)
from federation.queries.votes import (
    IndividualQuestion,
    ParametersQuestion,
    ProbabilitiesQuestion,
    Training,
    VotesQuestion,
)
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort


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


def test_what_cannot_be_kept_does_not_count_as_answered():
    class Full(Kept):
        def _keep(self, parties, arrays):
            raise MemoryError

    answers = Full(Numbers(), 4)
    with pytest.raises(MemoryError):
        answers.add(sent([0, 1], [0.5, 0.5]))
    assert answers.answered == 0


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


DECLARED = 2  # parties of every collector
ROWS_OF_A_BAG = 60  # of the parties in `bagged`
RELEASE = ReleaseId("a release")
PUBLIC = np.random.default_rng(1).normal(size=(11, 4))
TRAINING = Training(
    fit(["unit_norm"], PUBLIC), 3, {"name": "logistic", "parameters": {"regularisation": 1e-2}}, trial=0
)

QUESTIONS = {
    "votes": ("synthetic", VotesQuestion(TRAINING, PUBLIC)),
    "probabilities": ("synthetic", ProbabilitiesQuestion(TRAINING, PUBLIC)),
    "vectors": ("synthetic", ParametersQuestion(TRAINING, 1e-6, 100.0)),
    "scores": ("synthetic", IndividualQuestion(TRAINING, 9)),
    "bags": ("bagged", CountsQuestion(CountsNoise("pure", 1.0), Bags(2, 3), release=RELEASE, seeded=True)),
    "labels": (
        "linear_labels",
        PrivateLabelsQuestion(
            LabelsNoise("laplace", 1.0),
            LabelledRows(fit(["constant"], linear_labels.public_table().rows), *linear_labels.RANGE, most=90),
            release=RELEASE,
            seeded=True,
        ),
    ),
    "label sums": (
        "linear_labels",
        LabelSumsQuestion(
            LabelSumsNoise("pure", 1.0, 0.0),
            LabelledRows(fit(["constant"], linear_labels.public_table().rows), *linear_labels.RANGE, most=90),
            "optimal",
            release=RELEASE,
            seeded=True,
        ),
    ),
    "moments": ("two_class_parties", replace(moment(), most=two_class_parties.ROWS + 7)),
    "marginals": ("two_class_parties", marginals()),
}
COLLECTORS = {
    "votes": lambda question: VoteTally(question, DECLARED),
    "probabilities": lambda question: ProbabilityTally(question, DECLARED),
    "vectors": lambda question: VectorAnswers(question, DECLARED, Ball(1.0)),
    "scores": lambda question: IndividualScores(question, DECLARED),
    "bags": lambda question: BagAnswers(question, DECLARED, ROWS_OF_A_BAG, question.promise(), 1e3),
    "labels": lambda question: LabelAnswers(question, DECLARED, question.promise()),
    "label sums": lambda question: LabelSumAnswers(question, DECLARED, question.promise()),
    "moments": lambda question: MomentAnswers(question, DECLARED, question.promise()),
    "marginals": lambda question: MarginalAnswers(question, DECLARED, 100, question.promise()),
}


def of(submission, *parties):
    """The part of a submission that these parties sent."""
    chosen = [submission.parties.tolist().index(party) for party in parties]
    arrays = {name: array[chosen] for name, array in submission.arrays.items()}
    return replace(submission, parties=np.array(parties), arrays=arrays)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_second_answer_and_one_of_nobody_declared_are_called_that_and_change_nothing(name):
    provider, question = QUESTIONS[name]
    sent = answered(Cohort(Reference(f"support.{provider}:Parties").to_json(), 0, DECLARED + 2, 1), question)
    assert (sorted(sent.parties), sent.failures) == ([0, 1, 2, 3], {})
    nobody = f"not one of the {DECLARED} declared parties"
    again = "answered twice; only its first answer counts"
    collector = COLLECTORS[name](question)

    assert collector.add(of(sent, 0, 3)) == {3: nobody}
    assert collector.answered == 1
    before = pickle.dumps(collector)
    assert collector.add(of(sent, 2, 0)) == {2: nobody, 0: again}
    assert pickle.dumps(collector) == before

    assert collector.add(of(sent, 0, 1)) == {0: again}
    assert collector.answered == DECLARED
    assert pickle.dumps(collector) != before
