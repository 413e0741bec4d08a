"""The baseline of the most frequent class, against scikit-learn's dummy and in a run."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

import scenarios
from scenarios.data.tables import Table
from scenarios.scores.constant import constant_metrics
from scenarios.simulated.partition import Cut
from scenarios.simulated.simulation import Split


def split(private: list[int], test: list[int], classes: int = 2) -> Split:
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
    found = constant_metrics(split(private, test, classes))
    expected = {"accuracy": accuracy_score(test, guesses)}
    # scikit-learn drops classes without test rows, too, and warns of a guess among them.
    recalls = [np.mean(guesses[np.array(test) == c] == c) for c in np.unique(test)]
    expected["balanced_accuracy"] = np.mean(recalls)
    if set(guesses) <= set(test):
        assert np.mean(recalls) == pytest.approx(balanced_accuracy_score(test, guesses))
    if classes == 2:
        expected["auc"] = roc_auc_score(test, guesses)
    assert found == pytest.approx(expected)


def test_it_is_a_reference_beside_the_others(tmp_path):
    document = {
        "name": "frequent",
        "data": {"source": "breast_cancer"},
        "parties": {"count": 3},
        "protocols": [{"kind": "constant"}],
        "privacy": {"epsilon": 1},
        "trials": {"splits": 2, "noise": 1},
    }
    rows = scenarios.run(document, out=tmp_path / "out").rows
    assert {(row["unit"], row["variant"], row["epsilon"]) for row in rows} == {("none", "constant", np.inf)}
    found = {(row["split"], row["metric"]): row["value"] for row in rows}
    assert {value for (_, metric), value in found.items() if metric != "accuracy"} == {0.5}
    assert all(0.5 < found[number, "accuracy"] < 0.75 for number in (0, 1))  # 62.7 % of all rows are benign
