import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

from scenarios.scores.scoring import TestRows, score, score_outputs


def instance(seed, classes, rows=60, models=4):
    random = np.random.default_rng(seed)
    return (
        random.normal(size=(rows, 3)).round(1),
        np.concatenate([np.arange(classes), random.integers(0, classes, rows - classes)]),
        random.normal(size=(models, classes, 3)).round(1),
    )


@settings(derandomize=True, deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 5))
def test_scores_agree_with_scikit_learn(seed, classes):
    rows, labels, weights = instance(seed, classes)
    scores = score(TestRows.of(rows, labels, classes), weights)
    for model, matrix in enumerate(weights):
        predicted = (rows @ matrix.T).argmax(axis=1)
        assert scores["accuracy"][model] == pytest.approx(accuracy_score(labels, predicted))
        assert scores["balanced_accuracy"][model] == pytest.approx(balanced_accuracy_score(labels, predicted))
        if classes == 2:
            expected = roc_auc_score(labels, rows @ (matrix[1] - matrix[0]))
            assert scores["auc"][model] == pytest.approx(expected)


def test_ties_go_to_the_smallest_class():
    rows, labels = np.ones((3, 2)), np.array([0, 1, 2])
    scores = score(TestRows.of(rows, labels, 3), np.zeros((1, 3, 2)))
    assert scores["accuracy"][0] == pytest.approx(1 / 3)


def test_many_models_are_scored_as_one_by_one():
    rows, labels, weights = instance(3, 4, rows=500, models=3000)
    test = TestRows.of(rows, labels, 4)
    together = score(test, weights)
    for model in (0, 1234, 2999):
        assert score(test, weights[model : model + 1])["accuracy"][0] == together["accuracy"][model]


def test_absent_classes_do_not_count_towards_balanced_accuracy():
    rows, labels = np.eye(2), np.array([0, 1])
    weights = np.array([[[1.0, 0.0], [0.0, 1.0], [-9.0, -9.0]]])
    assert score(TestRows.of(rows, labels, 3), weights)["balanced_accuracy"][0] == 1.0
    only_zero = TestRows.of(rows[:1], labels[:1], 2)
    assert "auc" not in score(only_zero, weights[:, :2])


@settings(derandomize=True, deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_scores_of_outputs_agree_with_scikit_learn(seed):
    _, labels, _ = instance(seed, 2)
    outputs = np.random.default_rng(seed).normal(size=(2, len(labels))).round(1)
    test = TestRows.of(np.arange(len(labels), dtype=float)[:, None], labels, 2)
    scores = score_outputs(test, outputs[:, test.rows[:, 0].astype(int)].T)
    for model, values in enumerate(outputs):
        assert scores["accuracy"][model] == pytest.approx(accuracy_score(labels, values >= 0))
        assert scores["balanced_accuracy"][model] == pytest.approx(balanced_accuracy_score(labels, values >= 0))
        assert scores["auc"][model] == pytest.approx(roc_auc_score(labels, values))


def test_an_output_that_is_no_number_is_below_all_others():
    test = TestRows.of(np.zeros((4, 1)), np.array([0, 0, 1, 1]), 2)
    scores = score_outputs(test, np.array([[np.nan], [-5.0], [np.nan], [np.inf]]))
    assert scores == {"accuracy": [0.75], "balanced_accuracy": [0.75], "auc": [0.625]}
    alone = TestRows.of(np.zeros((1, 1)), np.array([1]), 2)
    assert score_outputs(alone, np.zeros((1, 1))) == {"accuracy": [1.0], "balanced_accuracy": [1.0]}
