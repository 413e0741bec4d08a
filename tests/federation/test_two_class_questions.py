"""Questions about the mean operator and about error marginals: the wire, their guarantees, and what is refused."""

from dataclasses import replace

import pytest
from two_class_questions import marginals, moment

from federation.contract.errors import InputError
from federation.grids.codec import decode_question, encode_question, question_digest
from federation.contract.guarantee import SEEDED, Adjacency, NoGuarantee, Unit
from federation.questions.marginals import Exchange
from federation.questions.marginals import answer_guarantee, exchange_guarantee
from federation.questions.moments import moment_guarantee
from federation.privacy.composition import compose
from federation.row_premises import DIFFERENT_PEOPLE, HELD_ONCE, UNTIMED

QUESTIONS = [moment(), moment("gaussian", "row", 7), marginals(), marginals("published", "label", asks="rows")]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_survives_the_wire(question):
    restored = decode_question(encode_question(question), type(question))
    assert restored.fields() == question.fields()
    assert question_digest(restored) == question_digest(question)


def test_answers_have_one_entry_per_bin_and_rates_as_published():
    question = marginals()
    assert {name: field.shape for name, field in question.fields().items()} == {"errors": (15,), "rows": (15,)}
    assert set(marginals("published", "label").fields()) == {"rates", "rows"}
    assert set(marginals(asks="rows").fields()) == {"rows"}


@pytest.mark.parametrize("protect", ["label", "row"])
def test_the_mean_operator_protects_what_is_asked_for(protect):
    guarantee = moment_guarantee(moment("gaussian", protect))
    assert (guarantee.unit, guarantee.adjacency, guarantee.epsilon) == (Unit(protect), Adjacency.REPLACE, 1.0)
    texts = " ".join(assumption.text for assumption in guarantee.assumptions)
    assert ("features are public" in texts) == (protect == "label")
    assert "cut to norm 1" in texts
    assert guarantee.parameters["entropy"] == "seed"


def test_published_noise_promises_what_it_keeps():
    guarantee = moment_guarantee(moment("published_laplace"))
    assert guarantee.epsilon == pytest.approx(2.0, rel=1e-6)  # the root of 4 features
    assert guarantee.parameters["claimed_epsilon"] == 1.0


def test_without_noise_there_is_no_guarantee():
    assert isinstance(moment_guarantee(moment("off")), NoGuarantee)
    assert isinstance(exchange_guarantee(marginals("off")), NoGuarantee)


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
@pytest.mark.parametrize(("protect", "adjacency"), [("row", "add_remove"), ("row", "replace"), ("label", "replace")])
def test_the_answers_of_an_exchange_compose_to_what_it_promises(noise, protect, adjacency):
    questions = [marginals(noise, protect, adjacency, queries=3, query=query) for query in range(3)]
    whole = exchange_guarantee(questions[0])
    assert (whole.unit, whole.adjacency, whole.epsilon) == (Unit(protect), Adjacency(adjacency), 1.0)
    answers = [answer_guarantee(question) for question in questions]
    assert [answer.parameters["query"] for answer in answers] == [0, 1, 2]
    epsilon, delta = compose(answers, whole.delta)
    assert 0.999 < epsilon < 1.1
    assert delta <= whole.delta


@pytest.mark.parametrize(
    ("question", "guarantees"),
    [
        (moment(), (moment_guarantee,)),
        (moment(protect="row"), (moment_guarantee,)),
        (marginals(), (exchange_guarantee, answer_guarantee)),
        (marginals(adjacency="replace"), (exchange_guarantee, answer_guarantee)),
        (marginals("published", "label", "replace"), (exchange_guarantee, answer_guarantee)),
    ],
)
def test_guarantees_say_whose_bits_the_noise_takes_and_what_is_declared_of_rows(question, guarantees):
    unseeded = replace(question, noising=replace(question.noising, seeded=False))
    for guarantee in guarantees:
        assert guarantee(question).parameters["entropy"] == "seed"
        assert SEEDED in guarantee(question).assumptions
        assert guarantee(unseeded).parameters["entropy"] == "system"
        assert SEEDED not in guarantee(unseeded).assumptions
        assert {HELD_ONCE, DIFFERENT_PEOPLE} < set(guarantee(unseeded).assumptions)
        assert (UNTIMED in guarantee(unseeded).assumptions) == (question.protect == "row")


@pytest.mark.parametrize(("queries", "query"), [(2, 2), (2, -1), (0, 0), (2, 1.0), (True, 0)])
def test_a_query_beyond_those_agreed_on_is_refused(queries, query):
    with pytest.raises(InputError, match=r"refused|whole number"):
        Exchange("an exchange", queries, query)


@pytest.mark.parametrize(
    ("question", "guarantee", "words"),
    [
        (moment(protect="party"), moment_guarantee, "protect must be label or row"),
        (replace(marginals(), protect="person"), exchange_guarantee, "protect must be label or row"),
        (replace(marginals(), adjacency="swap"), exchange_guarantee, "adjacency must be"),
        (moment("strange"), moment_guarantee, "noise must be"),
        (marginals("published"), exchange_guarantee, "label"),
    ],
)
def test_what_no_mechanism_can_do_is_refused(question, guarantee, words):
    with pytest.raises(InputError, match=words):
        guarantee(question)
