"""Sums of y x of simulated and deployed parties: exact, with noise of the promised scale, or with a share of it."""

from dataclasses import replace

import numpy as np
import pytest
from support.two_class_cohorts import cohort, deployed
from support.two_class_parties import draw
from support.two_class_questions import moment, unseeded, wide

from federation.contract.errors import InputError
from federation.contract.query import check_submission
from federation.numerics.rows import within_norm
from parties.guard.answering import answered


def test_sums_without_noise_are_those_of_the_rows():
    question = wide(moment("off"))
    answer = answered(cohort(count=1), question)
    check_submission(question, answer)
    rows, labels = draw(0, 60)
    expected = (2 * labels - 1) @ within_norm(question.feature_map.transform(rows))
    np.testing.assert_allclose(answer.arrays["sums"][0, 0], expected, atol=1e-7)
    assert answer.arrays["size"].tolist() == [60]
    assert answer.guarantee is None


def test_rows_are_cut_to_the_bound_in_l1_that_the_noise_makes_use_of():
    question = wide(moment("off", l1_bound=0.5))
    rows, labels = draw(0, 60)
    cut = within_norm(question.feature_map.transform(rows), 0.5)
    assert np.abs(cut).sum(axis=1).max() <= 0.5 * (1 + 1e-9)
    sums = answered(cohort(count=1), question).arrays["sums"][0, 0]
    np.testing.assert_allclose(sums, (2 * labels - 1) @ cut, atol=1e-7)


def test_a_party_with_more_rows_than_declared_is_left_out():
    """For them summation in double precision is not charged."""
    assert "holds 60 rows, declared are 1 to 50" in answered(cohort(count=1), moment()).failures[0]


def test_a_party_holds_as_few_and_as_many_rows_as_declared():
    for least, most in ((60, 100), (1, 60)):
        assert answered(cohort(count=1), replace(moment(), least=least, most=most)).failures == {}
    assert (
        "holds 60 rows, declared are 61 to 100"
        in answered(cohort(count=1), replace(moment(), least=61, most=100)).failures[0]
    )


def test_noise_is_centred_on_the_sum_and_of_the_scale_that_is_promised():
    exact = answered(cohort(count=1), wide(moment("off"))).arrays["sums"][0, 0]
    question = replace(wide(moment("gaussian")), draws=4000)
    answer = answered(cohort(count=1), question)
    errors = answer.arrays["sums"][0] - exact
    sigma = answer.guarantee.parameters["scale"]
    assert np.abs(errors.mean(axis=0)).max() < 4 * sigma / 4000**0.5
    assert errors.std() == pytest.approx(sigma, rel=0.05)


def test_a_share_carries_no_guarantee_and_is_for_simulations(tmp_path):
    question = wide(moment("gaussian", contributors=4))
    assert answered(cohort(count=1), question).guarantee is None
    with pytest.raises(InputError, match="no secure summation"):
        answered(deployed(), unseeded(question))


@pytest.mark.parametrize("protect", ["label", "row"])
def test_failures_cost_no_other_party_and_labels_cause_none(protect):
    answer = answered(cohort(), wide(moment(protect=protect)))
    refused = {1, 4} if protect == "row" else {1, 3, 4}
    assert set(answer.failures) == refused
    assert set(answer.parties.tolist()) == set(range(6)) - refused


def test_randomised_response_is_centred_on_the_sum_and_of_the_promised_variance():
    question = replace(wide(moment("randomised_response")), draws=4000)
    rows, labels = draw(0, 60)
    cut = within_norm(question.feature_map.transform(rows))
    errors = answered(cohort(count=1), question).arrays["sums"][0] - (2 * labels - 1) @ cut
    sigma = np.sqrt(question.response().label_variance * np.square(cut).sum(axis=0))
    assert (np.abs(errors.mean(axis=0)) < 4 * sigma / 4000**0.5).all()
    np.testing.assert_allclose(errors.std(axis=0), sigma, rtol=0.05)


def test_the_number_of_rows_decides_between_noise_on_labels_and_on_their_sum():
    question = wide(moment("auto"))
    question = replace(question, weight=question.response_below / 64, draws=50)
    assert question.response_below == 64
    few, many = (answered(cohort(party, count=1), question).arrays for party in (0, 5))
    as_many = replace(question, weight=question.weight * 64 / 60)
    assert as_many.response_below == 60
    assert answered(cohort(count=1), as_many).arrays["response"].tolist() == [0]
    assert (few["size"].tolist(), few["response"].tolist()) == ([60], [1])
    assert (many["size"].tolist(), many["response"].tolist()) == ([67], [0])
    step = question.mechanism().additive.step  # of the grid of noise on a sum, which responses do not keep to
    assert (few["sums"] % step != 0).any()
    assert (many["sums"] % step == 0).all()


def test_features_are_taken_to_be_public_only_where_labels_alone_are_protected():
    node = deployed(public=False)
    assert answered(node, unseeded(wide(moment(protect="row")))).failures == {}
    with pytest.raises(InputError, match="keeps its features"):
        answered(node, unseeded(wide(moment())))
