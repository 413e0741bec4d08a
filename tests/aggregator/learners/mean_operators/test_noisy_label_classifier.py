"""Classifiers learned from noisy labels against the one that sees the labels themselves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.utils.estimator_checks import check_estimator

from aggregator.learners.mean_operators.classifiers import (
    MeanOperatorClassifier,
    NoisyLabelClassifier,
    NotTwoClassesError,
)
from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError

LOSSES = ("logistic", "square", "matsushita", "double_hinge", "unhinged")


@pytest.fixture(scope="module")
def tumours() -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm 1 in random order, and labels."""
    rows, labels = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(rows))
    return fit(["scale", "constant", "unit_norm"], rows).transform(rows[order]), labels[order]


def test_noisy_label_classifiers_are_scikit_learns():
    check_estimator(NoisyLabelClassifier(flipped_positive=0.05, flipped_negative=0.01, regularisation=1e-3))


@pytest.mark.parametrize("loss", LOSSES)
def test_without_noise_it_is_the_classifier_of_labels(tumours, loss):
    rows, labels = tumours
    names = np.array(["benign", "malignant"])[labels]
    ours = NoisyLabelClassifier(loss).fit(rows, names)
    expected = MeanOperatorClassifier(loss).fit(rows, names)
    np.testing.assert_allclose(ours.weights_, expected.weights_, atol=1e-5 * np.linalg.norm(expected.weights_))
    np.testing.assert_array_equal(ours.classes_, expected.classes_)
    np.testing.assert_array_equal(ours.predict(rows), expected.predict(rows))


def test_a_warning_names_the_line_that_fits(tumours):
    with pytest.warns(UserWarning, match="weights of zero") as caught:
        NoisyLabelClassifier("perceptron").fit(*tumours)
    assert caught[0].filename == __file__


def test_known_noise_costs_less_than_noise_taken_for_the_truth(tumours):
    rows, labels = tumours
    train, test = slice(0, 400), slice(400, None)
    corrected, naive, answered = [], [], []
    for seed in range(8):
        random = np.random.default_rng(seed)
        flipped = labels ^ (random.random(len(labels)) < np.where(labels == 1, 0.4, 0.05))
        answers = labels ^ (random.random(len(labels)) < 1 / (1 + np.exp(1.0)))
        noisy = NoisyLabelClassifier(flipped_positive=0.4, flipped_negative=0.05).fit(rows[train], flipped[train])
        corrected.append(noisy.score(rows[test], labels[test]))
        naive.append(NoisyLabelClassifier().fit(rows[train], flipped[train]).score(rows[test], labels[test]))
        private = NoisyLabelClassifier(epsilon=1.0).fit(rows[train], answers[train])
        assert private.regularisation_ == max(1e-4, private.estimate_.noise_variance / 2)
        answered.append(private.score(rows[test], labels[test]))
    assert np.mean(corrected) > max(0.93, np.mean(naive) + 0.03)
    assert np.mean(answered) > 0.92


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, y: NoisyLabelClassifier(epsilon=1, flipped_positive=0.1).fit(x, y), "epsilon 1 decides how labels"),
        (lambda x, y: NoisyLabelClassifier(flipped_positive=0.6, flipped_negative=0.4).fit(x, y), "must be below 1"),
        (lambda x, y: NoisyLabelClassifier(epsilon=0).fit(x, y), "epsilon must be positive"),
        (lambda x, y: NoisyLabelClassifier(epsilon=1, regularisation=0).fit(x, y), "regularisation must be > 0"),
        (lambda x, y: NoisyLabelClassifier().fit(x, y * 0), "two classes"),
    ],
)
def test_what_cannot_be_used_is_named(tumours, call, words):
    rows, labels = tumours
    with pytest.raises(InputError, match=words):
        call(rows, labels)


def test_other_numbers_of_classes_are_refused(tumours):
    rows, _ = tumours
    with pytest.raises(NotTwoClassesError):
        NoisyLabelClassifier().fit(rows, np.arange(len(rows)) % 3)


def test_the_noise_of_weighted_labels_is_that_of_weighted_rows(rng):
    rows, labels = rng.normal(size=(200, 3)) / 3, rng.integers(0, 2, 200)
    weights = rng.random(200)
    fitted = NoisyLabelClassifier(flipped_positive=0.2, flipped_negative=0.2).fit(rows, labels, weights)
    shares = weights / weights.sum()
    known = 4 * 0.2 * 0.8 / 0.6**2  # the variance of an unbiased label
    np.testing.assert_allclose(fitted.estimate_.noise_variance, known * np.sum(shares**2 * np.sum(rows**2, axis=1)))
    np.testing.assert_allclose(fitted.estimate_.moment, (shares * (2 * labels - 1) / 0.6) @ rows)
