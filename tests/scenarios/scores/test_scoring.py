"""Every task's scoring puts rows behind each release's own map, and tasks of any package are found by their names."""

from pathlib import Path

import numpy as np
import pytest
from support.packages import install
from support.released_lines import stored

from aggregator.contract.protocol import Metric, Task
from aggregator.contract.registry import task
from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee
from federation.features.feature_map import FeatureMap
from federation.features.steps import Affine, Append
from scenarios.data.tables import Table
from scenarios.runs.trial import worlds
from scenarios.scores import results as metrics
from scenarios.scores import scoring as tasks
from scenarios.scores.classification_scoring import ClassificationScoring
from scenarios.scores.number_scoring import RatioScoring, RegressionScoring
from scenarios.scores.scoring import CLASS_RATIO, CLASSIFICATION, REGRESSION, Scoring, primaries
from scenarios.settings import protocol_options
from scenarios.settings.schema import resolve

ROWS = np.arange(10.0).reshape(5, 2)
TABLE = Table("t", ("a", "b"), (), np.array([5.0, 6.0, 7.0, 8.0, 9.0]), (ROWS,), label_range=(0.0, 10.0))
PRIVATE, TEST = np.array([4, 0, 1]), np.array([3, 2])


class Means(Scoring):
    """Scores draws by their mean prediction."""

    def scored(self, models, release):
        rows = self.tested(models.feature_maps[release])
        return [{"mean": float(models.predict(release, draw, rows).mean())} for draw in range(models.draws(release))]

    def pooled(self, feature_map, classifier, random):
        return {}


@pytest.fixture
def scoring():
    return Means(TABLE, PRIVATE, TEST)


def test_private_rows_are_in_the_order_of_the_parties_and_each_map_is_applied_to_the_test_rows_once(scoring):
    rows, labels = scoring.held(FeatureMap(2, (Append(1.0),)))
    np.testing.assert_array_equal(rows, np.column_stack([ROWS[PRIVATE], np.ones(3)]))
    assert labels.tolist() == [9.0, 5.0, 6.0]
    twice = FeatureMap(2, (Affine(np.zeros(2), np.full(2, 2.0)),))
    np.testing.assert_array_equal(scoring.tested(twice), 2 * ROWS[TEST])
    again = FeatureMap(2, (Affine(np.zeros(2), np.full(2, 2.0)),))  # equal, and another object
    assert scoring.tested(again) is scoring.tested(twice)


def test_raw_test_rows_are_read_once_unless_they_would_not_fit_together(monkeypatch):
    reads = []
    monkeypatch.setattr(Table, "rows", lambda _, indices: reads.append(len(indices)) or ROWS[indices])
    for most, pieces in ((4, [2]), (3, [2, 2])):
        monkeypatch.setattr("scenarios.scores.scoring._KEPT_CELLS", most)
        scoring = Means(TABLE, PRIVATE, TEST)
        np.testing.assert_array_equal(scoring.tested(FeatureMap(2, ())), ROWS[TEST])
        np.testing.assert_array_equal(scoring.tested(FeatureMap(2, (Append(1.0),)))[:, :2], ROWS[TEST])
        assert reads == pieces
        reads.clear()


def test_a_file_is_scored_release_by_release_under_its_own_guarantee(scoring, tmp_path):
    guarantees = [NoGuarantee(reason).to_dict() for reason in ("first", "second")]
    weights = [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]], [[0.0, 0.0, 7.0]]]
    path = stored(tmp_path / "x.npz", weights, guarantees, FeatureMap(2, (Append(1.0),)))
    found = list(scoring.releases(path))
    assert found == [(guarantees[0], [{"mean": 5.0}, {"mean": 6.5}]), (guarantees[1], [{"mean": 7.0}])]
    np.savez(tmp_path / "x.npz", y=np.ones(3))  # a file of something else
    with pytest.raises(InputError):
        list(scoring.releases(tmp_path / "x.npz"))
    with pytest.raises(TypeError, match="abstract"):  # what names no scores
        Scoring(TABLE, PRIVATE, TEST)


