import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from synthetic import draw

from federation.errors import InputError
from parties.classifiers import check_classifier, fit, scikit_learn_classifiers

LOGISTIC = {"name": "logistic", "parameters": {"regularisation": 0.05}}


@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_votes_like_scikit_learn(rng, classes):
    rows, labels = draw(1, 60)
    rows, labels = rows[labels < classes], labels[labels < classes]
    fresh = draw(2, 400)[0]
    reference = LogisticRegression(C=1 / (len(rows) * 0.05), fit_intercept=False, tol=1e-10, max_iter=5000)
    expected = reference.fit(rows, labels).predict(fresh)
    np.testing.assert_array_equal(fit(rows, labels, LOGISTIC, rng)(fresh), expected)


def test_votes_stay_among_the_classes_a_party_has_seen(rng):
    rows, labels = draw(1, 60)
    seen = labels != 1
    votes = fit(rows[seen], labels[seen], LOGISTIC, rng)(draw(2, 400)[0])
    assert set(votes) == {0, 2}


@pytest.mark.parametrize("name", ["logistic", "LogisticRegression", "DecisionTreeClassifier"])
def test_a_party_with_one_class_votes_for_it(rng, name):
    rows, _ = draw(1, 5)
    votes = fit(rows, np.full(5, 2), {"name": name, "parameters": {}}, rng)(draw(2, 30)[0])
    assert (votes == 2).all()


def test_equal_generators_give_equal_forests():
    rows, labels = draw(1, 40)
    forest = {"name": "RandomForestClassifier", "parameters": {"n_estimators": 3}}
    votes = [fit(rows, labels, forest, np.random.default_rng(key))(draw(2, 200)[0]) for key in (4, 4, 5)]
    np.testing.assert_array_equal(votes[0], votes[1])
    assert (votes[0] != votes[2]).any()


def test_ties_go_to_the_smallest_seen_class(rng):
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    votes = fit(rows, np.array([1, 2, 2]), LOGISTIC, rng)(np.zeros((3, 2)))
    assert (votes == 1).all()


def test_large_features_do_not_stop_training(rng):
    rows, labels = draw(1, 60)
    fit(1e6 * rows, labels, LOGISTIC, rng)


@pytest.mark.parametrize(
    ("classifier", "words"),
    [
        ({"name": "RandomForrestClassifier", "parameters": {}}, "RandomForestClassifier"),
        ({"name": "GaussianNB", "parameters": {"prior": 1}}, "priors"),
        ({"name": "logistic", "parameters": {"C": 1}}, "regularisation"),
        ({"name": "RandomForestClassifier", "parameters": {"n_estimators": -3}}, r"'n_estimators' .*, got -3 instead$"),
        ({"name": "logistic", "parameters": {"regularisation": "x"}}, "positive number, got 'x'"),
        ({"name": "logistic", "parameters": {"regularisation": True}}, "positive number, got True"),
        ({"name": "VotingClassifier", "parameters": {}}, "estimators"),
        ({"name": "logistic", "parameters": {"regularisation": 0.0}}, "positive"),
    ],
)
def test_wrong_classifiers_are_refused_with_the_nearest_name(classifier, words):
    with pytest.raises(InputError, match=words):
        check_classifier(classifier)


def test_all_of_scikit_learn_is_offered():
    assert {"RandomForestClassifier", "SVC", "KNeighborsClassifier"} <= set(scikit_learn_classifiers())
