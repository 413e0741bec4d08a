from dataclasses import replace

import numpy as np
import pytest
from support.synthetic import Parties, draw

from aggregator.world.fitting import fit
from federation.contract.errors import InputError
from federation.contract.reference import Reference
from federation.contract.submission import check_submission
from federation.questions.votes import IndividualQuestion, Training, VotesQuestion
from parties.answers import individual, votes
from parties.holdings.cohort import Cohort, Holdings
from parties.training import training

LOGISTIC = {"name": "logistic", "parameters": {"regularisation": 1e-3}}


def cohort(first=0, count=5, **arguments):
    return Cohort(Reference("support.synthetic:Parties", arguments).to_json(), first, count, seed=1)


def by_party(submission):
    return dict(zip(submission.parties.tolist(), submission.arrays["votes"], strict=True))


def make_training(public, trial=0):
    return Training(fit([{"whiten": 3}, "unit_norm"], public.rows), 3, LOGISTIC, trial)


def test_each_party_votes_with_its_own_classifier(public):
    asked = make_training(public)
    question = VotesQuestion(asked, asked.feature_map.transform(public.rows))
    submission = votes.answer(cohort(3, 4), question)
    check_submission(question, submission)
    assert sorted(submission.parties) == [3, 4, 5, 6]
    alone = votes.answer(cohort(5, 1), question)
    np.testing.assert_array_equal(by_party(submission)[5], alone.arrays["votes"][0])
    assert submission.guarantee is None


def test_votes_agree_with_the_classifier_they_come_from(public):
    asked = make_training(public)
    question = VotesQuestion(asked, asked.feature_map.transform(public.rows))
    submission = votes.answer(cohort(0, 2), question)
    labels = draw(99, 120)[1]
    assert (submission.arrays["votes"] == labels).mean() > 0.5  # three classes, six rows each


def test_a_broken_party_is_named_and_leaves_the_others_alone(public):
    asked = make_training(public)
    question = VotesQuestion(asked, asked.feature_map.transform(public.rows))
    submission = votes.answer(cohort(0, 4, broken=[2]), question)
    assert sorted(submission.parties) == [0, 1, 3]
    assert list(submission.failures) == [2]
    assert "NaN" in submission.failures[2]


def test_all_questions_of_a_world_share_one_training(public, monkeypatch):
    asked = make_training(public, trial=77)
    calls = []
    original = training.load
    monkeypatch.setattr(training, "load", lambda *arguments: calls.append(1) or original(*arguments))
    votes.answer(cohort(), VotesQuestion(asked, asked.feature_map.transform(public.rows)))
    individual.answer(cohort(), IndividualQuestion(asked, 3))
    assert len(calls) == 1
    votes.answer(cohort(), VotesQuestion(make_training(public, trial=78), asked.feature_map.transform(public.rows)))
    assert len(calls) == 2


def test_individual_scores_are_those_of_the_sample(public):
    question = IndividualQuestion(make_training(public), 3)
    submission = individual.answer(cohort(0, 5), question)
    check_submission(question, submission)
    assert sorted(submission.parties) == [0, 1, 2]
    rows, labels = Parties().evaluation()
    features = question.training.feature_map.transform(rows)
    predicted = by_party(votes.answer(cohort(0, 5), VotesQuestion(question.training, features)))
    for party, *scores in zip(submission.parties.tolist(), *submission.arrays.values(), strict=True):
        recalls = [(predicted[party][labels == c] == c).mean() for c in range(3)]
        assert scores == pytest.approx([(predicted[party] == labels).mean(), np.mean(recalls)])


@pytest.mark.parametrize("block", [1, 50, 1 << 22])
def test_individual_scores_do_not_depend_on_blocks_or_cohorts(public, monkeypatch, block):
    question = IndividualQuestion(make_training(public), 9)
    whole = individual.answer(cohort(0, 9), question)
    monkeypatch.setattr(individual, "_BLOCK", block)
    for first, count in ((0, 9), (2, 1), (3, 4)):
        part = individual.answer(cohort(first, count), question)
        at = [whole.parties.tolist().index(party) for party in part.parties]
        for name, values in part.arrays.items():
            assert values.tobytes() == whole.arrays[name][at].tobytes()


