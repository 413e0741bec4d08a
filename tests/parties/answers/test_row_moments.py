"""X'X, X'y and y'y of simulated and deployed parties: exact, with noise of the promised scale, or a share of it."""

from dataclasses import replace

import numpy as np
import pytest
from support.two_class_cohorts import cohort, deployed
from support.two_class_parties import draw
from support.two_class_questions import row_moments, unseeded

from federation.contract.errors import InputError
from federation.contract.reference import Reference
from federation.contract.submission import check_submission
from federation.features.feature_map import FeatureMap
from federation.features.steps import Affine
from federation.numerics.norms import within_norm
from parties.guard.answering import answered
from parties.holdings.cohort import Cohort


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


def test_without_x_x_the_rest_is_the_same():
    whole, part = (answered(cohort(count=1), row_moments("off", second=second)) for second in (True, False))
    np.testing.assert_array_equal(part.arrays["sums"], whole.arrays["sums"][..., -5:])


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


def test_noise_is_centred_and_of_the_scale_that_is_promised():
    exact = answered(cohort(count=1), row_moments("off")).arrays["sums"][0, 0]
    answer = answered(cohort(count=1), replace(row_moments(), draws=4000))
    errors, sigma = answer.arrays["sums"][0] - exact, answer.guarantee.parameters["scale"]
    assert np.abs(errors.mean(axis=0)).max() < 4 * sigma / 4000**0.5
    assert errors.std() == pytest.approx(sigma, rel=0.05)


def test_a_party_without_rows_and_one_with_too_many_are_left_out_by_public_numbers():
    empty = Cohort(Reference("support.two_class_parties:Parties", {"empty": [0]}).to_json(), 0, 2, 1)
    question = row_moments()
    assert "holds 0 rows, declared are 1 to 67" in answered(empty, question).failures[0]
    small = replace(question, rows=replace(question.rows, most=59))
    assert "holds 60 rows, declared are 1 to 59" in answered(cohort(count=1), small).failures[0]


def test_failures_cost_no_other_party_and_no_row_or_label_causes_one():
    answer = answered(cohort(), row_moments())
    assert set(answer.failures) == {1, 4}  # texts for labels, and two rows of one person
    assert set(answer.parties.tolist()) == {0, 2, 3, 5}


def test_a_deployed_party_that_keeps_its_features_answers(tmp_path):
    assert answered(deployed(public=False), unseeded(row_moments())).guarantee.epsilon == 1.0
    with pytest.raises(InputError, match="no secure summation"):
        answered(deployed(), unseeded(row_moments(contributors=4)))
