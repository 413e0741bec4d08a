"""Linear models, networks and references are scored as by hand and as scikit-learn scores them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from support.refusals import refused

from aggregator.releases.models import ReleasedClassifiers, ReleasedModels, network
from federation.contract.guarantee import NoGuarantee
from federation.features.feature_map import FeatureMap
from federation.queries.marginals import Hypothesis
from parties.training.classifiers import fit
from scenarios.data.tables import Table
from scenarios.runs.runner import run
from scenarios.scores.classification_scoring import (
    ClassificationScoring,
    TestRows,
    reference_stages,
    score,
    score_outputs,
)
from scenarios.scores.prediction import predict
from scenarios.scores.results import CONSTANT_CLASS
from scenarios.simulated.partition import Cut, cut
from scenarios.simulated.simulation import Split

OFF = NoGuarantee("noise is off").to_dict()
NO_STEPS = FeatureMap(2, ())
CLASSES = ("no", "yes")


@pytest.fixture
def split(rng):
    rows = rng.normal(size=(200, 2))
    labels = (rows[:, 0] + 0.5 * rng.normal(size=200) >= 0.3).astype(np.int64)
    table = Table("t", ("a", "b"), CLASSES, labels, (rows,))
    return Split(table, cut(table, auxiliary=40, test=0.25, parties=4, rows=None, partition="iid", seed=1))


def scoring_of(split):
    return ClassificationScoring(split.table, split.cut.order, split.cut.test)


def saved(path, kind, releases):
    """A released file of a kind, without a guarantee."""
    kind("x", CLASSES, ("a", "b"), (), np.array([np.inf]), (releases,), (NO_STEPS,), (OFF,)).save(path)
    return path


def line(*weights, offset=0.0):
    return Hypothesis.of([np.array(weights, dtype=float)[:, None]], [np.array([offset])])


def by_hand(split, hypothesis):
    rows, labels = split.table.rows(split.cut.test), split.table.labels[split.cut.test]
    return float(np.mean(hypothesis.predict(rows) == labels))


def test_a_network_that_is_a_line_scores_as_the_linear_model(split, tmp_path):
    weights = np.array([[[0.0, 0.0], [1.0, -0.5]]])
    [(_, [linear])] = scoring_of(split).releases(saved(tmp_path / "linear.npz", ReleasedModels, weights))
    same = network([line(1.0, -0.5)], line(1.0, -0.5), 1)
    path = saved(tmp_path / "network.npz", ReleasedClassifiers, (same,))
    [(guarantee, [found])] = scoring_of(split).releases(path)
    assert guarantee == OFF
    assert found.pop("accuracy_at_round_1") == found["accuracy"]
    assert found == linear
    assert set(found) == {"accuracy", "balanced_accuracy", "auc"}


def test_every_round_has_its_accuracy_and_a_round_without_news_that_of_the_one_before(split, tmp_path):
    first, second, aside = line(0, 1), line(1, 0, offset=-0.3), Hypothesis.constant(2, 0)
    draws = (network([first, second], first, 4), network([], aside, 2), network([second], aside, 1))
    path = saved(tmp_path / "x.npz", ReleasedClassifiers, draws)
    [(_, (learned, nothing, guarded))] = scoring_of(split).releases(path)
    accuracies = [by_hand(split, hypothesis) for hypothesis in (first, second, aside)]
    assert accuracies[0] < accuracies[2] < accuracies[1]
    assert learned["accuracy"] == accuracies[0]
    rounds = [learned[f"accuracy_at_round_{t}"] for t in (1, 2, 3, 4)]
    assert rounds == [accuracies[0], accuracies[1], accuracies[1], accuracies[1]]
    assert "accuracy_at_round_5" not in learned
    assert [nothing[f"accuracy_at_round_{t}"] for t in (1, 2)] == [accuracies[2]] * 2
    assert (guarded["accuracy"], guarded["accuracy_at_round_1"]) == (accuracies[2], accuracies[1])
    assert (guarded["auc"], guarded["balanced_accuracy"]) == (0.5, 0.5)


def test_the_test_rows_pass_each_feature_map_once(split, tmp_path, monkeypatch):
    path = saved(tmp_path / "x.npz", ReleasedClassifiers, (network([line(1, 0)], line(1, 0), 1),) * 3)
    asked = []
    monkeypatch.setattr(FeatureMap, "transform", noted(asked))
    scoring = scoring_of(split)
    for _ in range(2):
        [(_, draws)] = scoring.releases(path)
        assert len(draws) == 3
    assert asked == [50]


def sorted_rows(rows, labels, classes):
    order = np.argsort(labels, kind="stable")
    copies = np.ones(len(rows), dtype=np.int64)
    return TestRows(rows[order], labels[order], np.bincount(labels, minlength=classes), copies)


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 5))
def test_a_row_with_copies_counts_as_if_it_were_there_as_often(seed, classes):
    rows, labels, weights = instance(seed, classes, rows=20)
    copies = np.random.default_rng(seed).integers(1, 5, len(rows))
    few = sorted_rows(rows, labels, classes)
    few = replace(few, copies=copies[np.argsort(labels, kind="stable")])
    many = sorted_rows(np.repeat(rows, copies, axis=0), np.repeat(labels, copies), classes)
    for found, expected in ((score(few, weights), score(many, weights)), (outputs(few), outputs(many))):
        assert found.keys() == expected.keys()
        for metric in found:
            np.testing.assert_allclose(found[metric], expected[metric], rtol=1e-12)


def outputs(test):
    """Scores of two classifiers' outputs, where there are two classes."""
    return score_outputs(test, test.rows[:, :2]) if len(test.sizes) == 2 else {}


