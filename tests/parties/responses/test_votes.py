"""Votes, ballots, shares and scores of each party's own classifier: the same bits in every company and block."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.synthetic import Parties, draw
from support.training_parties import LOGISTIC, by_party, cohort, make_training

from aggregator.ensembles.votes import share_norm, share_question
from aggregator.trial.feature_fitting import fit
from aggregator.trial.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.contract.query import check_submission
from federation.numerics.rows import contrasts
from federation.queries.votes import (
    BALLOT_PARTS,
    IndividualQuestion,
    ProbabilitiesQuestion,
    StatisticQuestion,
    Training,
    VotesQuestion,
)
from parties.party_data.cohort import Cohort, Holdings
from parties.party_data.isolation import ConstantGroup, Group
from parties.responses import votes
from parties.responses.votes import row_products, whole_parts
from parties.training import training
from parties.training.training import trained


def of_party(submission, party):
    """What a party has sent."""
    [array] = submission.arrays.values()
    return array[submission.parties.tolist().index(party)]


def require_same_bits(whole, respond, asked):
    """Each of six parties sends the same by itself."""
    for party in range(6):
        assert of_party(respond(cohort(party, 1), asked), party).tobytes() == of_party(whole, party).tobytes()


def votes_question(asked, public):
    return VotesQuestion(asked, asked.feature_map.transform(public.rows))


def test_each_party_votes_with_its_own_classifier(public):
    question = votes_question(make_training(public), public)
    submission = votes.respond_votes(cohort(3, 4), question)
    check_submission(question, submission)
    assert sorted(submission.parties) == [3, 4, 5, 6]
    alone = votes.respond_votes(cohort(5, 1), question)
    np.testing.assert_array_equal(of_party(submission, 5), alone.arrays["votes"][0])
    assert submission.guarantee is None
    first = votes.respond_votes(cohort(0, 2), question).arrays["votes"]
    assert (first == draw(99, 120)[1]).mean() > 0.5  # three classes, six rows each


@pytest.mark.parametrize(
    "predicted",
    [np.zeros(3, int), np.full(120, 3), np.full(120, -1), np.zeros(120), np.array(["a"] * 120)],
    ids=["length", "class", "negative", "float", "text"],
)
def test_votes_out_of_form_are_the_partys_own_failure(public, monkeypatch, predicted):
    scripted = SimpleNamespace(classes_=np.arange(3), predict=lambda rows: predicted, predict_proba=None)
    monkeypatch.setattr(training, "fit_estimator", lambda *arguments: scripted)
    asked = replace(make_training(public, trial=41), classifier={"name": "GaussianNB", "parameters": {}})
    submission = votes.respond_votes(cohort(0, 2), votes_question(asked, public))
    assert sorted(submission.failures) == [0, 1]
    assert submission.arrays["votes"].shape == (0, 120)


def test_individual_scores_are_those_of_the_sample(public):
    question = IndividualQuestion(make_training(public), 3)
    submission = votes.respond_individual(cohort(0, 5), question)
    check_submission(question, submission)
    assert sorted(submission.parties) == [0, 1, 2]
    rows, labels = Parties().evaluation()
    features = question.training.feature_map.transform(rows)
    predicted = by_party(votes.respond_votes(cohort(0, 5), VotesQuestion(question.training, features)))
    for party, *scores in zip(submission.parties.tolist(), *submission.arrays.values(), strict=True):
        recalls = [(predicted[party][labels == c] == c).mean() for c in range(3)]
        assert scores == pytest.approx([(predicted[party] == labels).mean(), np.mean(recalls)])


@pytest.mark.parametrize("block", [1, 50, 1 << 22])
def test_individual_scores_do_not_depend_on_blocks_or_cohorts(public, monkeypatch, block):
    question = IndividualQuestion(make_training(public), 9)
    whole = votes.respond_individual(cohort(0, 9), question)
    monkeypatch.setattr(votes, "_BLOCK", block)
    for first, count in ((0, 9), (2, 1), (3, 4)):
        part = votes.respond_individual(cohort(first, count), question)
        at = [whole.parties.tolist().index(party) for party in part.parties]
        for name, values in part.arrays.items():
            assert values.tobytes() == whole.arrays[name][at].tobytes()


def test_a_deployed_party_has_no_individual_score(public, monkeypatch):
    monkeypatch.setattr(Parties, "evaluation", lambda self: None)
    monkeypatch.setattr(votes, "_chosen", {})
    with pytest.raises(InputError, match="simulation"):
        votes.respond_individual(cohort(), IndividualQuestion(make_training(public, trial=55), 3))


def test_many_rows_are_thinned_in_the_proportions_of_the_classes_and_a_missing_class_has_no_order(monkeypatch):
    monkeypatch.setattr(votes, "_EVALUATED", 100)
    monkeypatch.setattr(votes, "_chosen", {})
    labels = np.repeat([1, 0], [700, 300])
    monkeypatch.setattr(Parties, "evaluation", lambda self: (np.arange(1000.0)[:, None], labels))
    rows, kept = votes._evaluated(cohort())
    assert np.bincount(kept).tolist() == [30, 70]
    np.testing.assert_array_equal(rows[:, 0], np.concatenate([np.arange(700, 1000, 10), np.arange(0, 700, 10)]))
    monkeypatch.setattr(votes, "_ORDERED", 3)
    rows = np.linspace(0, 1, 12)[:, None]
    whole = votes.Evaluation(rows, np.repeat([0, 1], 6), np.array([6, 12]))
    assert whole.scores(TwoClasses())["auc"] == pytest.approx([1, 0])
    one = votes.Evaluation(rows, np.zeros(12, dtype=int), np.array([12, 12]))
    assert one.scores(TwoClasses())["auc"] == pytest.approx([0.5, 0.5])


class TwoClasses(Group):
    """Two parties of two classes: one orders all rows but two rightly, the other none."""

    parties = np.array([4, 7])
    gives_probabilities = True

    def votes(self, rows):
        return (self.probabilities(rows)[:, :, 1] > 0.5).astype(np.uint8)

    def probabilities(self, rows):
        right = rows[:, 0]
        return np.stack([np.column_stack([1 - p, p]) for p in (right, 1 - right)])


@pytest.mark.parametrize("block", [1, 1 << 22])
def test_two_classes_are_also_scored_by_their_order(monkeypatch, block):
    monkeypatch.setattr(votes, "_BLOCK", block)
    rows = np.array([[0.1], [0.2], [0.7], [0.4], [0.8]])  # three of class 0, two of class 1
    evaluation = votes.Evaluation(rows, np.array([0, 0, 0, 1, 1]), np.array([3, 5]))
    assert evaluation.scores(TwoClasses())["auc"] == pytest.approx([5 / 6, 1 / 6])
    monkeypatch.setattr(TwoClasses, "gives_probabilities", False)
    assert evaluation.scores(TwoClasses())["auc"] == pytest.approx([(2 / 3 + 1 / 2) / 2, (1 / 3 + 1 / 2) / 2])


def question(public, classifier=LOGISTIC, trial=0):
    feature_map = fit([{"whiten": 3}, "unit_norm"], public.rows)
    return ProbabilitiesQuestion(Training(feature_map, 3, classifier, trial), feature_map.transform(public.rows))


def all_parts(submission, rows):
    """Parts (P, N, 3) of every class."""
    given = submission.arrays["parts"].reshape(-1, rows, 2).astype(int)
    return np.concatenate([given, BALLOT_PARTS - given.sum(axis=2, keepdims=True)], axis=2)


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), classes=st.integers(1, 30), total=st.integers(1, 300), sharpness=st.floats(0, 50))
def test_parts_add_up_exactly_and_lie_within_one_of_the_share(seed, classes, total, sharpness):
    shares = np.exp(sharpness * np.random.default_rng(seed).normal(size=(20, classes)))
    shares /= shares.sum(axis=1, keepdims=True)
    parts = whole_parts(shares, total)
    assert (parts >= 0).all()
    assert (parts.sum(axis=1) == total).all()
    assert (np.abs(parts - total * shares) < 1 + 1e-9).all()
    larger = shares[:, :, None] > shares[:, None, :] + 1e-9
    assert (parts[:, :, None] >= parts[:, None, :])[larger].all()  # a larger share never gets fewer parts


def test_leftover_parts_go_to_the_largest_remainders_and_to_the_first_among_equals():
    assert whole_parts(np.array([0.15, 0.35, 0.5]), 10).tolist() == [2, 3, 5]
    assert whole_parts(np.full(4, 0.25), 255).tolist() == [64, 64, 64, 63]
    assert whole_parts(np.array([[0.0, 1.0], [1.0, 0.0]]), 255).tolist() == [[0, 255], [255, 0]]


def test_a_ballot_is_the_rounded_distribution_of_the_partys_own_classifier(public):
    asked = question(public)
    submission = votes.respond_probabilities(cohort(), asked)
    check_submission(asked, submission)
    field = asked.fields()["parts"]
    assert (field.dtype, field.shape) == (np.uint8, (2 * len(asked.rows),))  # a byte per row and class but one
    parts = all_parts(submission, len(asked.rows))
    for group in trained(cohort(), asked.training).groups:
        for party, expected in zip(group.parties, group.probabilities(asked.rows), strict=True):
            own = parts[submission.parties.tolist().index(party)]
            np.testing.assert_allclose(own, expected * BALLOT_PARTS, atol=1 + 1e-9)


def test_ballots_are_the_same_bits_whoever_shares_the_cohort_and_whatever_the_tiles(public, monkeypatch):
    asked = question(public)
    whole = votes.respond_probabilities(cohort(0, 6), asked)
    monkeypatch.setattr(votes, "_TILE_ENTRIES", 21)
    require_same_bits(whole, votes.respond_probabilities, asked)


def test_the_most_probable_class_is_the_vote(public):
    asked = question(public)
    submission = votes.respond_probabilities(cohort(), asked)
    labels = votes.respond_votes(cohort(), VotesQuestion(asked.training, asked.rows))
    parts = all_parts(submission, len(asked.rows))
    ordered = np.sort(parts, axis=2)
    clear = ordered[..., -1] > ordered[..., -2] + 2
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(submission.parties, labels.parties)
    assert (parts.argmax(axis=2) == labels.arrays["votes"])[clear].all()


def test_a_classifier_without_probabilities_is_each_partys_own_failure(public):
    asked = question(public, {"name": "LinearSVC", "parameters": {}}, trial=3)
    submission = votes.respond_probabilities(cohort(0, 2), asked)
    assert submission.arrays["parts"].shape == (0, 2 * len(asked.rows))
    assert all("no probabilities" in cause for cause in submission.failures.values())
    assert sorted(submission.failures) == [0, 1]


def test_a_broken_party_costs_no_other(public):
    for asked, respond in (
        (question(public, trial=4), votes.respond_probabilities),
        (statistic_question(public, trial=4)[0], votes.respond_statistic),
    ):
        spoilt = respond(cohort(0, 4, broken=[2]), asked)
        assert sorted(spoilt.parties.tolist()) == [0, 1, 3]
        assert list(spoilt.failures) == [2]
        assert {array.shape[0] for array in spoilt.arrays.values()} == {3}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100])
def test_products_are_those_of_matrices(count, order):
    random = np.random.default_rng(count)
    rows, factor = random.normal(size=(count, 13)), np.asarray(random.normal(size=(13, 5)), order=order)
    np.testing.assert_allclose(row_products(rows, factor), rows @ factor, atol=1e-13)


@given(st.integers(1, 40), st.integers(1, 300), st.integers(1, 60), st.integers(0, 2**32))
def test_a_row_has_the_same_bits_in_every_company(count, width, columns, seed):
    random = np.random.default_rng(seed)
    rows, factor = random.normal(size=(count, width)), random.normal(size=(width, columns))
    together = row_products(rows, factor)
    chosen = random.permutation(count)[: random.integers(1, count + 1)]
    assert row_products(rows[chosen], factor).tobytes() == together[chosen].tobytes()


def test_a_row_that_is_no_number_leaves_the_others_alone():
    random = np.random.default_rng(0)
    rows, factor = random.normal(size=(9, 4)), random.normal(size=(4, 3))
    expected = row_products(rows, factor)
    rows[2] = np.nan
    found = row_products(rows, factor)
    assert np.isnan(found[2]).all()
    np.testing.assert_array_equal(np.delete(found, 2, axis=0), np.delete(expected, 2, axis=0))


def test_where_the_place_of_a_row_matters_rows_are_multiplied_one_by_one(monkeypatch):
    """As with a library whose products round by place: one that adds a bit to the first row of each."""
    real = np.matmul

    def placed(a, b, **options):
        found = real(a, b, **options)
        if a.ndim == 2:
            found[0] = np.nextafter(found[0], np.inf)
        return found

    votes._same_everywhere.cache_clear()
    monkeypatch.setattr(votes.np, "matmul", placed)
    random = np.random.default_rng(0)
    rows, factor = random.normal(size=(20, 6)), random.normal(size=(6, 4))
    assert row_products(rows, factor).tobytes() == real(rows[:, None, :], factor)[:, 0, :].tobytes()
    votes._same_everywhere.cache_clear()


def statistic_question(public, ballot="labels", trial=0, share="raw", classifier=LOGISTIC):
    feature_map = fit([{"whiten": 3}, "unit_norm"], public.rows)
    rows = PublicRows(feature_map, feature_map.transform(public.rows))
    training = Training(feature_map, 3, classifier, trial)
    return share_question(training, rows, rows.whitening, ballot, share), rows.whitening


@pytest.mark.parametrize("ballot", ["labels", "probabilities"])
def test_a_share_is_what_the_statistic_takes_from_the_partys_votes_and_no_longer_than_the_public_norm(public, ballot):
    asked, coordinates = statistic_question(public, ballot)
    submission = votes.respond_statistic(cohort(0, 40), asked)
    check_submission(asked, submission)
    sent = submission.arrays["statistic"]
    assert np.linalg.norm(sent.reshape(40, -1), axis=1).max() <= share_norm(coordinates, 3)
    assert not asked.fields()["statistic"].invalid(sent).any()
    basis = contrasts(3)
    for group in trained(cohort(0, 40), asked.training).groups:
        given = np.eye(3)[group.votes(asked.rows)] if ballot == "labels" else group.probabilities(asked.rows)
        for party, vote in zip(group.parties, given, strict=True):
            expected = basis.T @ vote.T @ coordinates.rows / len(asked.rows)
            np.testing.assert_allclose(of_party(submission, party), expected, atol=1e-14)


def unit(share):
    """A share of norm 1, written out."""
    norm = np.linalg.norm(share)
    return share / norm if norm > 1e-9 else np.zeros_like(share)


def expected_share(group, party, asked, coordinates, share):
    """From the definition: means over public rows of probabilities and scores, in contrasts."""
    basis, rows = contrasts(3), asked.rows
    given = group.probabilities(rows)[party]
    linear = hasattr(group, "weights")
    scores = rows @ group.weights[party].T if linear else np.log(given + 0.01)
    both = [unit(basis.T @ known.T @ coordinates.rows / len(rows)) for known in (given, scores)]
    return {"probabilities": both[0], "scores": both[1], "both": unit(both[0] + both[1])}[share]


CLASSIFIERS = {
    "logistic": LOGISTIC,
    "tree": {"name": "DecisionTreeClassifier", "parameters": {"max_depth": 2}},
    "bayes": {"name": "GaussianNB", "parameters": {}},
}


@pytest.mark.parametrize("share", ["both", "probabilities", "scores"])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_unit_share_is_the_direction_of_probabilities_and_scores(public, share, classifier):
    asked, coordinates = statistic_question(public, share=share, classifier=CLASSIFIERS[classifier])
    submission = votes.respond_statistic(cohort(), asked)
    check_submission(asked, submission)
    assert not asked.fields()["statistic"].invalid(submission.arrays["statistic"]).any()
    for group in trained(cohort(), asked.training).groups:
        for place, party in enumerate(group.parties.tolist()):
            expected = expected_share(group, place, asked, coordinates, share)
            np.testing.assert_allclose(of_party(submission, party), expected, atol=1e-12)
            assert np.linalg.norm(of_party(submission, party)) == pytest.approx(1, abs=1e-12)


def test_a_classifier_without_probabilities_sends_the_direction_of_its_votes(public):
    asked, coordinates = statistic_question(
        public, share="both", classifier={"name": "RidgeClassifier", "parameters": {}}
    )
    submission = votes.respond_statistic(cohort(), asked)
    assert len(submission.parties) == 5
    for group in trained(cohort(), asked.training).groups:
        [party] = group.parties
        cast = np.eye(3)[group.votes(asked.rows)[0]]
        expected = unit(contrasts(3).T @ cast.T @ coordinates.rows)
        np.testing.assert_allclose(of_party(submission, party), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("ballot", "share"),
    [
        ("labels", "raw"),
        ("probabilities", "raw"),
        ("labels", "both"),
        ("labels", "probabilities"),
        ("labels", "scores"),
    ],
)
def test_shares_are_the_same_bits_whoever_shares_the_cohort(public, ballot, share, monkeypatch):
    monkeypatch.setattr(votes, "_TILE_ENTRIES", 70)  # several tiles of rows
    monkeypatch.setattr(votes, "_TOGETHER", 4)
    asked, _ = statistic_question(public, ballot, share=share)
    require_same_bits(votes.respond_statistic(cohort(0, 6), asked), votes.respond_statistic, asked)


class OneClass:
    """Parties that hold one row each, of one class."""

    def holdings(self, party):
        return Holdings(party, np.array([[1.0, 0.0, float(party), 0.5]]), np.array([party % 3]))


def test_every_party_is_trained_over_all_classes_though_it_has_seen_one(public):
    asked, _ = statistic_question(public, share="both")
    one_class = Cohort(Reference(f"{__name__}:OneClass", {}).to_json(), 0, 5, seed=1)
    [group] = trained(one_class, asked.training).groups
    assert group.weights.shape[1] == 3
    sent = votes.respond_statistic(one_class, asked).arrays["statistic"]
    np.testing.assert_allclose(np.linalg.norm(sent.reshape(5, -1), axis=1), 1)
    raw, _ = statistic_question(public)
    assert all(isinstance(found, ConstantGroup) for found in trained(one_class, raw.training).groups)


def test_shares_without_a_direction_are_zero_and_those_of_norm_one_need_classifiers_over_all_classes(public):
    found = votes._direction(np.array([[[1e-10, 0.0]], [[np.nan, 1.0]], [[np.inf, 1.0]], [[1e200, 1e200]]]))
    np.testing.assert_array_equal(found[:3], 0)
    np.testing.assert_allclose(found[3], np.full((1, 2), np.sqrt(0.5)))
    asked, coordinates = statistic_question(public)
    with pytest.raises(InputError, match="over: declared"):
        StatisticQuestion(asked.training, asked.rows, coordinates.rows, 1.0, "probabilities", "both")


def test_rows_that_come_again_count_as_often_as_they_are_there(public):
    asked, _ = statistic_question(public, share="probabilities")
    again = np.arange(300) % 7
    often = replace(asked, rows=asked.rows[again], coordinates=asked.coordinates[again])
    few, summed = often.summed
    assert len(few) == 7
    counts = np.bincount(again)[:, None]
    np.testing.assert_allclose(summed, counts * asked.coordinates[:7], rtol=1e-13)
    once = replace(asked, rows=few, coordinates=summed)
    found, expected = (votes.respond_statistic(cohort(), one).arrays["statistic"] for one in (often, once))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
