"""X'X, X'y, y'y and sums of y x of simulated and deployed parties: exact, with noise of its scale, or a share of it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.two_class_parties import cohort, deployed, draw
from support.two_class_questions import moment, row_moments, unseeded, wide

from aggregator.contract.worst_case import Rows
from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.contract.query import check_submission
from federation.features.feature_map import FeatureMap
from federation.features.steps import Affine
from federation.numerics.rows import within_norm
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort
from scenarios.audits.auditor import cohort as small_cohort


def exact(question, rows, labels):
    """The two moments by themselves."""
    features = within_norm(question.rows.feature_map.transform(rows))
    return features.T @ features, (2.0 * labels - 1.0) @ features


def test_without_noise_they_are_those_of_the_rows():
    question = row_moments("off")
    answer = answered(cohort(count=1), question)
    check_submission(question, answer)
    found = question.statistic.moments(answer.arrays["sums"][0, 0])
    gram, sums = exact(question, *draw(0, 60))
    np.testing.assert_allclose(found.gram, gram, atol=1e-7)
    np.testing.assert_allclose(found.moment, sums, atol=1e-7)
    assert found.squares == 60  # labels are the ends of their range
    assert answer.guarantee is None
    without = answered(cohort(count=1), row_moments("off", second=False))  # X'X
    np.testing.assert_array_equal(without.arrays["sums"], answer.arrays["sums"][..., -5:])


@pytest.mark.parametrize("second", [True, False])
def test_the_party_cuts_rows_that_the_map_does_not(second):
    """Whoever asks chooses the map."""
    question = row_moments("off", second=second, feature_map=FeatureMap(3, (Affine(np.zeros(3), np.full(3, 50.0)),)))
    sums = answered(cohort(count=1), question).arrays["sums"][0, 0]
    rows, labels = draw(0, 60)
    assert np.linalg.norm(50 * rows, axis=1).min() > 1
    np.testing.assert_allclose(
        question.statistic.moments(sums).moment, (2.0 * labels - 1.0) @ within_norm(50 * rows), atol=1e-6
    )


def test_labels_beyond_their_range_count_as_its_ends_and_what_is_no_number_as_the_lower():
    question = row_moments("off", label_range=(0.0, 2.0))
    rows, labels = draw(2, 60)  # the second party's are 0 and 1e9, the first of them NaN
    expected = np.where(labels > 0, 1.0, -1.0)
    expected[0] = -1.0
    features = within_norm(question.rows.feature_map.transform(rows))
    sums = answered(cohort(2, 1), question).arrays["sums"][0, 0]
    np.testing.assert_allclose(question.statistic.moments(sums).moment, expected @ features, atol=1e-7)


@pytest.mark.parametrize(
    ("off", "question"), [(row_moments("off"), row_moments()), (wide(moment("off")), wide(moment("gaussian")))]
)
def test_noise_is_centred_on_the_sum_and_of_the_scale_that_is_promised(off, question):
    exact = answered(cohort(count=1), off).arrays["sums"][0, 0]
    answer = answered(cohort(count=1), replace(question, draws=4000))
    errors, sigma = answer.arrays["sums"][0] - exact, answer.guarantee.parameters["scale"]
    assert np.abs(errors.mean(axis=0)).max() < 4 * sigma / 4000**0.5
    assert errors.std() == pytest.approx(sigma, rel=0.05)


def test_a_party_without_rows_and_those_with_fewer_or_more_than_declared_are_left_out():
    empty = Cohort(Reference("support.two_class_parties:Parties", {"empty": [0]}).to_json(), 0, 2, 1)
    question = row_moments()
    assert "holds 0 rows, declared are 1 to 67" in answered(empty, question).failures[0]
    small = replace(question, rows=replace(question.rows, most=59))
    assert "holds 60 rows, declared are 1 to 59" in answered(cohort(count=1), small).failures[0]
    # For more of them summation in double precision is not charged.
    for least, most, fits in ((60, 100, True), (1, 60, True), (61, 100, False), (1, 50, False)):
        found = answered(cohort(count=1), replace(moment(), least=least, most=most)).failures
        assert (found == {}) == fits
        assert all(f"holds 60 rows, declared are {least} to {most}" in why for why in found.values())


def test_a_deployed_party_answers_with_public_features_where_it_needs_them():
    assert answered(deployed(public=False), unseeded(row_moments())).guarantee.epsilon == 1.0
    question = unseeded(row_moments(second=False, protect="label"))
    assert answered(deployed(), question).guarantee.unit == "label"
    with pytest.raises(InputError, match="public"):
        answered(deployed(public=False), question)


FAR = FeatureMap(3, (Affine(np.zeros(3), np.full(3, 50.0)),))  # behind it most rows are longer than 1


@pytest.mark.parametrize("feature_map", [None, FAR])
def test_of_public_rows_long_ones_weigh_less_and_x_y_alone_is_hidden(feature_map):
    question = row_moments("off", second=False, protect="label", feature_map=feature_map)
    sent = answered(cohort(count=1), question).arrays
    rows, labels = draw(0, 60)
    features = question.rows.feature_map.transform(rows)
    weights = np.minimum(1.0, 1 / np.linalg.norm(features, axis=1))
    assert (weights.min() < 1) == (feature_map is FAR)
    np.testing.assert_allclose(sent["sums"][0, 0], (weights * (2.0 * labels - 1.0)) @ features, atol=1e-6)
    np.testing.assert_allclose(sent["gram"][0], features.T @ (weights[:, None] * features), atol=1e-6)
    np.testing.assert_allclose(sent["row_sum"][0], weights @ features, atol=1e-6)
    assert sent["weight"][0] == pytest.approx(weights.sum())


@given(factor=st.floats(1e-3, 1e6), seed=st.integers(0, 2**20), changed=st.integers(0, 59))
def test_one_label_moves_the_sum_by_the_width_of_its_range_at_most(factor, seed, changed):
    feature_map = FeatureMap(3, (Affine(np.zeros(3), np.full(3, factor)),))
    question = row_moments("off", second=False, protect="label", feature_map=feature_map)
    rows = np.random.default_rng(seed).normal(size=(60, 3))
    sums = []
    for label in (0.0, 1.0):
        labels = np.random.default_rng(seed).uniform(size=60)
        labels[changed] = label
        with small_cohort((Rows(rows, labels),), 1) as node:
            sums.append(answered(node, question).arrays["sums"][0, 0])
    assert np.linalg.norm(sums[1] - sums[0]) <= 2 * (1 + 1e-6)


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


@pytest.mark.parametrize(
    ("question", "refused"),
    [(row_moments(), {1, 4}), (wide(moment(protect="row")), {1, 4}), (wide(moment(protect="label")), {1, 3, 4})],
)
def test_failures_cost_no_other_party_and_labels_cause_none(question, refused):
    """Texts for labels, and two rows of one person; where rows are protected no row causes one either."""
    answer = answered(cohort(), question)
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