def test_equal_rows_of_a_class_are_scored_once_and_counted_as_often_as_they_are_there(rng, tmp_path):
    rows = rng.integers(0, 3, (200, 2)).astype(np.float64)
    labels = rng.integers(0, 2, 200)
    table = Table("t", ("a", "b"), CLASSES, labels, (rows,))
    weights = np.array([[[0.0, 0.5], [1.0, -0.5]]])
    scoring = ClassificationScoring(table, np.arange(50), np.arange(50, 200))
    assert len(scoring.test) == len(np.unique(np.column_stack([rows, labels])[50:], axis=0)) <= 18
    [(_, [found])] = scoring.releases(saved(tmp_path / "x.npz", ReleasedModels, weights))
    difference = rows[50:] @ (weights[0, 1] - weights[0, 0])
    assert found["accuracy"] == accuracy_score(labels[50:], difference > 0)
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(labels[50:], difference > 0))
    assert found["auc"] == pytest.approx(roc_auc_score(labels[50:], difference))


def instance(seed, classes, rows=60, models=4):
    random = np.random.default_rng(seed)
    return (
        random.normal(size=(rows, 3)).round(1),
        np.concatenate([np.arange(classes), random.integers(0, classes, rows - classes)]),
        random.normal(size=(models, classes, 3)).round(1),
    )


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 5))
def test_scores_agree_with_scikit_learn(seed, classes):
    rows, labels, weights = instance(seed, classes)
    scores = score(sorted_rows(rows, labels, classes), weights)
    for model, matrix in enumerate(weights):
        predicted = (rows @ matrix.T).argmax(axis=1)
        assert scores["accuracy"][model] == pytest.approx(accuracy_score(labels, predicted))
        assert scores["balanced_accuracy"][model] == pytest.approx(balanced_accuracy_score(labels, predicted))
        if classes == 2:
            expected = roc_auc_score(labels, rows @ (matrix[1] - matrix[0]))
            assert scores["auc"][model] == pytest.approx(expected)


