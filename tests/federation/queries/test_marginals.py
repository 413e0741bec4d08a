"""The question about error marginals: what queries of an exchange promise together, and what is refused.

Hypotheses in plain arrays, against scikit-learn's networks and by hand.
"""

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from support.two_class_questions import marginals

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, NoGuarantee, Unit
from federation.contract.query import MOST_WIDTH, Declared
from federation.mechanisms.accounting.composition import compose
from federation.queries.marginals import Hypothesis


def test_answers_have_one_entry_per_bin_and_rates_as_published():
    question = marginals()
    assert {name: field.shape for name, field in question.fields().items()} == {"errors": (15,), "rows": (15,)}
    assert set(marginals("published", "label").fields()) == {"rates", "rows"}
    assert set(marginals(asks="rows").fields()) == {"rows"}
    assert question.assumes() == Declared()
    assert not question.shared
    assert isinstance(marginals("off").payment(), NoGuarantee)


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
@pytest.mark.parametrize(("protect", "adjacency"), [("row", "add_remove"), ("row", "replace"), ("label", "replace")])
def test_the_answers_of_an_exchange_compose_to_what_it_promises(noise, protect, adjacency):
    questions = [marginals(noise, protect, adjacency, queries=3, query=query) for query in range(3)]
    whole = questions[0].payment()
    assert (whole.unit, whole.adjacency, whole.epsilon) == (Unit(protect), Adjacency(adjacency), 1.0)
    # Else its second query would be refused as one of another release.
    assert all(question.payment() == whole != question.promise() for question in questions)
    answers = [question.promise() for question in questions]
    assert [answer.parameters["query"] for answer in answers] == [0, 1, 2]
    epsilon, delta = compose(answers, whole.delta)
    assert 0.999 < epsilon < 1.1
    assert delta <= whole.delta


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        *(
            (getattr(question, name), words)
            for question, words in (
                (replace(marginals(), protect="person"), "protect"),
                (replace(marginals(), adjacency="swap"), "adjacency"),
                (marginals("published"), "label"),
            )
            for name in ("promise", "payment")
        ),
        # Found out at the rows, it would tell that there are some.
        (lambda: replace(marginals(), hypothesis=Hypothesis.constant(2, 1)), r"3.*3.*2"),
        (lambda: marginals("gaussian", contributors=7).promise(Declared(honest=6)), r"7.*6"),
        (lambda: marginals("published", "label", "replace", contributors=3), "3"),  # rates have no shares
        *(
            (lambda sizes=sizes, count=count: Hypothesis(np.array(sizes), np.zeros(count)), words)
            for sizes, count, words in (
                ([3], 4, "1"),
                ([3, 2], 8, "1"),
                ([3, 0, 1], 1, "1"),
                ([3, 1], 3, "4"),
                ([2**13, 2**12, 1], 1, None),
                ([1, MOST_WIDTH + 1, 1], 3 * MOST_WIDTH + 4, "4096 wide"),
            )
        ),
        (lambda: Hypothesis(np.array([1, 1]), np.array([np.nan, 0.0])), None),
        (lambda: Hypothesis.constant(2, 1).predict(np.zeros((3, 4))), "2"),
        (lambda: Hypothesis.of([np.zeros((2, 1))], []), None),
    ],
)
def test_what_no_mechanism_or_hypothesis_can_do_is_refused(refused, words):
    assert Hypothesis(np.array([1, MOST_WIDTH, 1]), np.zeros(3 * MOST_WIDTH + 1)).sizes[1] == MOST_WIDTH
    with pytest.raises(InputError, match=words):
        refused()


@pytest.mark.parametrize(
    ("known", "hidden"),
    [
        ({}, {"errors", "rows"}),
        ({"asks": "rows"}, {"rows"}),
        ({"protect": "label", "adjacency": "replace"}, {"errors"}),
        ({"protect": "label", "adjacency": "replace", "asks": "rows"}, set()),
    ],
)
def test_of_shared_noise_what_is_not_public_is_hidden_by_its_sum_alone(known, hidden):
    asked = marginals("gaussian", contributors=7, **known)
    assert set(asked.steps) == hidden
    assert set(asked.steps.values()) <= {asked.mechanism().step}
    assert asked.shared == bool(hidden)
    assert asked.assumes().honest == 7
    assert marginals("gaussian", **known).steps == {}