def test_a_deployed_party_has_no_individual_score(public, monkeypatch):
    monkeypatch.setattr(Parties, "evaluation", lambda self: None)
    with pytest.raises(InputError, match="simulation"):
        individual.answer(cohort(), IndividualQuestion(make_training(public, trial=55), 3))


def test_the_text_of_foreign_exceptions_stays_home_in_a_deployment(public):
    # One neighbour asked of a party with several classes but SVC given a bad kernel fails inside scikit-learn.
    broken = Training(make_training(public).feature_map, 3, {"name": "SVC", "parameters": {"kernel": "none"}}, 0)
    question = VotesQuestion(broken, broken.feature_map.transform(public.rows))
    simulated = votes.answer(cohort(), question)
    assert all("kernel" in reason for reason in simulated.failures.values())
    deployed = votes.answer(Cohort(cohort().reference, 0, 5, seed=None), question)
    assert deployed.failures
    assert set(deployed.failures.values()) == {"the party could not answer"}


def test_a_party_whose_prediction_fails_costs_no_other(public):
    # Five neighbours are asked of every party; one holds three rows, trains, and fails when it predicts.
    feature_map = make_training(public).feature_map
    neighbours = Training(feature_map, 3, {"name": "KNeighborsClassifier", "parameters": {"n_neighbors": 5}}, 9)
    question = VotesQuestion(neighbours, feature_map.transform(public.rows))
    whole = votes.answer(cohort(0, 4), question)
    spoilt = votes.answer(cohort(0, 4, small=[2]), question)
    assert sorted(spoilt.parties) == [0, 1, 3]
    assert "n_samples" in spoilt.failures[2]
    for party, cast in by_party(spoilt).items():
        np.testing.assert_array_equal(cast, by_party(whole)[party])


class Scripted:
    """An estimator that predicts what it was told."""

    classes_ = np.arange(3)

    def __init__(self, predicted):
        self.predicted = predicted

    def predict(self, rows):
        return self.predicted

    predict_proba = predict


def scripted(monkeypatch, predicted):
    monkeypatch.setattr(training, "fit_estimator", lambda *arguments: Scripted(predicted))


@pytest.mark.parametrize(
    "predicted",
    [np.zeros(3, int), np.full(120, 3), np.full(120, -1), np.zeros(120), np.array(["a"] * 120)],
    ids=["length", "class", "negative", "float", "text"],
)
def test_votes_out_of_form_are_the_partys_own_failure(public, monkeypatch, predicted):
    scripted(monkeypatch, predicted)
    asked = replace(make_training(public, trial=41), classifier={"name": "GaussianNB", "parameters": {}})
    submission = votes.answer(cohort(0, 2), VotesQuestion(asked, asked.feature_map.transform(public.rows)))
    assert sorted(submission.failures) == [0, 1]
    assert submission.arrays["votes"].shape == (0, 120)


def test_holdings_show_their_shape_only():
    shown = repr(Holdings(4, np.full((2, 3), 7.25), np.array([0, 1])))
    assert shown == "Holdings(party=4, rows=(2, 3))"


@pytest.mark.parametrize(
    ("rows", "labels", "words"),
    [
        (np.empty((0, 2)), np.empty(0, int), "no rows"),
        (np.array([[np.inf, 0.0]]), np.array([0]), "NaN or infinite"),
        (np.zeros((2, 2)), np.array([0]), "labels"),
    ],
)
def test_unusable_holdings_are_refused(rows, labels, words):
    with pytest.raises(InputError, match=words):
        Holdings(0, rows, labels).require_usable()


def test_a_cohort_reads_the_nodes_own_configuration():
    config = {"holdings": cohort().reference, "first-party": 3, "parties": 2, "partition-id": 1}
    assert list(Cohort.from_config(config).parties) == [3, 4]
    assert Cohort.from_config(config).seed is None
    with pytest.raises(InputError, match="holdings"):
        Cohort.from_config({})
