"""Linear models and networks in one scenario, scored against what they are by hand."""

import numpy as np
import pytest

from aggregator.releases.classifier_models import ReleasedClassifiers, network
from aggregator.releases.models import ReleasedModels
from federation.contract.guarantee import NoGuarantee
from federation.features.feature_map import FeatureMap
from federation.questions.hypotheses import Hypothesis
from scenarios.data.tables import Table
from scenarios.scores.classification_scoring import ClassificationScoring
from scenarios.simulated.partition import cut
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


def networks(path, draws):
    known = ("a", "b"), (), np.array([np.inf]), (tuple(draws),), (NO_STEPS,), (OFF,)
    ReleasedClassifiers("x", CLASSES, *known).save(path)
    return path


def line(*weights, offset=0.0):
    return Hypothesis.of([np.array(weights, dtype=float)[:, None]], [np.array([offset])])


def by_hand(split, hypothesis):
    rows, labels = split.table.rows(split.cut.test), split.table.labels[split.cut.test]
    return float(np.mean(hypothesis.predict(rows) == labels))


def test_a_network_that_is_a_line_scores_as_the_linear_model(split, tmp_path):
    path = tmp_path / "linear.npz"
    weights = np.array([[[0.0, 0.0], [1.0, -0.5]]])
    ReleasedModels("y", CLASSES, ("a", "b"), (), np.array([np.inf]), (weights,), (NO_STEPS,), (OFF,)).save(path)
    scoring = ClassificationScoring(split)
    [(_, [linear])] = scoring.releases(path)
    same = network([line(1.0, -0.5)], line(1.0, -0.5), 1)
    [(guarantee, [found])] = scoring.releases(networks(tmp_path / "network.npz", [same]))
    assert guarantee == OFF
    assert found.pop("accuracy_at_round_1") == found["accuracy"]
    assert found == linear
    assert set(found) == {"accuracy", "balanced_accuracy", "auc"}


def test_every_round_has_its_accuracy_and_a_round_without_news_that_of_the_one_before(split, tmp_path):
    first, second, aside = line(0, 1), line(1, 0, offset=-0.3), Hypothesis.constant(2, 0)
    draws = [network([first, second], first, 4), network([], aside, 2), network([second], aside, 1)]
    [(_, (learned, nothing, guarded))] = ClassificationScoring(split).releases(networks(tmp_path / "x.npz", draws))
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
    path = networks(tmp_path / "x.npz", [network([line(1, 0)], line(1, 0), 1)] * 3)
    asked = []
    transform = FeatureMap.transform
    monkeypatch.setattr(FeatureMap, "transform", lambda self, rows: asked.append(len(rows)) or transform(self, rows))
    scoring = ClassificationScoring(split)
    for _ in range(2):
        [(_, draws)] = scoring.releases(path)
        assert len(draws) == 3
    assert asked == [50]