OWN = [CLASSIFICATION, CLASS_RATIO, REGRESSION]
ENTRIES = {
    "federation.tasks": [
        "a_ranking = ranked_pack:RANKING",
        "b_ranking = ranked_pack:RANKING_AGAIN",
        "no_task = ranked_pack:NO_TASK",
        "missing = ranked_pack:MISSING",
    ]
}
CODE = """\
from aggregator.contract.registry import task
from aggregator.contract.protocol import Metric, Task
TAU = Metric("tau", "rank errors", False, "rank error")
RANKING = Task("a_ranking", "real", TAU, "ranked_pack:score")
RANKING_AGAIN = Task("b_ranking", "real", TAU, "ranked_pack:score", targets=True)
NO_TASK = "classification"
score = list
"""


@pytest.fixture
def ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package is installed that brings two tasks with one metric, a text, and nothing under a fourth name."""
    install(tmp_path, "Ranked-Pack", CODE, ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_task", "the entry point 'no_task' of the package 'Ranked-Pack' (federation.tasks: ranked_pack:NO_TASK) is "
         "no Task of aggregator.contract.protocol; its package must be repaired"),
        ("missing", "the entry point 'missing' of the package 'Ranked-Pack' (federation.tasks: ranked_pack:MISSING) "
         "cannot be imported: AttributeError: module 'ranked_pack' has no attribute 'MISSING'; repair or remove that "
         "package"),
        ("regresion", "task 'regresion' is not known; allowed: a_ranking, b_ranking, class_ratio, classification, "
         "missing, no_task, regression; did you mean 'regression'?"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("ranked")
def test_what_is_no_task_is_refused_in_one_sentence(name: str, words: str) -> None:
    for _ in range(2):  # a refusal is not forgotten
        with pytest.raises(InputError) as refused:
            task(name)
        assert str(refused.value) == words


def test_own_tasks_have_the_primary_metrics_and_only_classification_has_baselines_that_train():
    assert primaries() == [tasks.ACCURACY, tasks.L1, tasks.MSE] == [known.metric for known in OWN]
    assert [task(known.name) for known in OWN] == OWN
    assert {known.name: known.baselines for known in OWN} == {
        "classification": set(protocol_options.BASELINES) - {protocol_options.NOISE_FREE},  # which is of any task
        "class_ratio": {"pooled", "constant"},
        "regression": {"pooled", "constant"},
    }
    assert [known.name for known in OWN if known.targets] == ["class_ratio"]
    assert [known.labels for known in OWN] == ["classes", "classes", "real"]


@pytest.mark.usefixtures("ranked")
def test_primary_metrics_of_other_packages_come_after_the_own_ones_and_once() -> None:
    tau = task("a_ranking").metric
    assert primaries() == [tasks.ACCURACY, tasks.L1, tasks.MSE, tau]
    assert tau == Metric("tau", "rank errors", False, "rank error")
    assert metrics.primary([{"metric": "tau"}]) == tau
    assert metrics.primary([{"metric": "tau"}, {"metric": "mse"}]) == tasks.MSE
    assert metrics.heading("tau") == "rank error (lower is better)"


@pytest.mark.parametrize(
    ("kinds", "known"),
    [
        *((kinds, CLASSIFICATION) for kinds in ([], ["pooled"], ["constant", "individual", "pooled"])),
        (["pooled", "soft_vote"], CLASSIFICATION),
        (["pooled", "class_ratio"], CLASS_RATIO),
        (["pooled", "label_sums"], REGRESSION),
    ],
)
def test_baselines_take_the_task_of_the_protocol_beside_them_and_are_else_of_classification(kinds, known) -> None:
    assert protocol_options.task(kinds) is known


@pytest.mark.parametrize(
    ("known", "source", "scored"),
    [
        (CLASSIFICATION, "digits", ClassificationScoring),
        (CLASS_RATIO, "digits", RatioScoring),
        (REGRESSION, "diabetes", RegressionScoring),
    ],
)
def test_a_task_names_what_scores_its_releases(known: Task, source: str, scored: type, tmp_path: Path) -> None:
    document = {"data": {"source": source}, "parties": {"count": 4}, "privacy": {"epsilon": 1}}
    scenario = resolve({**document, "protocols": [{"kind": "pooled"}]})
    split = worlds(scenario, None)[0].split
    sets = [{0.5: split.cut.test}] if known.targets else []
    assert type(tasks.scoring(known, split.table, split.cut.order, split.cut.test, *sets)) is scored
