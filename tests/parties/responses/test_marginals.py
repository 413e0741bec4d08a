"""Numbers of rows and errors in bins, exact or with noise of their own, of simulated and deployed parties."""

from dataclasses import replace

import numpy as np
import pytest
from support.two_class_parties import cohort, draw
from support.two_class_questions import marginals, moment, wide

from federation.contract.guarantee import Unit
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId, check_submission
from federation.queries.marginals import Hypothesis
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort


def test_counts_without_noise_are_those_of_the_rows():
    question = marginals("off")
    answer = answered(cohort(count=1), question)
    check_submission(question, answer)
    rows, labels = draw(0, 60)
    features = question.feature_map.transform(rows)
    wrong = question.hypothesis.predict(features) != labels
    codes = question.bins.codes(features)
    expected = [(codes == b).any(axis=1) & wrong for b in range(question.bins.total)]
    assert answer.arrays["errors"][0].tolist() == [rows.sum() for rows in expected]
    assert answer.arrays["rows"][0].sum() == 60 * 3


def test_empty_bins_get_noise_like_any_other():
    far = replace(marginals(), hypothesis=Hypothesis.constant(3, 1))
    far = replace(far, bins=replace(far.bins, edges=np.sort(far.bins.edges.reshape(3, -1) + 50).ravel()))
    answers = [answered(cohort(count=1), replace(far, release=ReleaseId(str(trial), 2))) for trial in range(40)]
    empty = np.stack([answer.arrays["rows"][0, 1:5] for answer in answers])  # all rows lie in the first bin
    assert np.abs(empty.mean()) < 5 * empty.std() / 40**0.5
    assert empty.std() > 5


def test_a_party_without_rows_or_with_one_that_is_no_number_answers_like_any_other():
    """Whether there is a row, and what is in it, is what noise must hide."""
    nobody = Cohort(Reference("support.two_class_parties:Parties", {"empty": [0], "missing": [1]}).to_json(), 0, 2, 1)
    for asks in ("rows", "errors"):
        answer = answered(nobody, marginals(asks=asks))
        assert answer.failures == {}
        assert answer.parties.tolist() == [0, 1]
    exact = answered(nobody, marginals("off"))
    assert exact.arrays["rows"].sum(axis=1).tolist() == [0, 67 * 3]
    assert list(answered(nobody, wide(moment(protect="row"))).failures) == [0]  # where their number is public


@pytest.mark.parametrize("asks", ["rows", "errors"])
def test_exact_numbers_of_rows_come_with_label_privacy_only(asks):
    exact = answered(cohort(count=1), marginals("off", asks="rows")).arrays["rows"]
    by_label = answered(cohort(count=1), marginals("pure", "label", "replace", asks))
    assert (by_label.arrays["rows"] == exact).all()
    by_row = answered(cohort(count=1), marginals("pure", "row", "replace", asks))
    assert (by_row.arrays["rows"] != exact).mean() > 0.5


@pytest.mark.parametrize("protect", ["row", "label"])
def test_whatever_depends_on_what_is_private_has_noise_of_its_own(protect):
    adjacency = "add_remove" if protect == "row" else "replace"
    exact, noisy = (
        answered(cohort(count=1), marginals(noise, protect, adjacency, queries=9)).arrays for noise in ("off", "pure")
    )
    errors = (noisy["errors"] - exact["errors"])[0]
    corrects = (noisy["rows"] - noisy["errors"] - exact["rows"] + exact["errors"])[0]
    assert errors.std() > 5
    if protect == "row":
        assert corrects.std() > 5
        assert abs(np.corrcoef(errors, corrects)[0, 1]) < 0.9


def test_published_rates_lie_between_0_and_1():
    answer = answered(cohort(count=1), marginals("published", "label", "replace"))
    assert ((answer.arrays["rates"] >= 0) & (answer.arrays["rates"] <= 1)).all()
    assert answer.guarantee.unit is Unit.LABEL
