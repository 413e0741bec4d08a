import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from aggregator.learners.weighted_erm import WeightedERM
from federation.contract.errors import InputError


def test_it_is_a_scikit_learn_classifier_and_refuses_shares_off_the_simplex_and_no_regularisation(rng):
    check_estimator(WeightedERM(regularisation=1e-3))
    for shares, words in (([[100, -99], [1, 0], [1, 0]], "1"), ([[1, 0], [1, 0]], "shape")):
        with pytest.raises(InputError, match=words):
            WeightedERM().fit_shares(rng.normal(size=(3, 2)), shares, ["a", "b"])
    for regularisation in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="regularisation"):
            WeightedERM(regularisation=regularisation).fit(rng.normal(size=(6, 2)), [0, 1] * 3)


@pytest.mark.parametrize("classes", [2, 4])
def test_shares_equal_weighted_duplicate_rows(rng, classes):
    rows = rng.normal(size=(60, 5))
    shares = rng.dirichlet(np.ones(classes), 60)
    names = np.array(["a", "b", "c", "d"])[:classes]
    ours = WeightedERM(regularisation=0.02).fit_shares(rows, shares, names)
    reference = LogisticRegression(C=1 / (60 * 0.02), fit_intercept=False, tol=1e-12, max_iter=10_000)
    reference.fit(np.repeat(rows, classes, axis=0), np.tile(names, 60), sample_weight=shares.ravel())
    expected = reference.coef_[0] if classes == 2 else reference.coef_
    np.testing.assert_allclose(ours.weights_, expected, atol=1e-6)
    np.testing.assert_array_equal(ours.predict(rows), reference.predict(rows))
    np.testing.assert_allclose(ours.coef_, reference.coef_, atol=1e-6)
    np.testing.assert_array_equal(ours.intercept_, np.zeros(len(reference.coef_)))
    np.testing.assert_allclose(ours.predict_proba(rows), reference.predict_proba(rows), atol=1e-6)


@pytest.mark.parametrize("classes", [2, 4])
def test_weighted_rows_are_those_of_scikit_learn(rng, classes):
    rows, labels, weights = rng.normal(size=(80, 5)), rng.integers(0, classes, 80), rng.exponential(size=80)
    ours = WeightedERM(regularisation=0.02).fit(rows, labels, sample_weight=weights)
    reference = LogisticRegression(C=1 / (weights.sum() * 0.02), fit_intercept=False, tol=1e-12, max_iter=10_000)
    reference.fit(rows, labels, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, reference.coef_, atol=1e-6)
    shared = WeightedERM(regularisation=0.02).fit_shares(rows, np.eye(classes)[labels], np.arange(classes), weights)
    np.testing.assert_array_equal(shared.weights_, ours.weights_)
    with pytest.raises(ValueError, match="weight"):
        WeightedERM().fit(rows, labels, sample_weight=-weights)
