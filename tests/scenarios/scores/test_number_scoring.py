"""Estimators of class ratios and regressions are as wrong as they are by hand, and the costly part is computed once.

Adjusted classify-and-count is compared with a brute-force minimum and with known confusions.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.fake_estimators import released
from support.refusals import refused
from support.released_lines import stored

from federation.contract.guarantee import NoGuarantee
from federation.features.feature_map import FeatureMap
from federation.features.steps import Append
from scenarios.data.tables import Table
from scenarios.scores import number_scoring
from scenarios.scores.results import at_share
from scenarios.simulated.partition import cut
from scenarios.simulated.simulation import Split
from scenarios.simulated.targets import target_sets

SHARES = (0.2, 0.5, 0.8)
OFF = NoGuarantee("noise is off").to_dict()
WITH_CONSTANT = FeatureMap(2, (Append(1.0),))
CLASSIFIER = {"name": "logistic", "parameters": {"regularisation": 1e-4}}


@pytest.fixture
def split():
    """The first column is 1 for the first class and 0 for the second, so that its mean is the class's share."""
    labels = np.arange(400) % 2
    rows = np.stack([1.0 - labels, np.linspace(0, 1, 400)], axis=1)
    table = Table("t", ("a", "b"), ("no", "yes"), labels, (rows,))
    return Split(table, cut(table, auxiliary=40, test=0.5, parties=4, rows=None, partition="iid", seed=1))


@pytest.fixture
def scoring(split):
    targets = target_sets(split.table, split.cut.test, rows=50, shares=SHARES, seed=1, split=0)
    return scoring_of(split, {target.share: target.indices for target in targets})


def scoring_of(split, targets):
    return number_scoring.RatioScoring(split.table, split.cut.order, split.cut.test, targets)


def test_an_estimator_is_as_wrong_as_it_is(scoring, estimators, tmp_path):
    released([[0.0, 0.05, -0.1], [0.3]], [FeatureMap(2, ())] * 2, [OFF, OFF]).save(tmp_path / "x.npz")
    (guarantee, draws), (_, [far]) = scoring.releases(tmp_path / "x.npz")
    assert guarantee == OFF
    wanted = [{share: 2 * abs(offset) for share in SHARES} for offset in (0.0, 0.05, -0.1)]
    for found, errors in zip(draws, wanted, strict=True):
        assert list(found) == ["l1", *map(at_share, SHARES)]
        assert [found[at_share(share)] for share in SHARES] == pytest.approx(list(errors.values()), abs=1e-12)
        assert found["l1"] == pytest.approx(np.mean(list(errors.values())), abs=1e-12)
    # Off by .3, and by .2 where the estimate is cut off at 1.
    assert [far[at_share(share)] for share in SHARES] == pytest.approx([0.6, 0.6, 0.4])


def test_sets_are_embedded_once_for_all_draws_releases_and_variants(scoring, estimators, tmp_path):
    for name in ("x", "y"):
        released([[0.0] * 4, [0.1] * 4], [FeatureMap(2, ())] * 2, [OFF, OFF]).save(tmp_path / f"{name}.npz")
        assert len(list(scoring.releases(tmp_path / f"{name}.npz"))) == 2
    assert estimators.embedded == [(50, 2)] * len(SHARES)
    released([[0.0]], [FeatureMap(2, ())], [OFF], key="another").save(tmp_path / "z.npz")
    list(scoring.releases(tmp_path / "z.npz"))
    assert len(estimators.embedded) == 2 * len(SHARES)


@pytest.mark.parametrize("limit", ["_MOST_KEPT", "_KINDS_KEPT"])
def test_what_is_kept_in_memory_changes_no_error(scoring, split, estimators, tmp_path, monkeypatch, limit):
    for number in range(3):
        offsets = [[0.1 * number, 0.2]]
        made = released(offsets, [FeatureMap(2, ())], [OFF], key=f"kind {number}")
        made.save(tmp_path / f"{number}.npz")
    paths = [tmp_path / f"{number}.npz" for number in (0, 1, 2, 0, 1)]
    wanted = [list(scoring.releases(path)) for path in paths]
    monkeypatch.setattr(number_scoring, limit, 1)
    assert [list(scoring_of(split, scoring._targets).releases(path)) for path in paths] == wanted


def test_pooled_counts_with_every_label_and_the_constant_answer_is_the_class_shares_of_private_rows(scoring, split):
    classifier = {"name": "logistic", "parameters": {"regularisation": 1e-4}}
    found = scoring.pooled(FeatureMap(2, ()), classifier, np.random.default_rng(0))
    assert list(found) == ["l1", *map(at_share, SHARES)]
    assert max(found.values()) < 0.03  # the first column tells the class, but for what the penalty leaves
    shares = np.bincount(split.table.labels[split.cut.order], minlength=len(split.table.classes)) / len(split.cut.order)
    found = scoring.constant()
    named = {name: value for name, value in found.items() if name != "l1"}
    assert found["l1"] == pytest.approx(np.mean(list(named.values())))
    errors = []
    for target in scoring._targets.values():
        counts = np.bincount(split.table.labels[target], minlength=len(split.table.classes))
        errors.append(np.abs(shares - counts / len(target)).sum())
    assert list(named.values()) == pytest.approx(errors)


LOGISTIC = {"name": "logistic", "parameters": {"regularisation": 1e-3}}


def bells(random, counts, distance=2.0):
    """Rows of class c from a normal distribution around c times `distance`, and a constant column."""
    labels = np.repeat(np.arange(len(counts)), counts)
    return np.stack([random.normal(labels * distance, 1.0), np.ones(len(labels))], axis=1), labels


