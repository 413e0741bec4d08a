import tracemalloc

import numpy as np
import pytest

from aggregator.answers.vector_answers import VectorAnswers
from aggregator.world.fitting import fit
from federation.contract.errors import InputError
from federation.contract.submission import Submission
from federation.questions.votes import ParametersQuestion, Training


def question(width=2, classes=3, largest=10.0):
    feature_map = fit(["unit_norm"], np.ones((1, width)))
    classifier = {"name": "logistic", "parameters": {"regularisation": 1e-2}}
    return ParametersQuestion(Training(feature_map, classes, classifier, 0), 1e-8, largest)


def submission(vectors, parties):
    return Submission("parameters", np.asarray(parties), {"parameters": np.asarray(vectors, dtype=np.float64)})


def test_missing_parties_are_zero_vectors():
    answers = VectorAnswers(question(), 4, norm=100.0)
    assert answers.add(submission(np.ones((2, 2, 2)), [1, 3])) == {}
    assert answers.value() == pytest.approx(np.full((2, 2), 0.5), rel=1e-13)
    assert (answers.answered, answers.parties) == (2, 4)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 10.1, -1e308])
def test_an_answer_that_is_no_number_in_range_costs_its_own_party_only(value):
    answers = VectorAnswers(question(), 3, norm=1.0)
    vectors = np.ones((2, 2, 2))
    vectors[1, 0, 1] = value
    assert list(answers.add(submission(vectors, [0, 2]))) == [2]
    assert answers.answered == 1
    assert answers.value() == pytest.approx(0.5 / 3)
    assert answers.add(submission(np.ones((1, 2, 2)), [2])) == {}


def test_only_the_first_answer_of_a_declared_party_counts():
    answers = VectorAnswers(question(), 2, norm=100.0)
    answers.add(submission(np.ones((1, 2, 2)), [0]))
    refused = answers.add(submission(np.full((2, 2, 2), 5.0), [0, 2]))
    assert sorted(refused) == [0, 2]
    assert answers.value() == pytest.approx(np.full((2, 2), 0.5), rel=1e-13)


@pytest.mark.parametrize("vectors", [np.ones((1, 4)), np.ones((1, 2, 2), np.float32), np.ones((2, 2, 2))])
def test_a_submission_of_another_form_is_an_input_error(vectors):
    with pytest.raises(InputError):
        VectorAnswers(question(), 2, norm=1.0).add(Submission("parameters", np.array([0]), {"parameters": vectors}))


def test_nobody_may_answer():
    answers = VectorAnswers(question(), 2, norm=1.0)
    assert answers.add(submission(np.empty((0, 2, 2)), np.empty(0, np.int64))) == {}
    np.testing.assert_array_equal(answers.value(), np.zeros((2, 2)))


def peak_of_adding(parties):
    asked, cohort = question(width=500), np.ones((50, 2, 500))
    tracemalloc.start()
    answers = VectorAnswers(asked, parties, norm=1.0)
    for first in range(0, min(parties, 1000), 50):
        answers.add(submission(cohort, np.arange(first, first + 50)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_memory_grows_by_a_byte_per_party_not_by_its_vector():
    assert peak_of_adding(101_000) - peak_of_adding(1000) < 2 * 100_000  # one vector alone has 8,000 bytes
