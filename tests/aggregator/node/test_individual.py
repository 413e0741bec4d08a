import numpy as np
import pytest

from aggregator.server.app import IndividualScores, best_means
from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError
from federation.contract.query import Submission
from federation.queries.votes import IndividualQuestion, Training


@pytest.fixture
def question(public):
    return IndividualQuestion(Training(fit(["unit_norm"], public.rows), 3, {}, 0), 4)


def scores(parties, values):
    arrays = {name: np.array(values, dtype=float) for name in ("accuracy", "balanced_accuracy")}
    return Submission("individual", np.array(parties), arrays)


def test_the_mean_does_not_depend_on_arrival(question):
    values = [0.1, 0.2, 0.7]
    orders = []
    for order in ([0, 1, 2], [2, 0, 1]):
        collected = IndividualScores(question, 10)
        for party in order:
            assert collected.add(scores([party], [values[party]])) == {}
        orders.append(collected.means())
    assert orders[0] == orders[1] == {"accuracy": np.mean(values), "balanced_accuracy": np.mean(values)}


def test_parties_outside_the_sample_do_not_count(question):
    collected = IndividualScores(question, 10)
    assert list(collected.add(scores([3, 4], [0.5, 1.0]))) == [4]
    assert (collected.answered, collected.means()["accuracy"]) == (1, 0.5)


@pytest.mark.parametrize("value", [float("nan"), 1.5, -0.1])
def test_impossible_scores_are_refused(question, value):
    collected = IndividualScores(question, 10)
    assert list(collected.add(scores([0, 1], [0.5, value]))) == [1]
    assert collected.answered == 1


def test_a_malformed_submission_is_an_input_error(question):
    with pytest.raises(InputError):
        IndividualScores(question, 10).add(Submission("individual", np.array([0]), {"accuracy": np.array([0.5])}))


def test_the_baseline_is_that_of_the_map_that_suits_it_best(question):
    poor, good = IndividualScores(question, 10), IndividualScores(question, 10)
    poor.add(scores([0, 1], [0.2, 0.4]))
    good.add(scores([1, 0], [0.8, 0.6]))
    assert best_means([poor, good, IndividualScores(question, 10)]) == good.means()
    assert best_means([]) is None
