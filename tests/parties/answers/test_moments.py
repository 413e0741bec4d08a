"""Sums of y x of simulated and deployed parties: exact, with noise of the promised scale, or with a share of it."""

from dataclasses import replace

import numpy as np
import pytest
from support.two_class_cohorts import cohort, deployed
from support.two_class_parties import draw
from support.two_class_questions import moment, row_moments, unseeded, wide

from federation.contract.errors import InputError
from federation.contract.reference import Reference
from federation.contract.submission import check_submission
from federation.features.feature_map import FeatureMap
from federation.features.steps import Affine
from federation.numerics.norms import within_norm
from parties.guard.answering import answered
from parties.holdings.cohort import Cohort


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
        answered(deployed(tmp_path), unseeded(question))


@pytest.mark.parametrize("protect", ["label", "row"])
def test_failures_cost_no_other_party_and_labels_cause_none(protect):
    answer = answered(cohort(), wide(moment(protect=protect)))
    refused = {1, 4} if protect == "row" else {1, 3, 4}
    assert set(answer.failures) == refused
    assert set(answer.parties.tolist()) == set(range(6)) - refused


class TestRowMoments:
    """X'X and X'y of private rows."""

    def exact(self, question, rows, labels):
        """The two moments by themselves."""
        features = within_norm(question.rows.feature_map.transform(rows))
        return features.T @ features, (2.0 * labels - 1.0) @ features

    def test_without_noise_they_are_those_of_the_rows(self):
        question = row_moments("off")
        answer = answered(cohort(count=1), question)
        check_submission(question, answer)
        found = question.statistic.moments(answer.arrays["sums"][0, 0])
        gram, sums = self.exact(question, *draw(0, 60))
        np.testing.assert_allclose(found.gram, gram, atol=1e-7)
        np.testing.assert_allclose(found.moment, sums, atol=1e-7)
        assert found.squares == 60  # labels are the ends of their range
        assert answer.guarantee is None

    def test_without_x_x_the_rest_is_the_same(self):
        whole, part = (answered(cohort(count=1), row_moments("off", second=second)) for second in (True, False))
        np.testing.assert_array_equal(part.arrays["sums"], whole.arrays["sums"][..., -5:])

    @pytest.mark.parametrize("second", [True, False])
    def test_the_party_cuts_rows_that_the_map_does_not(self, second):
        """Whoever asks chooses the map."""
        question = row_moments(
            "off", second=second, feature_map=FeatureMap(3, (Affine(np.zeros(3), np.full(3, 50.0)),))
        )
        sums = answered(cohort(count=1), question).arrays["sums"][0, 0]
        rows, labels = draw(0, 60)
        assert np.linalg.norm(50 * rows, axis=1).min() > 1
        np.testing.assert_allclose(
            question.statistic.moments(sums).moment, (2.0 * labels - 1.0) @ within_norm(50 * rows), atol=1e-6
        )

    def test_labels_beyond_their_range_count_as_its_ends_and_what_is_no_number_as_the_lower(self):
        question = row_moments("off", label_range=(0.0, 2.0))
        rows, labels = draw(2, 60)  # the second party's are 0 and 1e9, the first of them NaN
        expected = np.where(labels > 0, 1.0, -1.0)
        expected[0] = -1.0
        features = within_norm(question.rows.feature_map.transform(rows))
        sums = answered(cohort(2, 1), question).arrays["sums"][0, 0]
        np.testing.assert_allclose(question.statistic.moments(sums).moment, expected @ features, atol=1e-7)

    def test_noise_is_centred_and_of_the_scale_that_is_promised(self):
        exact = answered(cohort(count=1), row_moments("off")).arrays["sums"][0, 0]
        answer = answered(cohort(count=1), replace(row_moments(), draws=4000))
        errors, sigma = answer.arrays["sums"][0] - exact, answer.guarantee.parameters["scale"]
        assert np.abs(errors.mean(axis=0)).max() < 4 * sigma / 4000**0.5
        assert errors.std() == pytest.approx(sigma, rel=0.05)

    def test_a_party_without_rows_and_one_with_too_many_are_left_out_by_public_numbers(self):
        empty = Cohort(Reference("support.two_class_parties:Parties", {"empty": [0]}).to_json(), 0, 2, 1)
        question = row_moments()
        assert "holds 0 rows, declared are 1 to 67" in answered(empty, question).failures[0]
        small = replace(question, rows=replace(question.rows, most=59))
        assert "holds 60 rows, declared are 1 to 59" in answered(cohort(count=1), small).failures[0]

    def test_failures_cost_no_other_party_and_no_row_or_label_causes_one(self):
        answer = answered(cohort(), row_moments())
        assert set(answer.failures) == {1, 4}  # texts for labels, and two rows of one person
        assert set(answer.parties.tolist()) == {0, 2, 3, 5}

    def test_a_deployed_party_that_keeps_its_features_answers(self, tmp_path):
        assert answered(deployed(tmp_path, public=False), unseeded(row_moments())).guarantee.epsilon == 1.0
        with pytest.raises(InputError, match="no secure summation"):
            answered(deployed(tmp_path), unseeded(row_moments(contributors=4)))
