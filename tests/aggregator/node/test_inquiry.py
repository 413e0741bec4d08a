from dataclasses import replace

import numpy as np
import pytest
from support.two_class_questions import marginals

from aggregator.ensembles.output import Ensemble, VoteTally
from aggregator.server.releasing import Inquiry
from aggregator.trial.feature_fitting import fit
from aggregator.trial.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.contract.query import ReleaseId
from federation.queries.bags import Bags, CountsNoise, CountsQuestion
from federation.queries.votes import Training, VotesQuestion


class Averages:
    """A collector whose `recipe` says what it makes of the answers."""

    def __init__(self, clip=1.0):
        self.recipe = (clip,)


def tally(question):
    """Where votes of five parties go."""
    return Ensemble(PublicRows(question.training.feature_map, question.rows), VoteTally(question, 5))


@pytest.fixture
def training(public):
    return Training(fit(["unit_norm"], public.rows), 3, {"name": "logistic", "parameters": {}}, 0)


def test_equal_questions_are_asked_once(training, public):
    inquiry = Inquiry()
    first, again = (VotesQuestion(training, np.array(public.rows)) for _ in range(2))
    kept = inquiry.add(first, training, tally(first))
    assert inquiry.add(again, training, tally(again)) is kept
    [(question, collectors)] = inquiry.questions()
    assert question is first
    assert collectors == [kept]


def test_other_rows_are_another_question(training, public):
    inquiry = Inquiry()
    for rows in (public.rows, public.rows[:-1], public.rows + 1e-12):
        question = VotesQuestion(training, rows)
        inquiry.add(question, training, tally(question))
    assert len(inquiry.questions()) == len(list(inquiry.collectors())) == 3


def test_collectors_of_one_question_differ_by_their_recipes(training, public):
    inquiry = Inquiry()
    question = VotesQuestion(training, public.rows)
    kept = [inquiry.add(question, training, Averages(clip)) for clip in (1.0, 2.0, 1.0)]
    assert kept[0] is kept[2]
    [(_, collectors)] = inquiry.questions()
    assert collectors == kept[:2]


def test_questions_with_one_training_are_neighbours(training, public):
    other = replace(training, trial=1)
    inquiry = Inquiry()
    asked = [VotesQuestion(t, rows) for rows in (public.rows, public.rows[:9]) for t in (training, other)]
    for question in asked:
        inquiry.add(question, question.training, tally(question))
    assert [question.training.trial for question, _ in inquiry.questions()] == [0, 0, 1, 1]


def test_a_round_asks_only_what_was_added_since_the_last(training, public):
    inquiry = Inquiry()
    first, second = (VotesQuestion(training, rows) for rows in (public.rows, public.rows[:9]))
    kept = inquiry.add(first, training, tally(first))
    inquiry.close()
    assert inquiry.questions() == []
    inquiry.add(second, training, tally(second))
    assert [question for question, _ in inquiry.questions()] == [second]
    assert inquiry.add(first, training, tally(first)) is kept
    assert len(list(inquiry.collectors())) == 2


def test_answers_of_an_earlier_round_cannot_be_collected_anew(training, public):
    inquiry = Inquiry()
    question = VotesQuestion(training, public.rows)
    inquiry.add(question, training, Averages(1.0))
    inquiry.close()
    with pytest.raises(InputError, match="has been answered"):
        inquiry.add(question, training, Averages(2.0))


@pytest.fixture
def counts():
    noise = CountsNoise("pure", 1.0, 0.0)
    return CountsQuestion(noise, Bags(2, 3), release=ReleaseId("a release"), seeded=True)


@pytest.mark.parametrize(
    "change",
    [{"noise": CountsNoise("pure", 2.0, 0.0)}, {"bags": Bags(1, 3)}, {"draws": 2}, {"seeded": False}],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("later", [False, True])
def test_two_different_questions_never_share_the_name_of_a_release(training, counts, change, later):
    """Nor do they in different rounds: equal noise would cancel between their answers."""
    inquiry = Inquiry()
    inquiry.add(counts, training, Averages())
    if later:
        inquiry.close()
    other = replace(counts, **change)
    with pytest.raises(InputError, match="two different questions 'counts' share the release 'a release'"):
        inquiry.add(other, training, Averages())
    inquiry.add(replace(other, release=ReleaseId("another release")), training, Averages())
    assert len(list(inquiry.collectors())) == 2


def test_equal_questions_and_the_queries_of_one_exchange_share_the_name_of_a_release(training):
    inquiry = Inquiry()
    kept = inquiry.add(marginals(query=0), training, Averages())
    assert inquiry.add(marginals(query=0), training, Averages()) is kept
    inquiry.close()
    inquiry.add(marginals(query=1), training, Averages())
    assert [question.release.query for question, _ in inquiry.questions()] == [1]
