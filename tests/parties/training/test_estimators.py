import numpy as np
import pytest
from support.synthetic import draw

from federation.contract.errors import InputError
from parties.training.classifiers import EstimatorGroup, fit_estimator, scikit_learn_classifiers

PARTY = np.array([4])


def group(name, labels=None, classes=5, **parameters):
    rows, drawn = draw(1, 60)
    labels = drawn if labels is None else labels[drawn]
    fitted = fit_estimator(rows, labels, {"name": name, "parameters": parameters}, np.random.default_rng(0))
    return EstimatorGroup(PARTY, fitted, classes)


@pytest.mark.parametrize("name", ["GaussianNB", "DecisionTreeClassifier", "LogisticRegression"])
def test_probabilities_are_spread_over_the_declared_classes(name):
    rows = draw(2, 50)[0]
    found = group(name, labels=np.array([0, 3, 1]))
    shares = found.probabilities(rows)
    assert shares.shape == (1, 50, 5)
    assert not shares[0][:, [2, 4]].any()
    np.testing.assert_array_equal(shares[0][:, [0, 1, 3]], found.estimator.predict_proba(rows))
    np.testing.assert_array_equal(shares[0].argmax(axis=1), found.votes(rows)[0])


@pytest.mark.parametrize("name", ["LinearSVC", "Perceptron", "RidgeClassifier"])
def test_a_classifier_without_probabilities_says_so(name):
    assert group(name).votes(draw(2, 5)[0]).dtype == np.uint8
    with pytest.raises(InputError, match=f"'{name}' gives no probabilities"):
        group(name).probabilities(draw(2, 5)[0])


def test_probabilities_out_of_form_are_refused(monkeypatch):
    found = group("GaussianNB")
    monkeypatch.setattr(type(found.estimator), "predict_proba", lambda self, rows: np.ones((3, 2)))
    with pytest.raises(InputError, match="3 probabilities per row"):
        found.probabilities(draw(2, 3)[0])


def test_equal_generators_give_equal_forests():
    rows, labels = draw(1, 40)
    forest = {"name": "RandomForestClassifier", "parameters": {"n_estimators": 3}}
    votes = [
        fit_estimator(rows, labels, forest, np.random.default_rng(key)).predict(draw(2, 200)[0]) for key in (4, 4, 5)
    ]
    np.testing.assert_array_equal(votes[0], votes[1])
    assert (votes[0] != votes[2]).any()


def test_all_of_scikit_learn_is_offered():
    assert {"RandomForestClassifier", "SVC", "KNeighborsClassifier"} <= set(scikit_learn_classifiers())
