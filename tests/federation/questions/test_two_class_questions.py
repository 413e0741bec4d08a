"""Questions about the mean operator and about error marginals: the wire, their guarantees, and what is refused."""

from dataclasses import replace

import pytest
from support.two_class_questions import marginals, moment

from federation.contract.declared import Declared
from federation.contract.errors import InputError
from federation.contract.guarantee import SEEDED, Adjacency, NoGuarantee, Unit
from federation.contract.question import ReleaseId
from federation.grids.codec import decode_question, encode_question, question_digest
from federation.mechanisms.accounting.composition import compose
from federation.questions.bags import Bags, CountsNoise, CountsQuestion
from federation.questions.hypotheses import Hypothesis
from federation.questions.row_premises import DIFFERENT_PEOPLE, HELD_ONCE, UNTIMED

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
    guarantee = moment("gaussian", protect).promise()
    assert (guarantee.unit, guarantee.adjacency, guarantee.epsilon) == (Unit(protect), Adjacency.REPLACE, 1.0)
    texts = " ".join(assumption.text for assumption in guarantee.assumptions)
    assert ("features are public" in texts) == (protect == "label")
    assert "cut to norm 1" in texts
    assert guarantee.parameters["entropy"] == "seed"


def test_published_noise_promises_what_it_keeps():
    guarantee = moment("published_laplace").promise()
    assert guarantee.epsilon == pytest.approx(2.0, rel=1e-6)  # the root of 4 features
    assert guarantee.parameters["claimed_epsilon"] == 1.0


def test_without_noise_there_is_no_guarantee():
    assert isinstance(moment("off").promise(), NoGuarantee)
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


@pytest.mark.parametrize(
    "question",
    [
        moment(),
        moment(protect="row"),
        marginals(),
        marginals(adjacency="replace"),
        marginals("published", "label", "replace"),
    ],
)
def test_guarantees_say_whose_bits_the_noise_takes_and_what_is_declared_of_rows(question):
    unseeded = replace(question, seeded=False)
    for seeded, system in ((question.promise(), unseeded.promise()), (question.payment(), unseeded.payment())):
        assert seeded.parameters["entropy"] == "seed"
        assert SEEDED in seeded.assumptions
        assert system.parameters["entropy"] == "system"
        assert SEEDED not in system.assumptions
        assert {HELD_ONCE, DIFFERENT_PEOPLE} < set(system.assumptions)
        assert (UNTIMED in system.assumptions) == (question.protect == "row")


def test_all_queries_of_an_exchange_are_paid_for_alike_and_one_answer_pays_for_itself():
    """Else its second query would be refused as one of another release."""
    assert marginals(query=0).payment() == marginals(query=1).payment() != marginals(query=0).promise()
    assert moment().payment() == moment().promise()


@pytest.mark.parametrize("kind", ["counts", "mean_operator"])
def test_a_question_that_is_asked_once_is_no_query_of_many(kind):
    """Its noise is for one answer: paid for once, it would be asked for often."""
    question = {
        "counts": CountsQuestion(CountsNoise("pure", 1.0), Bags(1, 2), release=ReleaseId("a release")),
        "mean_operator": moment(),
    }[kind]
    with pytest.raises(InputError, match=f"'{kind}' is a release by itself, got one of 2 queries; name a release"):
        replace(question, release=ReleaseId("a release", 2, 1))


@pytest.mark.parametrize(("queries", "query"), [(2, 2), (2, -1), (0, 0), (2, 1.0), (True, 0)])
def test_a_query_beyond_those_agreed_on_is_refused(queries, query):
    with pytest.raises(InputError, match=r"refused|whole number"):
        ReleaseId("an exchange", queries, query)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (moment(protect="party"), "protect must be label or row"),
        (replace(marginals(), protect="person"), "protect must be label or row"),
        (replace(marginals(), adjacency="swap"), "adjacency must be"),
        (moment("strange"), "noise must be"),
        (marginals("published"), "label"),
    ],
)
def test_what_no_mechanism_can_do_is_refused(question, words):
    for guarantee in (question.promise, question.payment):
        with pytest.raises(InputError, match=words):
            guarantee()


@pytest.mark.parametrize("most", [0, 10**9 + 1, 2.5, True])
def test_the_most_rows_of_a_party_are_a_whole_number(most):
    with pytest.raises(InputError, match="most rows must be a whole number from 1 to 1000000000"):
        replace(moment(), most=most)


@pytest.mark.parametrize("contributors", [-1, 1.5, True])
def test_contributors_are_a_whole_number(contributors):
    with pytest.raises(InputError, match="contributors must be a whole number from 0"):
        moment(contributors=contributors)


def test_what_is_taken_for_granted_is_what_the_noise_rests_on():
    assert moment().assumes() == Declared(most_rows=50)
    assert moment("gaussian", contributors=7).assumes() == Declared(most_rows=50, honest=7)
    assert marginals().assumes() == Declared()


def test_a_share_hides_nothing_by_itself_and_is_for_simulations():
    share, whole = moment("gaussian", contributors=7), moment("gaussian")
    assert (share.shared, whole.shared, marginals().shared) == (True, False, False)
    assert "no secure summation" in share.simulated_only()
    assert whole.simulated_only() is None


def test_map_bins_and_hypothesis_are_of_one_number_of_features():
    """Found out at the rows, it would tell that there are some."""
    with pytest.raises(InputError, match="of one number of features, got 3, 3 and 2"):
        replace(marginals(), hypothesis=Hypothesis.constant(2, 1))
