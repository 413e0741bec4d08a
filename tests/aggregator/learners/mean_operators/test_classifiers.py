"""The classifier from a mean operator: scikit-learn's contract, probabilities, ties, and objective perturbation.

Classifiers learned from noisy labels against the one that sees the labels themselves. Classifiers learned from
proportions of bags against those of the labels themselves.
"""

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from aggregator.learners.mean_operators.classifiers import (
    MeanOperatorClassifier,
    NoisyLabelClassifier,
    NotTwoClassesError,
    ProportionClassifier,
)
from aggregator.learners.mean_operators.moments import laplacian_mean_map, mean_map
from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(80, 3)), np.ones(80)])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.where(rows[:, 0] + 0.3 * rng.normal(size=80) > 0, "yes", "no")


@pytest.mark.parametrize("loss", ["logistic", "square", pytest.param("double_hinge", marks=pytest.mark.slow)])
def test_it_is_a_scikit_learn_classifier(loss):
    check_estimator(MeanOperatorClassifier(loss))


def test_labels_and_their_mean_operator_give_the_same_and_square_probabilities_are_clipped_scores(table):
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
    rows, labels = table
    fitted = MeanOperatorClassifier("square").fit(rows, labels)
    scores = fitted.decision_function(rows)
    np.testing.assert_allclose(fitted.predict_proba(rows)[:, 1], np.clip((1 + scores) / 2, 0, 1), atol=1e-15)
    for loss in ("double_hinge", "unhinged"):
        fitted = MeanOperatorClassifier(loss).fit(rows, labels)
        assert not hasattr(fitted, "predict_proba")
        with pytest.raises(AttributeError, match="predict_proba"):
            fitted.predict_proba(rows)
    assert MeanOperatorClassifier().fit_moment(rows, rows[0]).predict(np.zeros((1, 4))) == [1]  # a score of zero
    fitted = MeanOperatorClassifier("matsushita").fit(rows, labels)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(rows), fitted.predict_proba(rows))


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
    weights = rng.random(80)
    fitted = MeanOperatorClassifier(regularisation=0.01, tolerance=1e-9).fit(rows, labels, weights)
    reference = LogisticRegression(C=1 / (0.02 * weights.sum()), fit_intercept=False, tol=1e-12)
    np.testing.assert_allclose(fitted.weights_, reference.fit(rows, labels, weights).coef_[0], atol=1e-6)


def test_the_rule_for_regularisation_and_weights_of_zero_are_pointed_out_at_the_line_that_fits(table, tumours):
    rows, labels = table
    assert MeanOperatorClassifier().fit(rows, labels).regularisation_ == 1e-4
    assert MeanOperatorClassifier().fit_moment(rows, rows[0], noise_variance=0.4).regularisation_ == 0.2
    assert MeanOperatorClassifier(regularisation=0.3).fit_moment(rows, rows[0], 0.4).regularisation_ == 0.3
    with pytest.warns(UserWarning, match="weights of zero"):
        MeanOperatorClassifier("rho", rho=2.0).fit(rows, labels)
    with pytest.warns(UserWarning, match="weights of zero") as caught:
        NoisyLabelClassifier("perceptron").fit(*tumours)
    assert caught[0].filename == __file__


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


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda x, y: MeanOperatorClassifier().fit(x, ["a"] * 80), NotTwoClassesError, None),
    (lambda x, y: MeanOperatorClassifier().fit(x, ["a", "b", "c", "d"] * 20), NotTwoClassesError, None),
    (lambda x, y: MeanOperatorClassifier().fit_moment(x, x[0], classes=(1, 1)), NotTwoClassesError, None),
    (lambda x, y: NoisyLabelClassifier().fit(x, np.arange(80) % 3), NotTwoClassesError, None),
    (lambda x, y: MeanOperatorClassifier("hinge").fit(x, y), InputError, None),
    (lambda x, y: MeanOperatorClassifier(rho=1.0).fit(x, y), InputError, None),
    (lambda x, y: MeanOperatorClassifier().fit_moment(x, np.ones(3)), InputError, r"moment.*4"),
    (lambda x, y: MeanOperatorClassifier().fit_moment(x, x[0], -1.0), InputError, "noise_variance"),
    (lambda x, y: MeanOperatorClassifier("square", regularisation=0.0).fit_moment(x, x[0], 0.1), InputError,
     r"regularisation.*0"),
    (lambda x, y: MeanOperatorClassifier(regularisation=0.0).fit(x, y), InputError, r"regularisation.*0"),
    (lambda x, y: NoisyLabelClassifier(epsilon=1, flipped_positive=0.1).fit(x, y), InputError, r"epsilon.*1"),
    (lambda x, y: NoisyLabelClassifier(flipped_positive=0.6, flipped_negative=0.4).fit(x, y), InputError, "1"),
    (lambda x, y: NoisyLabelClassifier(epsilon=0).fit(x, y), InputError, "epsilon"),
    (lambda x, y: NoisyLabelClassifier(epsilon=1, regularisation=0).fit(x, y), InputError, r"regularisation.*0"),
    (lambda x, y: NoisyLabelClassifier().fit(x, ["no"] * 80), InputError, None),
    (lambda x, y: ProportionClassifier(method="laplacain").fit([x, x], np.eye(2)), InputError, "laplacian"),
    (lambda x, y: ProportionClassifier().fit([x, x], np.full((2, 2), 0.5)), InputError, "1"),
    (lambda x, y: ProportionClassifier(loss="hinge").fit([x, -x], np.eye(2)), InputError, "hinge"),
])  # fmt: skip
def test_what_cannot_be_learned_is_refused(table, call, error, words):
    with pytest.raises(error, match=words):
        call(*table)


