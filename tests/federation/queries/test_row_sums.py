"""The question about the mean operator: its guarantees, shares of its noise, and what is refused.

The question about X'X, X'y and y'y of private rows: its guarantees, and what is refused.
"""

from dataclasses import replace

import numpy as np
import pytest
from support.two_class_questions import moment, row_moments

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, NoGuarantee, Unit
from federation.contract.query import Declared, ReleaseId

LABELS = {"second": False, "protect": "label"}


@pytest.mark.parametrize("protect", ["label", "row"])
def test_the_mean_operator_protects_what_is_asked_for(protect):
    guarantee = moment("gaussian", protect).promise()
    assert (guarantee.unit, guarantee.adjacency, guarantee.epsilon) == (Unit(protect), Adjacency.REPLACE, 1.0)
    texts = " ".join(assumption.text for assumption in guarantee.assumptions)
    assert ("features are public" in texts) == (protect == "label")
    assert "cut to norm 1" in texts
    assert guarantee.parameters["entropy"] == "seed"


def test_published_noise_promises_what_it_keeps_and_without_noise_there_is_no_guarantee():
    guarantee = moment("published_laplace").promise()
    assert guarantee.epsilon == pytest.approx(2.0, rel=1e-6)  # the root of 4 features
    assert guarantee.parameters["claimed_epsilon"] == 1.0
    assert moment().payment() == moment().promise()
    for off in (moment("off"), row_moments("off")):
        assert isinstance(off.promise(), NoGuarantee)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        # Its noise is for one answer: paid for once, it would be asked for often.
        (lambda: replace(moment(), release=ReleaseId("a release", 2, 1)), r"mean_operator.*2"),
        *((lambda most=most: replace(moment(), most=most), r"1.*1000000000") for most in (0, 10**9 + 1, 2.5, True)),
        *((lambda shares=shares: moment(contributors=shares), r"contributors.*0") for shares in (-1, 1.5, True)),
        *((lambda least=least: replace(moment(), least=least), r"1.*50") for least in (0, 51, 2.5)),
        # Randomised response is for labels and needs no shares.
        (lambda: moment("randomised_response", protect="row"), None),
        (lambda: moment("randomised_response", contributors=2), None),
        *((getattr(moment(protect="party"), name), "protect") for name in ("promise", "payment")),
        *((getattr(moment("strange"), name), "noise") for name in ("promise", "payment")),
        (lambda: row_moments(delta=0.0).promise(), "delta"),
        *((lambda n=n: row_moments(contributors=n).promise(), "contributors") for n in (2**31, -1)),
        (lambda: row_moments("pure").promise(), None),
        (lambda: row_moments(protect="label").promise(), None),
        (lambda: row_moments(protect="party", second=False).promise(), "protect"),
    ],
)
def test_what_no_mechanism_can_do_is_refused(asked, words):
    with pytest.raises(InputError, match=words):
        asked()


def test_what_is_taken_for_granted_is_what_the_noise_rests_on():
    assert moment().assumes() == Declared(most_rows=50)
    assert moment("gaussian", contributors=7).assumes() == Declared(most_rows=50, honest=7)
    asked = row_moments(contributors=5, label_range=(-2.0, 3.0)).assumes()
    assert (asked.most_rows, asked.label_range, asked.honest) == (67, (-2.0, 3.0), 5)
    with pytest.raises(InputError, match="label_range"):
        row_moments().promise(Declared(label_range=(0.0, 2.0)))


@pytest.mark.parametrize("noise", ["gaussian", "pure", "laplace", "sums"])
@pytest.mark.parametrize("contributors", [0, 7])
def test_the_noise_is_for_as_many_rows_as_a_party_may_have(noise, contributors):
    for most in (1, 50, 10**6):
        question = replace(moment(noise, contributors=contributors), most=most)
        mechanism = question.mechanism()
        assert (question.most_rows, mechanism.rows, mechanism.contributors) == (most, most, contributors)


@pytest.mark.parametrize(
    ("share", "whole"),
    [(moment("gaussian", contributors=7), moment("gaussian")), (row_moments(contributors=2), row_moments())],
)
def test_a_share_hides_nothing_by_itself_and_is_for_simulations(share, whole):
    assert (share.shared, whole.shared) == (True, False)
    assert "no secure summation" in share.simulated_only()
    assert whole.simulated_only() is None


def test_the_number_of_rows_decides_where_each_party_has_noise_of_its_own_for_labels():
    question = moment("auto")
    below = question.response_below
    assert (question.by_size, 1 < below < 50) == (True, True)
    assert question.fields().keys() == {"size", "sums", "response"}
    assert question.responding(np.array([1, below - 1, below, 50])).tolist() == [True, True, False, False]
    others = [moment("auto", "row"), moment("auto", contributors=3), moment("sums"), moment("pure"), moment("off")]
    for other in others:
        assert (other.by_size, other.response_below) == (False, 0)
        assert other.fields().keys() == {"size", "sums"}
    assert not moment("auto", epsilon=1e-7).by_size  # of which randomised response knows nothing
    assert moment("randomised_response").responding(np.array([1, 10**9])).all()


def test_what_is_promised_is_pure_where_every_party_responds_and_else_that_of_the_sums():
    few, many = moment("auto", epsilon=4.0), replace(moment("auto"), least=40)
    assert (few.response_below > few.most, many.response_below <= many.least) == (True, True)
    response, sums, either = few.promise(), many.promise(), moment("auto").promise()
    assert (response.mechanism, response.epsilon, response.delta) == ("label_one_bit", 4.0, 0.0)
    assert sums == moment("sums").promise()
    assert (either.mechanism, either.epsilon, either.delta) == ("sum_or_response", 1.0, sums.delta)
    assert either.parameters["response_below"] == moment("auto").response_below
    gaussian = moment("auto", delta=0.1)
    assert gaussian.mechanism().delta == gaussian.promise().delta == 0.1
    assert gaussian.promise().gaussian_mu is None  # randomised response loses more
    assert replace(gaussian, least=50).promise().gaussian_mu is not None


def test_it_protects_a_replaced_row_and_says_what_that_rests_on():
    guarantee = row_moments().promise()
    assert (guarantee.unit, guarantee.adjacency) == (Unit.ROW, Adjacency.REPLACE)
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 1e-5)
    texts = " ".join(assumption.text for assumption in guarantee.assumptions)
    for words in ("cut to norm 1", "labels outside the declared range", "how many rows a party has is public"):
        assert words in texts
    # Without the second moment it is one number per feature and one more.
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
