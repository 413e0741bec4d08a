"""Adjusted classify-and-count against a brute-force minimum, known confusions and classifiers that err."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.scores.number_scoring import AdjustedCount

LOGISTIC = {"name": "logistic", "parameters": {"regularisation": 1e-3}}


def bells(random, counts, distance=2.0):
    """Rows of class c from a normal distribution around c times `distance`, and a constant column."""
    labels = np.repeat(np.arange(len(counts)), counts)
    return np.stack([random.normal(labels * distance, 1.0), np.ones(len(labels))], axis=1), labels


def fitted(rows, labels, classes, classifier=LOGISTIC):
    return AdjustedCount.fit(rows, labels, classes, classifier, np.random.default_rng(1))


@settings(derandomize=True, deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.floats(0, 1))
def test_two_classes_agree_with_a_search_over_all_ratios(seed, share):
    random = np.random.default_rng(seed)
    count = fitted(*bells(random, (60, 90), 1.0), 2)
    target, _ = bells(random, (round(40 * share), 40 - round(40 * share)), 1.0)
    grid = np.linspace(0, 1, 100_001)
    observed = count.probabilities(target).mean(axis=0)
    distance = np.linalg.norm(count.confusion @ np.stack([grid, 1 - grid]) - observed[:, None], axis=0)
    found = count.predict(target)
    assert found[0] == pytest.approx(grid[distance.argmin()], abs=2e-5)
    assert found.sum() == pytest.approx(1)


def test_a_shift_of_the_class_shares_is_found_where_counting_is_wrong(rng):
    count = fitted(*bells(rng, (3000, 3000, 3000), 1.5), 3)
    target, labels = bells(rng, (8000, 1500, 500), 1.5)
    truth = np.bincount(labels) / len(labels)
    counted = count.probabilities(target).mean(axis=0)
    assert np.abs(counted - truth).sum() > 0.2
    # The standard error of each share is about .01; without an adjustment the error is twenty times that.
    assert np.abs(count.predict(target) - truth).sum() < 0.06


def test_confusions_are_those_of_rows_that_the_classifier_has_not_seen(rng):
    rows, labels = bells(rng, (400, 400), 1.0)
    tree = {"name": "DecisionTreeClassifier", "parameters": {}}
    count = fitted(rows, labels, 2, tree)
    # A full tree knows its own rows by heart; of other rows of these bells it gets about 62 in 100 right.
    assert (count.probabilities(rows).argmax(axis=1) == labels).all()
    assert np.diag(count.confusion) == pytest.approx([0.62, 0.62], abs=0.08)
    assert count.confusion.sum(axis=0) == pytest.approx([1, 1])


def test_a_classifier_without_probabilities_counts_with_its_votes(rng):
    rows, labels = bells(rng, (500, 500), 2.0)
    count = fitted(rows, labels, 2, {"name": "RidgeClassifier", "parameters": {}})
    target, truth = bells(rng, (1800, 200), 2.0)
    assert set(np.unique(count.probabilities(target))) == {0.0, 1.0}
    assert count.predict(target)[0] == pytest.approx(np.mean(truth == 0), abs=0.03)


def test_a_class_that_nobody_holds_gets_nothing(rng):
    rows, labels = bells(rng, (100, 100))
    found = fitted(rows, 2 * labels, 4).predict(rows)
    assert found.shape == (4,)
    assert found[[1, 3]].tolist() == [0, 0]
    assert found[[0, 2]] == pytest.approx([0.5, 0.5], abs=0.02)


def test_one_class_or_few_rows_are_enough(rng):
    rows, labels = bells(rng, (10,))
    assert fitted(rows, labels, 3).predict(rows).tolist() == [1, 0, 0]
    rows, labels = bells(rng, (1, 1), 9.0)
    assert fitted(rows, labels, 2).predict(rows).sum() == pytest.approx(1)


def test_equal_randomness_gives_equal_counts(rng):
    rows, labels = bells(rng, (50, 50))
    first, second = (fitted(rows, labels, 2) for _ in range(2))
    np.testing.assert_array_equal(first.confusion, second.confusion)
