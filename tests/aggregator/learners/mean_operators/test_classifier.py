"""The classifier from a mean operator: scikit-learn's contract, probabilities, ties, and objective perturbation."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from aggregator.learners.mean_operators.classifiers import MeanOperatorClassifier, NotTwoClassesError
from federation.contract.errors import InputError


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(80, 3)), np.ones(80)])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.where(rows[:, 0] + 0.3 * rng.normal(size=80) > 0, "yes", "no")


@pytest.mark.parametrize("loss", ["logistic", "square", "double_hinge"])
def test_it_is_a_scikit_learn_classifier(loss):
    check_estimator(MeanOperatorClassifier(loss))


def test_labels_and_their_mean_operator_give_the_same(table):
    rows, labels = table
    fitted = MeanOperatorClassifier(regularisation=0.01, tolerance=1e-9).fit(rows, labels)
    signs = np.where(labels == "yes", 1.0, -1.0)
    moment = MeanOperatorClassifier(regularisation=0.01).fit_moment(rows, signs @ rows / 80, classes=("no", "yes"))
    np.testing.assert_allclose(moment.weights_, fitted.weights_, atol=1e-6)
    np.testing.assert_array_equal(moment.predict(rows), fitted.predict(rows))
    for one in (fitted, moment):
        np.testing.assert_allclose(one.estimate_.moment, signs @ rows / 80, atol=1e-15)
        assert one.estimate_.noise_variance == 0
    reference = LogisticRegression(C=1 / (0.02 * 80), fit_intercept=False, tol=1e-12).fit(rows, labels)
    np.testing.assert_allclose(fitted.weights_, reference.coef_[0], atol=1e-6)
    np.testing.assert_allclose(fitted.predict_proba(rows), reference.predict_proba(rows), atol=1e-6)
    np.testing.assert_allclose(fitted.coef_, reference.coef_, atol=1e-6)
    assert fitted.intercept_.tolist() == [0.0]


@pytest.mark.parametrize("loss", ["logistic", "square", "double_hinge"])
def test_a_weight_counts_as_so_many_equal_rows(table, rng, loss):
    rows, labels = table
    weights = rng.integers(0, 4, 80)
    weighted = MeanOperatorClassifier(loss, regularisation=0.01).fit(rows, labels, sample_weight=weights)
    repeated = MeanOperatorClassifier(loss, regularisation=0.01)
    repeated.fit(np.repeat(rows, weights, axis=0), np.repeat(labels, weights))
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-4)
    np.testing.assert_allclose(weighted.estimate_.moment, repeated.estimate_.moment, atol=1e-14)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        MeanOperatorClassifier(loss).fit(rows, labels, sample_weight=-np.ones(80))


def test_weights_agree_with_an_independent_solver(table, rng):
    rows, labels = table
    weights = rng.random(80)
    fitted = MeanOperatorClassifier(regularisation=0.01, tolerance=1e-9).fit(rows, labels, weights)
    reference = LogisticRegression(C=1 / (0.02 * weights.sum()), fit_intercept=False, tol=1e-12)
    np.testing.assert_allclose(fitted.weights_, reference.fit(rows, labels, weights).coef_[0], atol=1e-6)


def test_square_probabilities_are_clipped_scores(table):
    rows, labels = table
    fitted = MeanOperatorClassifier("square").fit(rows, labels)
    scores = fitted.decision_function(rows)
    np.testing.assert_allclose(fitted.predict_proba(rows)[:, 1], np.clip((1 + scores) / 2, 0, 1), atol=1e-15)


@pytest.mark.parametrize("loss", ["double_hinge", "unhinged"])
def test_scores_of_other_losses_are_not_probabilities(table, loss):
    fitted = MeanOperatorClassifier(loss).fit(*table)
    assert not hasattr(fitted, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        fitted.predict_proba(table[0])


def test_a_score_of_zero_is_positive(table):
    rows, _ = table
    fitted = MeanOperatorClassifier().fit_moment(rows, rows[0])
    assert fitted.predict(np.zeros((1, 4))) == [1]


def test_the_rule_for_regularisation(table):
    rows, labels = table
    assert MeanOperatorClassifier().fit(rows, labels).regularisation_ == 1e-4
    assert MeanOperatorClassifier().fit_moment(rows, rows[0], noise_variance=0.4).regularisation_ == 0.2
    assert MeanOperatorClassifier(regularisation=0.3).fit_moment(rows, rows[0], 0.4).regularisation_ == 0.3


def test_weights_of_zero_are_pointed_out(table):
    rows, labels = table
    with pytest.warns(UserWarning, match="weights of zero"):
        MeanOperatorClassifier("rho", rho=2.0).fit(rows, labels)


def test_objective_perturbation_is_a_noisy_mean_operator(table):
    """Chaudhuri et al. 2011 add <b, w> / n to the risk: the same as moving mu by -2 b / n, with lam half of theirs.

    A flipped label moves mu by 2/n, so L2-Gamma noise for epsilon in mu has scale 2/(n epsilon), which is b of scale
    1/epsilon: half of theirs, 2/epsilon, as no label moves the Hessian.
    """
    rows, labels = table
    signs = np.where(labels == "yes", 1.0, -1.0)
    b, strength = np.array([0.5, -2.0, 1.0, 0.3]), 0.02

    def perturbed(w):
        return np.logaddexp(0, -signs * (rows @ w)).mean() + strength / 2 * w @ w + b @ w / 80

    expected = minimize(perturbed, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
    found = MeanOperatorClassifier(regularisation=strength / 2).fit_moment(rows, (signs @ rows - 2 * b) / 80)
    np.testing.assert_allclose(found.weights_, expected, atol=1e-5)


def test_fitted_classifiers_can_be_stored(table):
    fitted = MeanOperatorClassifier("matsushita").fit(*table)
    stored = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(stored.predict_proba(table[0]), fitted.predict_proba(table[0]))


def test_what_cannot_be_learned_is_refused(table):
    rows, labels = table
    for bad in (["a"] * 80, ["a", "b", "c", "d"] * 20):
        with pytest.raises(NotTwoClassesError, match="two classes, got"):
            MeanOperatorClassifier().fit(rows, bad)
    with pytest.raises(NotTwoClassesError, match="two different"):
        MeanOperatorClassifier().fit_moment(rows, rows[0], classes=(1, 1))
    with pytest.raises(InputError, match="not linear-odd"):
        MeanOperatorClassifier("hinge").fit(rows, labels)
    with pytest.raises(InputError, match="takes no parameters"):
        MeanOperatorClassifier(rho=1.0).fit(rows, labels)
    with pytest.raises(InputError, match=r"moment must have shape \(4,\)"):
        MeanOperatorClassifier().fit_moment(rows, np.ones(3))
    with pytest.raises(InputError, match="noise_variance"):
        MeanOperatorClassifier().fit_moment(rows, rows[0], -1.0)
    with pytest.raises(InputError, match="regularisation must be > 0"):
        MeanOperatorClassifier("square", regularisation=0.0).fit_moment(rows, rows[0], 0.1)
    with pytest.raises(InputError, match="regularisation must be > 0"):
        MeanOperatorClassifier(regularisation=0.0).fit(rows, labels)
