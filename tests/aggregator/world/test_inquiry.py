from dataclasses import replace

import numpy as np
import pytest

from aggregator.ensembles.tally import VoteTally
from aggregator.world.inquiry import Inquiry
from federation.contract.errors import InputError
from federation.features import fit
from federation.questions.votes import Training, VotesQuestion


class Averages:
    """A collector whose `recipe` says what it makes of the answers."""

    def __init__(self, clip):
        self.recipe = clip


@pytest.fixture
def training(public):
    return Training(fit(["unit_norm"], public.rows), 3, {"name": "logistic", "parameters": {}}, 0)


def test_equal_questions_are_asked_once(training, public):
    inquiry = Inquiry()
    first, again = (VotesQuestion(training, np.array(public.rows)) for _ in range(2))
    kept = inquiry.add(first, training, VoteTally(first, 5))
    assert inquiry.add(again, training, VoteTally(again, 5)) is kept
    [(question, collectors)] = inquiry.questions()
    assert question is first
    assert collectors == [kept]


def test_other_rows_are_another_question(training, public):
    inquiry = Inquiry()
    for rows in (public.rows, public.rows[:-1], public.rows + 1e-12):
        question = VotesQuestion(training, rows)
        inquiry.add(question, training, VoteTally(question, 5))
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
        inquiry.add(question, question.training, VoteTally(question, 5))
    assert [question.training.trial for question, _ in inquiry.questions()] == [0, 0, 1, 1]


def test_a_round_asks_only_what_was_added_since_the_last(training, public):
    inquiry = Inquiry()
    first, second = (VotesQuestion(training, rows) for rows in (public.rows, public.rows[:9]))
    kept = inquiry.add(first, training, VoteTally(first, 5))
    inquiry.close()
    assert inquiry.questions() == []
    inquiry.add(second, training, VoteTally(second, 5))
    assert [question for question, _ in inquiry.questions()] == [second]
    assert inquiry.add(first, training, VoteTally(first, 5)) is kept
    assert len(list(inquiry.collectors())) == 2


def test_answers_of_an_earlier_round_cannot_be_collected_anew(training, public):
    inquiry = Inquiry()
    question = VotesQuestion(training, public.rows)
    inquiry.add(question, training, Averages(1.0))
    inquiry.close()
    with pytest.raises(InputError, match="has been answered"):
        inquiry.add(question, training, Averages(2.0))
