"""The question about X'X, X'y and y'y of private rows: the wire, its guarantees, and what is refused."""

import pytest
from support.two_class_questions import row_moments

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, NoGuarantee, Unit
from federation.contract.query import Declared
from federation.engines.codec import decode_question, encode_question, question_digest

LABELS = {"second": False, "protect": "label"}


@pytest.mark.parametrize(
    "asked", [row_moments(), row_moments(contributors=7, second=False), row_moments("pure", contributors=7, **LABELS)]
)
def test_it_survives_the_wire(asked):
    restored = decode_question(encode_question(asked), type(asked))
    assert restored.fields() == asked.fields()
    assert question_digest(restored) == question_digest(asked)


def test_it_protects_a_replaced_row_and_says_what_that_rests_on():
    guarantee = row_moments().promise()
    assert (guarantee.unit, guarantee.adjacency) == (Unit.ROW, Adjacency.REPLACE)
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 1e-5)
    texts = " ".join(assumption.text for assumption in guarantee.assumptions)
    for words in ("cut to norm 1", "labels outside the declared range", "how many rows a party has is public"):
        assert words in texts


def test_without_the_second_moment_it_is_one_number_per_feature_and_one_more():
    assert [row_moments(second=second).fields()["sums"].shape for second in (True, False)] == [(1, 15), (1, 5)]


def test_of_public_rows_labels_are_protected_and_their_sums_are_open():
    guarantee = row_moments("auto", contributors=3, **LABELS).promise()
    assert (guarantee.unit, guarantee.adjacency, guarantee.parameters["contributors"]) == ("label", "replace", 3)
    texts = " ".join(assumption.text for assumption in guarantee.assumptions)
    for words in ("features are public", "labels outside the declared range", "weigh less", "at least 3 parties"):
        assert words in texts
    asked = row_moments("auto", contributors=3, **LABELS)
    assert set(asked.fields()) - set(asked.steps) == {"size", "gram", "row_sum", "weight"}
    assert asked.fields()["sums"].shape == (1, 4)


@pytest.mark.parametrize("noise", ["gaussian", "pure"])
def test_auto_is_the_kind_of_less_noise_on_labels(noise):
    delta = 1e-5 if noise == "gaussian" else 1e-12
    many = {"delta": delta, **LABELS}
    norms = {kind: row_moments(kind, **many).mechanism().noise_norm() for kind in ("auto", "gaussian", "pure")}
    assert norms["auto"] == min(norms["gaussian"], norms["pure"])
    assert row_moments("pure", **many).promise().delta == 0


def test_it_assumes_rows_range_and_honest_parties():
    asked = row_moments(contributors=5, label_range=(-2.0, 3.0)).assumes()
    assert (asked.most_rows, asked.label_range, asked.honest) == (67, (-2.0, 3.0), 5)
    with pytest.raises(InputError, match="label_range"):
        row_moments().promise(Declared(label_range=(0.0, 2.0)))


def test_shares_are_for_simulations():
    assert "no secure summation" in row_moments(contributors=2).simulated_only()
    assert row_moments().simulated_only() is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"delta": 0.0}, "delta must lie"),
        ({"contributors": 2**31}, "contributors"),
        ({"contributors": -1}, "contributors"),
        ({"noise": "pure"}, "hides whole rows must be gaussian"),
        ({"protect": "label"}, "noise on x x' is for whole rows"),
        ({"protect": "party", "second": False}, "protect must be label or row"),
    ],
)
def test_what_no_mechanism_can_do_is_refused(changed, words):
    with pytest.raises(InputError, match=words):
        row_moments(**changed).promise()


def test_without_noise_there_is_no_guarantee():
    assert isinstance(row_moments("off").promise(), NoGuarantee)