def test_many_models_are_scored_as_one_by_one_and_ties_go_to_the_smallest_class():
    rows, labels, weights = instance(3, 4, rows=500, models=3000)
    test = sorted_rows(rows, labels, 4)
    together = score(test, weights)
    for model in (0, 1234, 2999):
        assert score(test, weights[model : model + 1])["accuracy"][0] == together["accuracy"][model]
    equal = sorted_rows(np.ones((3, 2)), np.array([0, 1, 2]), 3)
    assert score(equal, np.zeros((1, 3, 2)))["accuracy"][0] == pytest.approx(1 / 3)


def test_absent_classes_do_not_count_towards_balanced_accuracy():
    rows, labels = np.eye(2), np.array([0, 1])
    weights = np.array([[[1.0, 0.0], [0.0, 1.0], [-9.0, -9.0]]])
    assert score(sorted_rows(rows, labels, 3), weights)["balanced_accuracy"][0] == 1.0
    only_zero = sorted_rows(rows[:1], labels[:1], 2)
    assert "auc" not in score(only_zero, weights[:, :2])


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_scores_of_outputs_agree_with_scikit_learn(seed):
    _, labels, _ = instance(seed, 2)
    outputs = np.random.default_rng(seed).normal(size=(2, len(labels))).round(1)
    test = sorted_rows(np.arange(len(labels), dtype=float)[:, None], labels, 2)
    scores = score_outputs(test, outputs[:, test.rows[:, 0].astype(int)].T)
    for model, values in enumerate(outputs):
        assert scores["accuracy"][model] == pytest.approx(accuracy_score(labels, values >= 0))
        assert scores["balanced_accuracy"][model] == pytest.approx(balanced_accuracy_score(labels, values >= 0))
        assert scores["auc"][model] == pytest.approx(roc_auc_score(labels, values))


def test_an_output_that_is_no_number_is_below_all_others():
    test = sorted_rows(np.zeros((4, 1)), np.array([0, 0, 1, 1]), 2)
    scores = score_outputs(test, np.array([[np.nan], [-5.0], [np.nan], [np.inf]]))
    assert scores == {"accuracy": [0.75], "balanced_accuracy": [0.75], "auc": [0.625]}
    alone = sorted_rows(np.zeros((1, 1)), np.array([1]), 2)
    assert score_outputs(alone, np.zeros((1, 1))) == {"accuracy": [1.0], "balanced_accuracy": [1.0]}


def labelled(private: list[int], test: list[int], classes: int = 2) -> Split:
    """Private rows and test rows with these labels, beside public rows of the last class."""
    labels = np.array([*private, *test, *[classes - 1] * 20])
    table = Table("toy", ("x",), tuple("abc"[:classes]), labels, (np.zeros((len(labels), 1)),))
    held, tested, public = np.split(np.arange(len(labels)), [len(private), len(private) + len(test)])
    ends = np.array([0, len(private)])
    return Split(table, Cut(public, tested, held, ends, ends))


@pytest.mark.parametrize(
    ("private", "test", "classes"),
    [
        ([0, 0, 1], [0, 1, 1, 1], 2),
        ([1, 1, 0], [0, 1, 1, 1], 2),
        ([0, 1], [0, 1, 1], 2),
        ([0, 0, 1, 2, 2, 2], [0, 1, 2, 2], 3),
        ([1, 1, 2], [0, 2, 2], 3),
    ],
)
def test_the_most_frequent_private_class_is_scored(private, test, classes):
    dummy = DummyClassifier(strategy="most_frequent").fit(np.zeros((len(private), 1)), private)
    guesses = dummy.predict(np.zeros((len(test), 1)))
    known = labelled(private, test, classes)
    found = ClassificationScoring(known.table, known.cut.order, known.cut.test).constant()
    expected = {"accuracy": accuracy_score(test, guesses), CONSTANT_CLASS: guesses[0]}
    # scikit-learn drops classes without test rows, too, and warns of a guess among them.
    recalls = [np.mean(guesses[np.array(test) == c] == c) for c in np.unique(test)]
    expected["balanced_accuracy"] = np.mean(recalls)
    if set(guesses) <= set(test):
        assert np.mean(recalls) == pytest.approx(balanced_accuracy_score(test, guesses))
    if classes == 2:
        expected["auc"] = roc_auc_score(test, guesses)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("classifier", ["logistic", "GaussianNB", "LinearSVC"])
