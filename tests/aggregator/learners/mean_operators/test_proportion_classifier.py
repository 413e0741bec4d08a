"""Classifiers learned from proportions of bags against those of the labels themselves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer

from aggregator.learners.mean_operators.classifiers import MeanOperatorClassifier, ProportionClassifier
from aggregator.learners.mean_operators.moments import laplacian_mean_map, mean_map
from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError


@pytest.fixture(scope="module")
def tumours() -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm 1 in random order, and labels."""
    rows, labels = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(rows))
    return fit(["scale", "constant", "unit_norm"], rows).transform(rows[order]), labels[order]


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


def test_bags_of_one_class_each_are_labels(tumours):
    rows, labels = tumours
    bags = [rows[labels == code] for code in (0, 1)]
    found = ProportionClassifier("square", regularisation=1e-3).fit(bags, np.eye(2))
    expected = MeanOperatorClassifier("square", regularisation=1e-3).fit(rows, labels)
    np.testing.assert_allclose(found.weights_, expected.weights_, atol=1e-9)


def test_parameters_are_handed_on(tumours):
    rows, _ = tumours
    bags, shares = [rows[:200], rows[200:400], rows[400:]], np.array([0.2, 0.5, 0.9])
    parameters = {"method": "laplacian", "gamma": 7.0, "bandwidth": 0.3, "loss": "square", "regularisation": 0.1}
    estimator = clone(ProportionClassifier(**parameters))
    assert parameters.items() <= estimator.get_params().items()
    found = estimator.fit(bags, np.column_stack([1 - shares, shares]))
    moment = laplacian_mean_map(bags, np.column_stack([1 - shares, shares]), 7.0, 0.3).moment
    expected = MeanOperatorClassifier("square", regularisation=0.1).fit_moment(rows, moment)
    np.testing.assert_allclose(found.weights_, expected.weights_, rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: ProportionClassifier(method="laplacain").fit([x, x], np.eye(2)), "did you mean 'laplacian'"),
        (lambda x: ProportionClassifier().fit([x, x], np.full((2, 2), 0.5)), "rank 1"),
        (lambda x: ProportionClassifier(loss="hinge").fit([x, -x], np.eye(2)), "hinge"),
    ],
)
def test_what_cannot_be_used_is_named(tumours, call, words):
    rows, _ = tumours
    with pytest.raises(InputError, match=words):
        call(rows)
