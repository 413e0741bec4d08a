"""Questions about one vector per party for a sum: their sizes, what they take for granted, and what they promise."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.questions import QUESTIONS

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Check, Keeper, NoGuarantee, Unit
from federation.contract.query import Declared
from federation.engines.codec import decode_question, encode_question, question_digest
from federation.features.feature_map import Ball

ASKED = [QUESTIONS["statistic_sum"], QUESTIONS["parameter_sum"]]
each = pytest.mark.parametrize("question", ASKED, ids=lambda question: question.kind)


@each
def test_it_crosses_any_transport(question):
    read = decode_question(encode_question(question), type(question))
    assert question_digest(read) == question_digest(question)
    assert type(read.asked) is type(question.asked)
    assert read.ball == question.ball


@each
def test_an_answer_is_the_vector_for_each_draw_in_steps_of_the_noise(question):
    [field] = question.asked.fields().values()
    [own] = replace(question, draws=4).fields().values()
    assert own.shape == (4, field.numbers)
    assert question.steps == {"vectors": question.mechanism().additive.step}
    assert question.shared
    assert "share of the noise hides nothing by itself" in question.simulated_only()


@each
def test_it_promises_for_one_party_and_says_who_keeps_the_norm(question):
    promise = question.promise()
    assert (promise.unit, promise.adjacency) == (Unit.PARTY, Adjacency.REPLACE)
    assert (promise.epsilon, promise.delta) == (question.noise.epsilon, question.noise.delta)
    [norm] = [one for one in promise.assumptions if "by the party itself" in one.text]
    assert (norm.check, norm.keeper) == (Check.DECLARED, Keeper.SITE)
    assert question.ball.told in norm.text


@each
def test_a_party_that_counts_on_fewer_honest_ones_refuses(question):
    question.promise(Declared(honest=80, classes=3))
    for declared in (Declared(honest=79), Declared(classes=2)):
        with pytest.raises(InputError, match="this side declares"):
            question.promise(declared)


@each
def test_without_noise_it_promises_nothing_and_hides_nothing(question):
    off = replace(question, noise=replace(question.noise, kind="off"))
    assert isinstance(off.promise(), NoGuarantee)
    assert off.steps == {}


@each
def test_other_balls_and_contributors_make_other_noise(question):
    scale = question.mechanism().additive.scale
    assert replace(question, ball=Ball(2.0)).mechanism().additive.scale == pytest.approx(2 * scale, rel=0.01)
    assert replace(question, contributors=8).mechanism().additive.scale == scale
    with pytest.raises(InputError, match="contributors must be"):
        replace(question, contributors=0)


@each
def test_it_takes_the_work_of_the_vector_and_its_numbers(question):
    assert question.work() == question.asked.work() + question.numbers