def test_pooled_rows_of_two_classes_are_ordered_too(classifier, rng):
    classifier = {"name": classifier, "parameters": {}}
    labels = rng.integers(2, size=80)
    table = Table("toy", ("a", "b", "c"), CLASSES, labels, (rng.normal(size=(80, 3)) + labels[:, None],))
    found = ClassificationScoring(table, np.arange(50), np.arange(50, 80)).pooled(FeatureMap(3, ()), classifier, rng)
    fitted = fit(table.rows(np.arange(50)), labels[:50], classifier, rng)
    test = table.rows(np.arange(50, 80))
    assert found["auc"] == pytest.approx(roc_auc_score(labels[50:], fitted.ordering(test)))
    assert found["accuracy"] == accuracy_score(labels[50:], fitted(test))
    assert found["auc"] > 0.7


def test_a_logistic_regression_is_pooled_from_equal_rows_as_from_all(rng, monkeypatch):
    rows = rng.integers(0, 4, (300, 3)) - 1.5
    labels = (rows[:, 0] + rng.normal(size=300) > 0).astype(np.int64)
    table, private, test = Table("toy", ("a", "b", "c"), CLASSES, labels, (rows,)), np.arange(200), np.arange(200, 300)
    lengths = []
    monkeypatch.setattr(FeatureMap, "transform", noted(lengths))
    known = ClassificationScoring(table, private, test)
    found = known.pooled(FeatureMap(3, ()), {"name": "logistic", "parameters": {"regularisation": 0.01}}, rng)
    assert lengths[0] == len(np.unique(np.column_stack([rows, labels])[:200], axis=0)) < 128
    model = LogisticRegression(C=1 / (0.01 * 200), fit_intercept=False, tol=1e-10).fit(rows[:200], labels[:200])
    assert found["accuracy"] == accuracy_score(labels[200:], model.predict(rows[200:]))
    assert found["auc"] == pytest.approx(roc_auc_score(labels[200:], model.decision_function(rows[200:])))
    lengths.clear()
    known.pooled(FeatureMap(3, ()), {"name": "GaussianNB", "parameters": {}}, rng)
    assert lengths[0] == 200


def noted(lengths):
    """A feature map's `transform` that also tells how many rows it gets."""
    transform = FeatureMap.transform

    def telling(self, rows, out=None):
        lengths.append(len(rows))
        return transform(self, rows, out)

    return telling


def document(source, kinds, **data):
    """A scenario of one epsilon, whose data set or file is `source`."""
    return {
        "name": "frequent", "data": {"source": str(source), **data}, "parties": {"count": 5},
        "protocols": [{"kind": kind} for kind in kinds], "privacy": {"epsilon": 1}, "trials": {"splits": 1, "noise": 1},
    }  # fmt: skip


def test_it_is_a_reference_beside_the_others(tmp_path, undrawn):
    twice = document("breast_cancer", ["constant"]) | {"trials": {"splits": 2, "noise": 1}}
    rows = run(twice, out=tmp_path / "out").rows
    assert {(row["unit"], row["variant"], row["epsilon"]) for row in rows} == {("none", "constant", math.inf)}
    found = {(row["split"], row["metric"]): row["value"] for row in rows}
    assert {value for (_, metric), value in found.items() if metric not in ("accuracy", CONSTANT_CLASS)} == {0.5}
    assert all(0.5 < found[number, "accuracy"] < 0.75 for number in (0, 1))  # 62.7 % of all rows are benign