def test_shares_promise_what_the_sum_does():
    asked = marginals("gaussian", contributors=7, queries=3)
    paid, one = asked.payment(), asked.promise()
    assert (paid.epsilon, paid.parameters["contributors"]) == (1.0, 7)
    assert one.epsilon < paid.epsilon
    assert marginals("gaussian", contributors=6).promise(Declared(honest=6)).epsilon < 1


@given(st.integers(1, 5), st.integers(0, 1))
def test_a_constant_says_one_class_of_every_row(dimension, label):
    rows = np.random.default_rng(0).normal(size=(7, dimension)) * 1e3
    assert (Hypothesis.constant(dimension, label).predict(rows) == label).all()


def test_a_network_is_scikit_learns(rng):
    rows, labels = rng.normal(size=(80, 3)), rng.integers(0, 2, 80)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        trained = MLPClassifier((5, 4), max_iter=20, random_state=0).fit(rows, labels)
    hypothesis = Hypothesis.of(trained.coefs_, trained.intercepts_)
    assert hypothesis.sizes.tolist() == [3, 5, 4, 1]
    assert (hypothesis.predict(rows) == trained.predict(rows)).all()
    probabilities = 1 / (1 + np.exp(-hypothesis.scores(rows)))
    np.testing.assert_allclose(probabilities, trained.predict_proba(rows)[:, 1], rtol=1e-10)


@pytest.mark.parametrize("widths", [(3,), (300, 20)])
def test_a_rows_class_does_not_depend_on_the_rows_beside_it(rng, widths):
    """Products of many rows are summed in another order than those of few, which must not show."""
    sizes = (50, *widths, 1)
    matrices = [rng.normal(size=pair) for pair in pairwise(sizes)]
    hypothesis = Hypothesis.of(matrices, [rng.normal(size=size) for size in sizes[1:]])
    rows = np.repeat(rng.normal(size=(1, 50)), 9000, axis=0)
    alone = hypothesis.scores(rows[:1])[0]
    for count in (2, 7, 1000, 8334, 9000):
        assert (hypothesis.scores(rows[:count]) == alone).all()


@given(st.integers(2, 30), st.floats(0.0, 1.0), st.integers(0, 2**32 - 1))
def test_a_share_of_the_rows_is_of_class_one(count, share, seed):
    random = np.random.default_rng(seed)
    rows, weights = random.normal(size=(count, 3)), random.exponential(size=count)
    weights /= weights.sum()
    network = Hypothesis.of([random.normal(size=(3, 4)), random.normal(size=(4, 1))], [np.ones(4), np.zeros(1)])
    scores = network.scores(rows)
    moved = network.with_share(rows, weights, share)
    offset = moved.scores(rows) - scores
    assert np.ptp(offset) < 1e-9
    if moved is not network and len(np.unique(scores)) == count:
        assert abs(moved.predict(rows) @ weights - share) <= weights.max() + 1e-9
        assert 0 < moved.predict(rows).sum() < count


def test_zero_is_class_one_and_no_number_class_zero():
    line = Hypothesis.of([np.array([[1.0], [-1.0]])], [np.zeros(1)])
    assert line.predict(np.array([[2.0, 2.0], [1.0, 2.0], [3.0, 2.0]])).tolist() == [1, 0, 1]
    vast = Hypothesis.of([np.full((1, 2), 1e308), np.array([[1.0], [-1.0]])], [np.zeros(2), np.ones(1)])
    assert vast.predict(np.array([[1e10], [0.0]])).tolist() == [0, 1]
    # Rows that are told apart by nothing stay together.
    constant, rows, weights = Hypothesis.constant(2, 0), np.eye(2), np.full(2, 0.5)
    assert len(np.unique(constant.with_share(rows, weights, 0.7).predict(rows))) == 1
    steep = Hypothesis.of([np.full((2, 1), 1.5e308)], [np.zeros(1)])
    assert steep.with_share(2 * rows, weights, 0.7) is steep
