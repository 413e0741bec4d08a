"""Who counts, and why an answer does not: of collectors in general, and of every one that there is.

Answers that parties made private themselves: what each must carry, and what is kept of them. A sum of which nobody sees
a part: by a simulation's summation, in clear, or as real parties' masked sum gives it. What a plan names to add shares
with.
"""

import itertools
import pickle
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from support import linear_labels, two_class_parties
from support.summed_plans import plan
from support.two_class_questions import marginals, moment

from aggregator.collectors.collectors import UNSEEN, Kept, Secure, Summed, summation_of
from aggregator.collectors.vectors import VectorAnswers
from aggregator.ensembles.output import ProbabilityTally, VoteTally
from aggregator.server.app import IndividualScores
from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError, QuorumError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Unit
from federation.contract.honest import Honest, PartySize
from federation.contract.plugins import Reference
from federation.contract.query import Field, Question, ReleaseId, Submission
from federation.contract.trust import TrustTerms
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

DECLARED = 2  # parties of every collector
ROWS_OF_A_BAG = 60  # of the parties in `bagged`
PUBLIC = np.random.default_rng(1).normal(size=(11, 4))
TRAINING = Training(
    fit(["unit_norm"], PUBLIC), 3, {"name": "logistic", "parameters": {"regularisation": 1e-2}}, trial=0
)

LABELLED = LabelledRows(fit(["constant"], linear_labels.public_table().rows), *linear_labels.RANGE, most=90)
NOTED = {"release": ReleaseId("a release"), "seeded": True}
QUESTIONS = {
    "votes": ("synthetic", VotesQuestion(TRAINING, PUBLIC)),
    "probabilities": ("synthetic", ProbabilitiesQuestion(TRAINING, PUBLIC)),
    "vectors": ("synthetic", ParametersQuestion(TRAINING, 1e-6, 100.0)),
    "scores": ("synthetic", IndividualQuestion(TRAINING, 9)),
    "bags": ("bagged", CountsQuestion(CountsNoise("pure", 1.0), Bags(2, 3), **NOTED)),
    "labels": ("linear_labels", PrivateLabelsQuestion(LabelsNoise("laplace", 1.0), LABELLED, **NOTED)),
    "label sums": ("linear_labels", LabelSumsQuestion(LabelSumsNoise("pure", 1.0, 0.0), LABELLED, "optimal", **NOTED)),
    "moments": ("two_class_parties", replace(moment(), most=two_class_parties.ROWS + 7)),
    "marginals": ("two_class_parties", marginals()),
}
COLLECTORS = {
    "votes": lambda question: VoteTally(question, DECLARED),
    "probabilities": lambda question: ProbabilityTally(question, DECLARED),
    "vectors": lambda question: VectorAnswers(question, DECLARED, Ball(1.0)),
    "scores": lambda question: IndividualScores(question, DECLARED),
    "bags": lambda question: Kept(question, DECLARED, question.promise(), public=PartySize(2, ROWS_OF_A_BAG)),
    "labels": lambda question: Kept(question, DECLARED, question.promise()),
    "label sums": lambda question: Summed(question, DECLARED, question.promise()),
    "moments": lambda question: Summed(question, DECLARED, question.promise()),
    "marginals": lambda question: Summed(question, DECLARED, question.promise(), public=PartySize(1, 100)),
}


def part(submission, *parties):
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

    assert collector.add(part(sent, 0, 3)) == {3: nobody}
    assert collector.answered == 1
    before = pickle.dumps(collector)
    assert collector.add(part(sent, 2, 0)) == {2: nobody, 0: again}
    assert pickle.dumps(collector) == before

    assert collector.add(part(sent, 0, 1)) == {0: again}
    assert collector.answered == DECLARED
    assert pickle.dumps(collector) != before


PROMISE = Guarantee(1.0, 1e-6, Unit.LABEL, Adjacency.REPLACE, "some noise", {"scale": 2.0})
OUT_OF_RANGE = "answer refused: values outside the declared range"
UNPROMISED = "answer refused: it lacks the guarantee asked for"


@dataclass(frozen=True)
class Pairs(Question):
    """Two numbers of each party, and how many rows it has."""

    kind: ClassVar[str] = "pairs"

    def fields(self):
        return {"numbers": Field((2,), minimum=-1.0, maximum=1.0), "size": Field((), minimum=1.0, maximum=9.0)}


