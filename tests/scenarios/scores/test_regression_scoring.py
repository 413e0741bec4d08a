"""Errors of released regressions and of least squares on all rows, against what they are by hand."""

import numpy as np
import pytest
from support.released_lines import stored

from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee
from federation.features.feature_map import FeatureMap
from federation.features.steps import Append
from scenarios.data.tables import Table
from scenarios.scores.number_scoring import RegressionScoring
from scenarios.simulated.partition import cut
from scenarios.simulated.simulation import Split

OFF = NoGuarantee("noise is off").to_dict()
WITH_CONSTANT = FeatureMap(2, (Append(1.0),))
CLASSIFIER = {"name": "logistic", "parameters": {"regularisation": 1e-4}}


def split_of(labels, rows):
    lo, hi = float(labels.min()), float(labels.max())
    table = Table("t", tuple(f"c{i}" for i in range(rows.shape[1])), (), labels, (rows,), label_range=(lo, hi))
    return Split(table, cut(table, auxiliary=40, test=0.25, parties=4, rows=None, partition="iid", seed=1))


def scoring_of(known):
    return RegressionScoring(known.table, known.cut.order, known.cut.test)


@pytest.fixture
def split(rng):
    rows = rng.normal(size=(400, 2))
    return split_of(rows @ [2.0, -1.0] + 5.0 + 0.1 * rng.normal(size=400), rows)


def test_a_release_is_as_wrong_as_its_predictions(split, tmp_path):
    weights = [[[2.0, -1.0, 5.0], [2.0, -1.0, 6.0]], [[0.0, 0.0, 0.0]]]
    path = stored(tmp_path / "x.npz", weights, [OFF, OFF], WITH_CONSTANT)
    (guarantee, draws), (_, [zero]) = scoring_of(split).releases(path)
    assert guarantee == OFF
    test = split.cut.test
    labels, rows = split.table.labels[test], split.table.rows(test)
    for found, wanted in zip(draws, weights[0], strict=True):
        by_hand = [(rows[i] @ wanted[:2] + wanted[2] - labels[i]) ** 2 for i in range(len(test))]
        assert found == {"mse": pytest.approx(np.mean(by_hand))}
    assert zero == {"mse": pytest.approx(np.mean(labels**2))}


def test_the_test_rows_pass_each_feature_map_once(split, tmp_path, monkeypatch):
    path = stored(tmp_path / "x.npz", [[[1, 1, 1]] * 3] * 2, [OFF, OFF], WITH_CONSTANT)
    asked = []
    transform = FeatureMap.transform
    monkeypatch.setattr(FeatureMap, "transform", lambda self, rows: asked.append(len(rows)) or transform(self, rows))
    scoring = scoring_of(split)
    for _ in range(2):
        assert [len(draws) for _, draws in scoring.releases(path)] == [3, 3]
    assert asked == [100]


def test_pooled_is_ordinary_least_squares_on_the_private_rows(split, rng):
    found = scoring_of(split).pooled(WITH_CONSTANT, CLASSIFIER, rng)
    table, held, test = split.table, split.cut.order, split.cut.test
    rows = np.column_stack([table.rows(held), np.ones(len(held))])
    weights = np.linalg.solve(rows.T @ rows, rows.T @ table.labels[held])  # the normal equations
    predictions = np.clip(np.column_stack([table.rows(test), np.ones(len(test))]) @ weights, *table.label_range)
    assert found == {"mse": pytest.approx(np.mean((predictions - table.labels[test]) ** 2))}
    assert found["mse"] == pytest.approx(0.01, rel=0.3)  # the variance of what rows cannot explain


def test_pooled_is_the_solution_of_least_norm_where_columns_repeat(rng):
    base = rng.normal(size=(200, 1))
    labels = base[:, 0] * 3.0
    twice = split_of(labels, np.hstack([base, base, np.zeros((200, 1))]))
    assert scoring_of(twice).pooled(FeatureMap(3, ()), CLASSIFIER, rng)["mse"] == pytest.approx(0, abs=1e-20)


def test_constant_is_the_mean_label_of_the_private_rows(split):
    mean, labels = split.table.labels[split.cut.order].mean(), split.table.labels[split.cut.test]
    assert scoring_of(split).constant() == {"mse": pytest.approx(np.mean((labels - mean) ** 2))}


def test_predictions_that_are_not_finite_are_refused(split, tmp_path):
    path = stored(tmp_path / "x.npz", [[[np.nan, 0, 0]]], [OFF], WITH_CONSTANT)
    with pytest.raises(InputError, match="its training has diverged"):
        list(scoring_of(split).releases(path))