LOGISTIC = {"name": "logistic", "parameters": {}}
TREE = {"name": "DecisionTreeClassifier", "parameters": {}}
DEFAULT = ("impute", "scale", {"whiten": "auto"}, "constant", "unit_norm")


@pytest.mark.parametrize(
    ("stages", "classifier", "expected"),
    [
        (DEFAULT, LOGISTIC, ["impute", "scale", "standardise", "constant", "unit_norm"]),
        (DEFAULT, TREE, ["impute", "scale"]),
        (["impute", "standardise", "constant"], None, ["impute", "standardise", "constant"]),
        ([{"impute": {"flags": False}}, {"whiten": 3}, "max_norm"], TREE, [{"impute": {"flags": False}}, "scale"]),
        (["unit_norm"], LOGISTIC, ["scale", "standardise", "constant", "unit_norm"]),
        (["standardise", {"fourier": 8}], LOGISTIC, ["standardise", {"fourier": 8}, "constant", "unit_norm"]),
        (["signed_log", "unit_norm"], TREE, ["signed_log", "scale"]),
        ([{"pca": 60}], TREE, ["scale", {"pca": 60}]),
        ([{"whiten": 9}, {"polynomial": 2}, {"whiten": 5}], TREE, [{"whiten": 9}, {"polynomial": 2}]),
        ([], None, ["scale", "constant"]),
    ],
)
def test_what_private_releases_need_is_left_out(stages, classifier, expected):
    assert reference_stages(stages, classifier) == expected


@pytest.fixture
def shifted(tmp_path):
    """A file of rows of which only the distance from 0 tells the class, with a text column and missing cells."""
    random = np.random.default_rng(0)
    value, other = random.normal(3.0, 1.0, 600), random.normal(size=600) * 1000
    lines = [
        f"{'' if i % 7 == 0 else x},{y},{'red' if i % 3 else ''},{'far' if x > 2 else 'near'}"
        for i, (x, y) in enumerate(zip(value, other, strict=True))
    ]
    path = tmp_path / "shifted.csv"
    path.write_text("x,y,colour,class\n" + "\n".join(lines) + "\n")
    return path


def test_references_have_an_intercept_and_all_columns_whatever_the_features_of_releases(shifted, tmp_path, undrawn):
    """Behind the one whitened direction of largest variance, which is the useless column, nothing can be learned."""
    kinds, features = ["soft_vote", "pooled", "individual", "constant"], ["impute", {"whiten": 1}, "unit_norm"]
    found = run(document(shifted, kinds, label="class", features=features), out=tmp_path / "run")
    accuracy = {row["variant"]: row["value"] for row in found.rows if row["metric"] == "accuracy"}
    assert accuracy["soft_vote"] < accuracy["constant"] + 0.02
    assert accuracy["pooled"] > accuracy["constant"] + 0.05
    assert accuracy["individual"] > accuracy["constant"] + 0.02


def test_a_released_model_takes_the_missing_cells_that_its_map_fills_in_and_no_others(shifted, tmp_path, undrawn):
    whole, stages = tmp_path / "whole.csv", ["scale", "constant", "unit_norm"]
    lines = shifted.read_text().splitlines()
    whole.write_text("\n".join(line.replace(",,", ",blue,") for line in lines if not line.startswith(",")))
    run(document(shifted, ["soft_vote"], label="class", features=["impute", *stages]), out=tmp_path / "filled")
    assert len(predict(tmp_path / "filled", "soft_vote", shifted).values) == 600
    run(document(whole, ["soft_vote"], label="class", features=stages), out=tmp_path / "plain")
    assert len(predict(tmp_path / "plain", "soft_vote", whole).values) == 600 - 86
    refused(r"shifted\.csv.*2.*'x'", predict, tmp_path / "plain", "soft_vote", shifted)
