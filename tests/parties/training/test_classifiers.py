from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from support.synthetic import draw

from federation.contract.errors import InputError
from parties.training.classifiers import (
    EstimatorGroup,
    check_classifier,
    drawn_member,
    fit,
    fit_estimator,
    require_form,
)

LOGISTIC = {"name": "logistic", "parameters": {"regularisation": 0.05}}


@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_votes_like_scikit_learn(rng, classes):
    rows, labels = draw(1, 60)
    rows, labels = rows[labels < classes], labels[labels < classes]
    fresh = draw(2, 400)[0]
    seen = rows[labels != 1], labels[labels != 1]  # votes stay among the classes that a party has seen
    assert {*fit(*seen, LOGISTIC, rng)(fresh)} == {*seen[1]}
    reference = LogisticRegression(C=1 / (len(rows) * 0.05), fit_intercept=False, tol=1e-10, max_iter=5000)
    expected = reference.fit(rows, labels).predict(fresh)
    np.testing.assert_array_equal(fit(rows, labels, LOGISTIC, rng)(fresh), expected)


@pytest.mark.parametrize("name", ["logistic", "LogisticRegression", "DecisionTreeClassifier"])
def test_a_party_with_one_class_votes_for_it(rng, name):
    rows, _ = draw(1, 5)
    votes = fit(rows, np.full(5, 2), {"name": name, "parameters": {}}, rng)(draw(2, 30)[0])
    assert (votes == 2).all()


def test_the_members_of_a_pooled_mixture_vote_with_their_weights(rng):
    rows, labels = draw(1, 60)
    fresh = draw(2, 300)[0]
    members = [LOGISTIC, {"name": "GaussianNB", "parameters": {}}, {"name": "DummyClassifier", "parameters": {}}]
    alone = [fit(rows, labels, member, rng)(fresh) for member in members]

    def mixed(*weights):
        parameters = {"members": members, "weights": list(weights)}
        return fit(rows, labels, {"name": "mixture", "parameters": parameters}, rng)(fresh)

    for index, weights in enumerate([(5, 2, 2), (2, 5, 2), (2, 2, 5)]):
        np.testing.assert_array_equal(mixed(*weights), alone[index])
    agree, differ = alone[0] == alone[1], alone[0] != alone[1]
    assert differ.any()
    np.testing.assert_array_equal(mixed(2, 2, 3)[agree], alone[0][agree])
    tied = mixed(1, 1, 1e-9)[differ & (alone[2] != alone[0]) & (alone[2] != alone[1])]
    expected = np.minimum(alone[0], alone[1])[differ & (alone[2] != alone[0]) & (alone[2] != alone[1])]
    np.testing.assert_array_equal(tied, expected)


def test_ties_go_to_the_smallest_seen_class(rng):
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    votes = fit(rows, np.array([1, 2, 2]), LOGISTIC, rng)(np.zeros((3, 2)))
    assert (votes == 1).all()


def mixture(**parameters):
    return {"name": "mixture", "parameters": parameters}


@pytest.mark.parametrize(
    ("classifier", "words"),
    [
        ({"name": "RandomForrestClassifier", "parameters": {}}, "RandomForestClassifier"),
        ({"name": "GaussianNB", "parameters": {"prior": 1}}, "priors"),
        ({"name": "logistic", "parameters": {"C": 1}}, "regularisation"),
        ({"name": "RandomForestClassifier", "parameters": {"n_estimators": -3}}, r"n_estimators.*-3"),
        ({"name": "logistic", "parameters": {"regularisation": "x"}}, "'x'"),
        ({"name": "logistic", "parameters": {"regularisation": True}}, None),
        ({"name": "VotingClassifier", "parameters": {}}, "estimators"),
        ({"name": "logistic", "parameters": {"regularisation": 0.0}}, "positive"),
        (mixture(), None),
        (mixture(members=[LOGISTIC], weights=[1, 2]), None),
        (mixture(members=[LOGISTIC], weights=[0]), None),
        (mixture(members=[LOGISTIC, LOGISTIC], weights=[1, float("nan")]), None),
        (mixture(members=[LOGISTIC], weights=[1], shares=[1]), "shares"),
        (mixture(members=[mixture(members=[LOGISTIC], weights=[1])], weights=[1]), None),
        (mixture(members=[{"name": "GausianNB", "parameters": {}}], weights=[1]), "GaussianNB"),
        ({"name": "mixtur", "parameters": {}}, "mixture"),
    ],
)
def test_wrong_classifiers_and_mixtures_are_refused_with_the_nearest_name(classifier, words):
    with pytest.raises(InputError, match=words):
        check_classifier(classifier)
    check_classifier(mixture(members=[LOGISTIC, {"name": "GaussianNB", "parameters": {}}], weights=[3, 0.5]))


@pytest.mark.parametrize(("number", "member"), [(0.0, 0), (0.2, 0), (0.26, 1), (0.74, 1), (0.76, 2), (1 - 2**-53, 2)])
def test_a_member_is_drawn_in_proportion_to_its_weight(number, member):
    fixed = SimpleNamespace(random=lambda: number)
    assert drawn_member(mixture(members=[LOGISTIC] * 3, weights=[1, 2, 1]), fixed) == member


@pytest.mark.parametrize(
    "classifier",
    [
        {},
        {"name": "logistic"},
        {"name": ["logistic"], "parameters": {}},
        {"name": "SVC", "parameters": None},
        mixture(members=[1], weights=[1]),
        mixture(members=[{"name": "SVC"}], weights=[1]),
    ],
)
def test_what_is_no_name_with_parameters_is_refused_before_anybody_trains(classifier):
    for check in (require_form, check_classifier):
        with pytest.raises(InputError):
            check(classifier)
    unknown = {"name": "SVC", "parameters": {"kernel": "none"}}
    require_form(unknown)  # what a classifier of scikit-learn takes is for itself to say
    with pytest.raises(InputError, match="kernel"):
        check_classifier(unknown)


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
    with pytest.raises(InputError, match=f"'{name}'"):
        group(name).probabilities(draw(2, 5)[0])


def test_equal_generators_give_equal_forests_and_probabilities_out_of_form_are_refused(monkeypatch):
    rows, labels = draw(1, 40)
    forest = {"name": "RandomForestClassifier", "parameters": {"n_estimators": 3}}
    votes = [
        fit_estimator(rows, labels, forest, np.random.default_rng(key)).predict(draw(2, 200)[0]) for key in (4, 4, 5)
    ]
    np.testing.assert_array_equal(votes[0], votes[1])
    assert (votes[0] != votes[2]).any()
    found = group("GaussianNB")
    monkeypatch.setattr(type(found.estimator), "predict_proba", lambda self, rows: np.ones((3, 2)))
    with pytest.raises(InputError, match="3"):
        found.probabilities(draw(2, 3)[0])