def pairs(parties, numbers, sizes=None, guarantee=PROMISE):
    arrays = {"numbers": np.array(numbers, dtype=float), "size": np.array(sizes or [1.0] * len(parties), dtype=float)}
    return Submission("pairs", np.array(parties, dtype=np.int64), arrays, guarantee)


def test_what_cannot_be_kept_does_not_count_and_declared_parties_count_once():
    class Full(Kept):
        def _keep(self, parties, arrays):
            raise MemoryError

    answers = Full(Pairs(), 4, PROMISE)
    with pytest.raises(MemoryError):
        answers.add(pairs([0, 1], np.zeros((2, 2))))
    assert answers.answered == 0
    answers = Kept(Pairs(), 4, PROMISE)
    assert answers.add(pairs([], np.zeros((0, 2)))) == {}
    assert answers.answered == 0
    refused = answers.add(pairs([0, 3, 9], [[0.5, 0.0], [2.0, 0.0], [2.0, 0.0]]))
    assert refused == {3: OUT_OF_RANGE, 9: "not one of the 4 declared parties"}
    refused = answers.add(pairs([3, 0], [[0.25, 0.0], [2.0, 0.0]]))  # a refused party may still answer well
    assert "twice" in refused[0]
    assert (answers.answered, answers.parties, answers.present.tolist()) == (2, 4, [0, 3])
    assert answers.array("numbers")[[0, 3], 0].tolist() == [0.5, 0.25]


class Even(Honest):
    """Honest parties have an even number of rows; only what is in range is looked at."""

    def plausible(self, arrays):
        assert (arrays["size"] <= 9).all()
        assert np.isfinite(arrays["numbers"]).all()
        return arrays["size"] % 2 == 0


def test_another_guarantee_than_the_one_asked_for_is_refused():
    answers = Kept(Pairs(), 2, PROMISE)
    for change in (
        {"epsilon": 2.0},
        {"delta": 0.0},
        {"unit": Unit.ROW},
        {"adjacency": Adjacency.ADD_REMOVE},
        {"mechanism": "none"},
    ):
        assert answers.add(pairs([0], [[0.0, 0.0]], guarantee=replace(PROMISE, **change))) == {0: UNPROMISED}
    assert answers.add(pairs([0], [[0.0, 0.0]], guarantee=None)) == {0: UNPROMISED}
    assert answers.answered == 0
    # Numbers and assumptions of a party's own make no other guarantee, and where none was asked for, any will do.
    own = replace(PROMISE, parameters={"scale": 3.0}, assumptions=(Assumption("mine", Check.DECLARED),))
    assert answers.add(pairs([0], [[0.0, 0.0]], guarantee=own)) == {}
    for guarantee in (None, PROMISE):
        assert Kept(Pairs(), 2, None).add(pairs([0], [[0.0, 0.0]], guarantee=guarantee)) == {}


def test_what_no_honest_party_can_say_is_refused_and_every_other_answer_is_kept_by_itself(monkeypatch):
    answers = Kept(Pairs(), 4, PROMISE)
    answers.add(pairs([3, 1], [[0.25, 0.5], [-1.0, 1.0]], [7, 2]))
    np.testing.assert_array_equal(answers.array("numbers"), [[0, 0], [-1, 1], [0, 0], [0.25, 0.5]])
    np.testing.assert_array_equal(answers.array("size"), [0, 2, 0, 7])
    monkeypatch.setattr(Pairs, "honest", lambda self, public: Even())
    for kind, wrong in itertools.product((Kept, Summed), (np.nan, np.inf, -1.001)):
        answers = kind(Pairs(), 4, PROMISE)
        refused = answers.add(pairs([0, 1, 2, 3], [[0, 0], [0, wrong], [0, 0], [0, 0]], [2, 4, 3, 99]))
        assert refused == dict.fromkeys((1, 2, 3), OUT_OF_RANGE)
        assert answers.present.tolist() == [0]


QUESTION = moment("gaussian", contributors=2)
STEP = QUESTION.mechanism().additive.step
SEEN: list = []


@dataclass(frozen=True)
class Recorded:
    """A masked summation that keeps what it is given, and says a total of its own."""

    question: str
    terms: TrustTerms
    numbers: int
    masked: bool = field(default=True)

    def require(self, answered):
        if answered.sum() < 2:
            raise QuorumError("too few")

    def total(self, parts, answered):
        SEEN.append((parts.copy(), answered.copy()))
        return parts[answered].sum(axis=0) + 1

    def told(self, answered):
        return f"{answered.sum()} answered"


