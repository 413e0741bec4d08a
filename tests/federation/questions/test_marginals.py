"""The question about error marginals: the wire, what queries of an exchange promise together, and what is refused."""

from dataclasses import replace

import pytest
from support.two_class_questions import marginals

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, NoGuarantee, Unit
from federation.contract.query import Declared
from federation.engines.codec import decode_question, encode_question, question_digest
from federation.mechanisms.accounting.composition import compose
from federation.queries.marginals import Hypothesis

QUESTIONS = [marginals(), marginals("published", "label", asks="rows")]


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


def test_without_noise_there_is_no_guarantee():
    assert isinstance(marginals("off").payment(), NoGuarantee)


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
@pytest.mark.parametrize(("protect", "adjacency"), [("row", "add_remove"), ("row", "replace"), ("label", "replace")])
def test_the_answers_of_an_exchange_compose_to_what_it_promises(noise, protect, adjacency):
    questions = [marginals(noise, protect, adjacency, queries=3, query=query) for query in range(3)]
    whole = questions[0].payment()
    assert (whole.unit, whole.adjacency, whole.epsilon) == (Unit(protect), Adjacency(adjacency), 1.0)
    answers = [question.promise() for question in questions]
    assert [answer.parameters["query"] for answer in answers] == [0, 1, 2]
    epsilon, delta = compose(answers, whole.delta)
    assert 0.999 < epsilon < 1.1
    assert delta <= whole.delta


def test_all_queries_of_an_exchange_are_paid_for_alike():
    """Else its second query would be refused as one of another release."""
    assert marginals(query=0).payment() == marginals(query=1).payment() != marginals(query=0).promise()


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (replace(marginals(), protect="person"), "protect must be label or row"),
        (replace(marginals(), adjacency="swap"), "adjacency must be"),
        (marginals("published"), "label"),
    ],
)
def test_what_no_mechanism_can_do_is_refused(question, words):
    for guarantee in (question.promise, question.payment):
        with pytest.raises(InputError, match=words):
            guarantee()


def test_nothing_is_taken_for_granted_and_no_noise_is_shared():
    assert marginals().assumes() == Declared()
    assert not marginals().shared


def test_map_bins_and_hypothesis_are_of_one_number_of_features():
    """Found out at the rows, it would tell that there are some."""
    with pytest.raises(InputError, match="of one number of features, got 3, 3 and 2"):
        replace(marginals(), hypothesis=Hypothesis.constant(2, 1))


class TestShares:
    """Where parties share one noise."""

    @pytest.mark.parametrize(
        ("known", "hidden"),
        [
            ({}, {"errors", "rows"}),
            ({"asks": "rows"}, {"rows"}),
            ({"protect": "label", "adjacency": "replace"}, {"errors"}),
            ({"protect": "label", "adjacency": "replace", "asks": "rows"}, set()),
        ],
    )
    def test_what_is_not_public_is_hidden_by_its_sum_alone(self, known, hidden):
        asked = marginals("gaussian", contributors=7, **known)
        assert set(asked.steps) == hidden
        assert set(asked.steps.values()) <= {asked.mechanism().step}
        assert asked.shared == bool(hidden)
        assert asked.assumes().honest == 7
        assert marginals("gaussian", **known).steps == {}

    def test_it_survives_the_wire_and_promises_what_the_sum_does(self):
        asked = marginals("gaussian", contributors=7, queries=3)
        restored = decode_question(encode_question(asked), type(asked))
        assert restored.steps == asked.steps
        assert question_digest(restored) == question_digest(asked)
        paid, one = asked.payment(), asked.promise()
        assert (paid.epsilon, paid.parameters["contributors"]) == (1.0, 7)
        assert one.epsilon < paid.epsilon

    def test_a_party_refuses_a_share_that_counts_on_more_honest_ones_than_its_own_list(self):
        with pytest.raises(InputError, match="takes honest to be 7, this side declares 6"):
            marginals("gaussian", contributors=7).promise(Declared(honest=6))
        assert marginals("gaussian", contributors=6).promise(Declared(honest=6)).epsilon < 1

    def test_rates_have_no_shares(self):
        with pytest.raises(InputError, match="cannot be added, got contributors 3"):
            marginals("published", "label", "replace", contributors=3)
