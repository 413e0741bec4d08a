"""What each party's own classifier scores: the sample that is asked for, whatever blocks and cohorts it comes in."""

import numpy as np
import pytest
from support.synthetic import Parties
from support.training_parties import by_party, cohort, make_training

from federation.contract.errors import InputError
from federation.contract.query import check_submission
from federation.queries.votes import IndividualQuestion, VotesQuestion
from parties.party_data.isolation import Group
from parties.responses import votes
from parties.responses import votes as individual


def test_individual_scores_are_those_of_the_sample(public):
    question = IndividualQuestion(make_training(public), 3)
    submission = individual.respond_individual(cohort(0, 5), question)
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
    whole = individual.respond_individual(cohort(0, 9), question)
    monkeypatch.setattr(individual, "_BLOCK", block)
    for first, count in ((0, 9), (2, 1), (3, 4)):
        part = individual.respond_individual(cohort(first, count), question)
        at = [whole.parties.tolist().index(party) for party in part.parties]
        for name, values in part.arrays.items():
            assert values.tobytes() == whole.arrays[name][at].tobytes()


def test_a_deployed_party_has_no_individual_score(public, monkeypatch):
    monkeypatch.setattr(Parties, "evaluation", lambda self: None)
    monkeypatch.setattr(individual, "_chosen", {})
    with pytest.raises(InputError, match="simulation"):
        individual.respond_individual(cohort(), IndividualQuestion(make_training(public, trial=55), 3))


def test_many_evaluation_rows_are_thinned_out_in_the_proportions_of_the_classes(monkeypatch):
    monkeypatch.setattr(individual, "_EVALUATED", 100)
    monkeypatch.setattr(individual, "_chosen", {})
    labels = np.repeat([1, 0], [700, 300])
    monkeypatch.setattr(Parties, "evaluation", lambda self: (np.arange(1000.0)[:, None], labels))
    rows, kept = individual._evaluated(cohort())
    assert np.bincount(kept).tolist() == [30, 70]
    np.testing.assert_array_equal(rows[:, 0], np.concatenate([np.arange(700, 1000, 10), np.arange(0, 700, 10)]))


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
    monkeypatch.setattr(individual, "_BLOCK", block)
    rows = np.array([[0.1], [0.2], [0.7], [0.4], [0.8]])  # three of class 0, two of class 1
    evaluation = individual.Evaluation(rows, np.array([0, 0, 0, 1, 1]), np.array([3, 5]))
    assert evaluation.scores(TwoClasses())["auc"] == pytest.approx([5 / 6, 1 / 6])
    monkeypatch.setattr(TwoClasses, "gives_probabilities", False)
    assert evaluation.scores(TwoClasses())["auc"] == pytest.approx([(2 / 3 + 1 / 2) / 2, (1 / 3 + 1 / 2) / 2])


def test_many_rows_are_thinned_evenly_and_a_missing_class_has_no_order(monkeypatch):
    monkeypatch.setattr(individual, "_ORDERED", 3)
    rows = np.linspace(0, 1, 12)[:, None]
    whole = individual.Evaluation(rows, np.repeat([0, 1], 6), np.array([6, 12]))
    assert whole.scores(TwoClasses())["auc"] == pytest.approx([1, 0])
    one = individual.Evaluation(rows, np.zeros(12, dtype=int), np.array([12, 12]))
    assert one.scores(TwoClasses())["auc"] == pytest.approx([0.5, 0.5])