def shared_answers_sent(parties, steps, size=10.0) -> Submission:
    sums = np.repeat(np.asarray(steps, dtype=float)[:, None, :] * STEP, QUESTION.draws, axis=1)
    arrays = {"size": np.full(len(parties), size), "sums": sums}
    return Submission("mean_operator", np.array(parties), arrays, QUESTION.promise())


def test_the_total_is_that_of_the_masked_sum_over_who_answered() -> None:
    SEEN.clear()
    collector = Secure(QUESTION, plan(4, summation=f"{__name__}:Recorded"))
    assert collector.add(shared_answers_sent([0, 3], [[1, -2, 3, 4], [10, 20, 30, 40]])) == {}
    np.testing.assert_array_equal(collector.total("sums")[0], np.array([12, 19, 34, 45]) * STEP)
    assert collector.total("sums").shape == (QUESTION.draws, 4)
    [(parts, answered)] = SEEN  # asked once
    assert answered.tolist() == [True, False, False, True]
    assert parts.dtype == np.int64
    assert collector.total("size") == 20
    assert collector.wholes == 1.0
    assert collector.told == (UNSEEN, "2 answered")
    clear = Secure(QUESTION, plan(4))
    clear.add(shared_answers_sent([0, 3], [[1, -2, 3, 4], [10, 20, 30, 40]]))
    np.testing.assert_array_equal(clear.total("sums")[0], np.array([11, 18, 33, 44]) * STEP)
    assert clear.told == (UNSEEN,)
    few = Secure(QUESTION, plan(4, summation=f"{__name__}:Recorded"))
    few.add(shared_answers_sent([0], [[1, -2, 3, 4]]))
    with pytest.raises(QuorumError):
        few.total("sums")


@pytest.mark.parametrize("name", ["", f"{__name__}:Recorded"])
def test_a_hostile_party_moves_a_sum_without_honest_bounds_by_anything_that_a_masked_sum_takes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(QUESTION), "honest", lambda self, public: Honest())
    collector = Secure(QUESTION, plan(4, summation=name))
    collector.add(shared_answers_sent([0, 1], [[2.0**50, -(2.0**80), 0, 0.4], [5, 0, 0, 0.2]]))
    extra = 1 if name else 0
    moved = np.array([2.0**50 + 5, -(2.0**62), 0, 0]) + extra
    np.testing.assert_array_equal(collector.total("sums")[0], moved * STEP)


def test_who_says_nonsense_is_left_out_before_the_sum_and_a_masked_total_is_taken_as_it_is():
    collector = Secure(QUESTION, plan(4))
    assert list(collector.add(shared_answers_sent([0, 1], [[np.nan, 0, 0, 0], [1, 0, 0, 0]]))) == [0]
    assert collector.total("sums")[0, 0] == STEP
    collector = Secure(QUESTION, plan(4))
    said = Submission("mean_operator", np.array([0, 2]), {"size": np.array([10.0, -3.0])})
    assert [*collector.refused(said)] == [2]
    assert collector.answered == 0
    with pytest.raises(InputError):
        collector.refused(Submission("mean_operator", np.array([0]), {"size": np.array([1])}))
    collector = Secure(QUESTION, plan(4))
    opened = Submission("mean_operator", np.array([1, 2]), {"size": np.array([10.0, 10.0])}, QUESTION.promise())
    whole = np.arange(QUESTION.draws * 4) - 3
    collector.take_total(opened, whole)
    np.testing.assert_array_equal(collector.total("sums"), (whole * STEP).reshape(QUESTION.draws, 4))
    assert (collector.answered, collector.total("size")) == (2, 20)
    assert "letters between real parties" in collector.told[1]
    with pytest.raises(InputError):
        Secure(QUESTION, plan(4)).take_total(replace(opened, arrays={"size": np.array([10.0, 1e9])}), whole)


def named(**known):
    """Return the arguments that a summation gets from the plan."""
    return known


def test_a_named_summation_is_told_the_public_numbers() -> None:
    def of(name: str, release: str = "a release"):
        asked = SimpleNamespace(release=ReleaseId(release))
        return summation_of(plan(9, 0.6, servers="two", summation=name), asked, 5)

    found = of(f"{__name__}:named")
    assert found | {"question": ""} == {"question": "", "terms": TrustTerms(9, 0.6, 0.1, "two"), "numbers": 5}
    assert len(bytes.fromhex(found["question"])) == 32
    assert of(f"{__name__}:named", "another")["question"] != found["question"]
    assert of("") is None
    with pytest.raises(InputError, match="nowhere:nothing"):
        of("nowhere:nothing")
