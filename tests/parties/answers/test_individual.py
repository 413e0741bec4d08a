"""What each party's own classifier scores: the sample that is asked for, whatever blocks and cohorts it comes in."""

import numpy as np
import pytest
from support.synthetic import Parties
from support.training_parties import by_party, cohort, make_training

from federation.contract.errors import InputError
from federation.contract.submission import check_submission
from federation.questions.votes import IndividualQuestion, VotesQuestion
from parties.answers import individual, votes


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