def fitted(rows, labels, classes, classifier=LOGISTIC):
    return number_scoring.AdjustedCount.fit(rows, labels, classes, classifier, np.random.default_rng(1))


@settings(derandomize=True, max_examples=examples(15))
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


def test_confusions_are_those_of_unseen_rows_and_classifiers_without_probabilities_count_with_votes(rng):
    rows, labels = bells(rng, (400, 400), 1.0)
    tree = {"name": "DecisionTreeClassifier", "parameters": {}}
    count = fitted(rows, labels, 2, tree)
    # A full tree knows its own rows by heart; of other rows of these bells it gets about 62 in 100 right.
    assert (count.probabilities(rows).argmax(axis=1) == labels).all()
    assert np.diag(count.confusion) == pytest.approx([0.62, 0.62], abs=0.08)
    assert count.confusion.sum(axis=0) == pytest.approx([1, 1])
    rows, labels = bells(rng, (500, 500), 2.0)
    count = fitted(rows, labels, 2, {"name": "RidgeClassifier", "parameters": {}})
    target, truth = bells(rng, (1800, 200), 2.0)
    assert set(np.unique(count.probabilities(target))) == {0.0, 1.0}
    assert count.predict(target)[0] == pytest.approx(np.mean(truth == 0), abs=0.03)


def test_a_class_that_nobody_holds_gets_nothing_and_one_class_or_few_rows_are_enough(rng):
    rows, labels = bells(rng, (100, 100))
    first, second = (fitted(rows, 2 * labels, 4) for _ in range(2))
    np.testing.assert_array_equal(first.confusion, second.confusion)  # equal randomness gives equal counts
    found = first.predict(rows)
    assert found.shape == (4,)
    assert found[[1, 3]].tolist() == [0, 0]
    assert found[[0, 2]] == pytest.approx([0.5, 0.5], abs=0.02)
    rows, labels = bells(rng, (10,))
    assert fitted(rows, labels, 3).predict(rows).tolist() == [1, 0, 0]
    rows, labels = bells(rng, (1, 1), 9.0)
    assert fitted(rows, labels, 2).predict(rows).sum() == pytest.approx(1)


def regression(labels, rows):
    lo, hi = float(labels.min()), float(labels.max())
    table = Table("t", tuple(f"c{i}" for i in range(rows.shape[1])), (), labels, (rows,), label_range=(lo, hi))
    known = cut(table, auxiliary=40, test=0.25, parties=4, rows=None, partition="iid", seed=1)
    return number_scoring.RegressionScoring(table, known.order, known.test), table, known


@pytest.fixture
def known(rng):
    """What scores a regression of two columns, its table and its cut."""
    rows = rng.normal(size=(400, 2))
    return regression(rows @ [2.0, -1.0] + 5.0 + 0.1 * rng.normal(size=400), rows)


def test_a_release_is_as_wrong_as_its_predictions(known, tmp_path):
    scoring, table, pieces = known
    weights = [[[2.0, -1.0, 5.0], [2.0, -1.0, 6.0]], [[0.0, 0.0, 0.0]]]
    path = stored(tmp_path / "x.npz", weights, [OFF, OFF], WITH_CONSTANT)
    (guarantee, draws), (_, [zero]) = scoring.releases(path)
    assert guarantee == OFF
    labels, rows = table.labels[pieces.test], table.rows(pieces.test)
    for found, wanted in zip(draws, weights[0], strict=True):
        by_hand = [(row @ wanted[:2] + wanted[2] - label) ** 2 for row, label in zip(rows, labels, strict=True)]
        assert found == {"mse": pytest.approx(np.mean(by_hand))}
    assert zero == {"mse": pytest.approx(np.mean(labels**2))}
    path = stored(tmp_path / "x.npz", [[[np.nan, 0, 0]]], [OFF], WITH_CONSTANT)
    refused(None, list, scoring.releases(path))


def test_the_test_rows_pass_each_feature_map_once(known, tmp_path, monkeypatch):
    path = stored(tmp_path / "x.npz", [[[1, 1, 1]] * 3] * 2, [OFF, OFF], WITH_CONSTANT)
    asked = []
    transform = FeatureMap.transform
    monkeypatch.setattr(FeatureMap, "transform", lambda self, rows: asked.append(len(rows)) or transform(self, rows))
    for _ in range(2):
        assert [len(draws) for _, draws in known[0].releases(path)] == [3, 3]
    assert asked == [100]


def test_pooled_is_ordinary_least_squares_and_constant_the_mean_label_of_the_private_rows(known, rng):
    scoring, table, pieces = known
    found = scoring.pooled(WITH_CONSTANT, CLASSIFIER, rng)
    rows, test = (np.column_stack([table.rows(part), np.ones(len(part))]) for part in (pieces.order, pieces.test))
    weights = np.linalg.solve(rows.T @ rows, rows.T @ table.labels[pieces.order])  # the normal equations
    predictions = np.clip(test @ weights, *table.label_range)
    assert found == {"mse": pytest.approx(np.mean((predictions - table.labels[pieces.test]) ** 2))}
    assert found["mse"] == pytest.approx(0.01, rel=0.3)  # the variance of what rows cannot explain
    scoring, table, pieces = known
    errors = table.labels[pieces.test] - table.labels[pieces.order].mean()
    assert scoring.constant() == {"mse": pytest.approx(np.mean(errors**2))}


def test_pooled_is_the_solution_of_least_norm_where_columns_repeat(rng):
    base = rng.normal(size=(200, 1))
    scoring, _, _ = regression(base[:, 0] * 3.0, np.hstack([base, base, np.zeros((200, 1))]))
    assert scoring.pooled(FeatureMap(3, ()), CLASSIFIER, rng)["mse"] == pytest.approx(0, abs=1e-20)
