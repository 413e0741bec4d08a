"""Votes: each party's own classifier, and predictions out of form are its own failure."""

from dataclasses import replace

import numpy as np
import pytest
from support.synthetic import draw
from support.training_parties import by_party, cohort, make_training

from federation.contract.query import check_submission
from federation.queries.votes import VotesQuestion
from parties.responses import votes
from parties.training import training


def test_each_party_votes_with_its_own_classifier(public):
    asked = make_training(public)
    question = VotesQuestion(asked, asked.feature_map.transform(public.rows))
    submission = votes.respond_votes(cohort(3, 4), question)
    check_submission(question, submission)
    assert sorted(submission.parties) == [3, 4, 5, 6]
    alone = votes.respond_votes(cohort(5, 1), question)
    np.testing.assert_array_equal(by_party(submission)[5], alone.arrays["votes"][0])
    assert submission.guarantee is None


def test_votes_agree_with_the_classifier_they_come_from(public):
    asked = make_training(public)
    question = VotesQuestion(asked, asked.feature_map.transform(public.rows))
    submission = votes.respond_votes(cohort(0, 2), question)
    labels = draw(99, 120)[1]
    assert (submission.arrays["votes"] == labels).mean() > 0.5  # three classes, six rows each


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
    submission = votes.respond_votes(cohort(0, 2), VotesQuestion(asked, asked.feature_map.transform(public.rows)))
    assert sorted(submission.failures) == [0, 1]
    assert submission.arrays["votes"].shape == (0, 120)