@pytest.fixture(scope="module")
def tumours() -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm 1 in random order, and labels."""
    rows, labels = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(rows))
    return fit(["scale", "constant", "unit_norm"], rows).transform(rows[order]), labels[order]


def test_noisy_label_classifiers_are_scikit_learns_and_parameters_are_handed_on(tumours):
    check_estimator(NoisyLabelClassifier(flipped_positive=0.05, flipped_negative=0.01, regularisation=1e-3))
    rows, _ = tumours
    bags, shares = [rows[:200], rows[200:400], rows[400:]], np.array([0.2, 0.5, 0.9])
    parameters = {"method": "laplacian", "gamma": 7.0, "bandwidth": 0.3, "loss": "square", "regularisation": 0.1}
    estimator = clone(ProportionClassifier(**parameters))
    assert parameters.items() <= estimator.get_params().items()
    found = estimator.fit(bags, np.column_stack([1 - shares, shares]))
    moment = laplacian_mean_map(bags, np.column_stack([1 - shares, shares]), 7.0, 0.3).moment
    expected = MeanOperatorClassifier("square", regularisation=0.1).fit_moment(rows, moment)
    np.testing.assert_allclose(found.weights_, expected.weights_, rtol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "square", "matsushita", "double_hinge", "unhinged"])
def test_without_noise_it_is_the_classifier_of_labels(tumours, loss):
    rows, labels = tumours
    names = np.array(["benign", "malignant"])[labels]
    ours = NoisyLabelClassifier(loss).fit(rows, names)
    expected = MeanOperatorClassifier(loss).fit(rows, names)
    np.testing.assert_allclose(ours.weights_, expected.weights_, atol=1e-5 * np.linalg.norm(expected.weights_))
    np.testing.assert_array_equal(ours.classes_, expected.classes_)
    np.testing.assert_array_equal(ours.predict(rows), expected.predict(rows))


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


def test_the_noise_of_weighted_labels_is_that_of_weighted_rows(rng):
    rows, labels = rng.normal(size=(200, 3)) / 3, rng.integers(0, 2, 200)
    weights = rng.random(200)
    fitted = NoisyLabelClassifier(flipped_positive=0.2, flipped_negative=0.2).fit(rows, labels, weights)
    shares = weights / weights.sum()
    known = 4 * 0.2 * 0.8 / 0.6**2  # the variance of an unbiased label
    np.testing.assert_allclose(fitted.estimate_.noise_variance, known * np.sum(shares**2 * np.sum(rows**2, axis=1)))
    np.testing.assert_allclose(fitted.estimate_.moment, (shares * (2 * labels - 1) / 0.6) @ rows)


def dealt(labels: np.ndarray, shares: list[float]) -> list[np.ndarray]:
    """Row numbers of disjoint bags with these shares of class 1, as large as fits."""
    size = min(int((labels == code).sum() / sum(of)) for code, of in ((1, shares), (0, [1 - s for s in shares])))
    sides = [iter(np.flatnonzero(labels == code)) for code in (0, 1)]
    counts = [(size - round(size * share), round(size * share)) for share in shares]
    return [np.array([next(side) for side, n in zip(sides, count, strict=True) for _ in range(n)]) for count in counts]


@pytest.mark.parametrize(("method", "estimate"), [("mean_map", mean_map), ("laplacian", laplacian_mean_map)])
def test_proportions_teach_nearly_as_much_as_labels(tumours, method, estimate):
    rows, labels = tumours
    chosen = dealt(labels[:400], [0.2, 0.35, 0.65, 0.9])
    bags, shares = [rows[bag] for bag in chosen], np.array([labels[bag].mean() for bag in chosen])
    proportions = np.column_stack([1 - shares, shares])
    found = ProportionClassifier(method=method).fit(bags, proportions, classes=("benign", "malignant"))
    assert np.mean(found.predict(rows[400:]) == np.array(["benign", "malignant"])[labels[400:]]) > 0.93
    expected = estimate(bags, proportions)
    np.testing.assert_array_equal(found.estimate_.moment, expected.moment)
    direct = MeanOperatorClassifier().fit_moment(np.concatenate(bags), expected.moment, expected.noise_variance)
    np.testing.assert_array_equal(found.weights_, direct.weights_)
    assert found.predict_proba(rows[:3]).shape == (3, 2)
