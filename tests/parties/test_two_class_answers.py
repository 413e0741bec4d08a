"""Sums of y x and error marginals of simulated and deployed parties."""

import json
from dataclasses import replace

import numpy as np
import pytest
from support.two_class_parties import draw
from support.two_class_questions import marginals, moment

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.question import ReleaseId
from federation.contract.reference import Reference
from federation.contract.submission import check_submission
from federation.numerics.norms import within_norm
from federation.questions.hypotheses import Hypothesis
from parties.answers.rows import two_classes
from parties.guard.answering import answered
from parties.holdings.cohort import Cohort

PARTIES = Reference(
    "support.two_class_parties:Parties", {"broken": [1], "strange": [2], "huge": [3], "doubled": [4]}
).to_json()


def cohort(first=0, count=6):
    return Cohort(PARTIES, first, count, 1)


def deployed(tmp_path, epsilon=10.0, delta=1e-3, public=True, party=0):
    allowance = json.dumps({"ledger": str(tmp_path / "spent.json"), "epsilon": epsilon, "delta": delta})
    return Cohort(PARTIES, party, 1, None, allowance, public)


def unseeded(question):
    return replace(question, seeded=False)


def wide(question):
    """The same for parties of up to 100 rows."""
    return replace(question, most=100)


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


def test_labels_that_are_no_classes_count_as_the_nearer_one():
    [(_, classes)] = two_classes(cohort(), 2, moment().feature_map, Unit.LABEL)
    assert set(classes.tolist()) == {0, 1}
    assert classes[0] == 0


def test_a_row_that_the_map_makes_infinite_counts_as_zeros_under_row_privacy():
    [(features, _)] = two_classes(cohort(), 3, marginals().feature_map, Unit.ROW)
    assert np.isfinite(features).all()
    assert len(features) == 67


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


def test_a_query_is_answered_once():
    question = marginals()
    with pytest.raises(InputError, match="answered once, got 2 draws"):
        replace(question, draws=2)


def test_published_rates_lie_between_0_and_1():
    answer = answered(cohort(count=1), marginals("published", "label", "replace"))
    assert ((answer.arrays["rates"] >= 0) & (answer.arrays["rates"] <= 1)).all()
    assert answer.guarantee.unit is Unit.LABEL


def test_a_deployed_party_answers_every_query_once_and_none_beyond_the_last(tmp_path):
    node = deployed(tmp_path)
    first, second = (unseeded(marginals(queries=2, query=query)) for query in range(2))
    assert answered(node, first).failures == {}
    again = answered(node, replace(first, hypothesis=Hypothesis.constant(3, 1)))
    assert list(again.failures) == [0]
    assert answered(node, second).failures == {}
    longer = replace(first.release, queries=3, query=2)
    assert list(answered(node, replace(first, release=longer)).failures) == [0]
    spent = json.loads((tmp_path / "spent.json").read_text())["0"]
    assert [(record["epsilon"], record["answered"]) for record in spent] == [(1.0, [0, 1])]


def test_a_deployed_party_stops_when_its_allowance_is_spent(tmp_path):
    node = deployed(tmp_path, epsilon=1.2)
    exchanges = [
        replace(question, release=replace(question.release, name=name))
        for name in ("first", "second")
        for question in (unseeded(marginals(query=0)), unseeded(marginals(query=1)))
    ]
    assert [len(answered(node, question).failures) for question in exchanges] == [0, 0, 1, 1]


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
def test_an_allowance_of_what_an_exchange_claims_pays_for_all_of_it(tmp_path, noise):
    node = deployed(tmp_path, epsilon=1.0, delta=1e-5)
    queries = [unseeded(marginals(noise, queries=3, query=query)) for query in range(3)]
    assert [answered(node, question).failures for question in queries] == [{}, {}, {}]
    other = replace(queries[1], noise=replace(queries[1].noise, epsilon=0.5))
    assert list(answered(node, other).failures) == [0]


@pytest.mark.parametrize("question", [marginals("pure", "label", "replace"), wide(moment())])
def test_a_deployed_party_keeps_features_that_are_not_public(tmp_path, question):
    with pytest.raises(InputError, match="keeps its features"):
        answered(deployed(tmp_path, public=False), unseeded(question))
    assert not (tmp_path / "spent.json").exists()
    by_row = replace(question, protect="row")
    assert answered(deployed(tmp_path, public=False), unseeded(by_row)).failures == {}


@pytest.mark.parametrize(("question", "name"), [(wide(moment(protect="row")), "sums"), (marginals(), "errors")])
def test_noise_is_another_for_each_party_and_repeats_with_a_seed_only(question, name):
    without = replace(question, noise=replace(question.noise, kind="off"))

    def noise(asked):
        return answered(cohort(), asked).arrays[name] - answered(cohort(), without).arrays[name]

    first = noise(question)
    assert len(np.unique(first.reshape(len(first), -1), axis=0)) == len(first) > 1
    np.testing.assert_array_equal(first, noise(question))
    other = replace(question, release=replace(question.release, name="another"))
    for fresh in (noise(other), noise(unseeded(question))):
        assert (fresh != first).mean() > 0.5


def test_a_deployed_party_answers_once_for_what_it_pays_and_never_for_nothing(tmp_path):
    question = unseeded(wide(moment()))
    with pytest.raises(InputError, match="every answer is given once"):
        answered(deployed(tmp_path), replace(question, draws=2))
    assert not (tmp_path / "spent.json").exists()
    for asked in (question, unseeded(marginals())):
        with pytest.raises(InputError, match="no allowance"):
            answered(Cohort(PARTIES, 0, 1, None, None, True), asked)


@pytest.mark.parametrize("noise", ["off", "pure"])
def test_a_deployed_party_gives_no_seeded_and_no_noiseless_answer(tmp_path, noise):
    question = marginals(noise)
    with pytest.raises(InputError):
        answered(deployed(tmp_path), unseeded(question) if noise == "off" else question)
