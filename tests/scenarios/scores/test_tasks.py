"""Tasks by name, this project's own and those of other packages, and the metrics that they bring."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.packages import install

from aggregator.contract.protocol import Metric, Task
from aggregator.contract.registry import task
from federation.contract.errors import InputError
from scenarios.runs.trial import worlds
from scenarios.scores import results as metrics
from scenarios.scores import scoring as tasks
from scenarios.scores.classification_scoring import ClassificationScoring
from scenarios.scores.number_scoring import RatioScoring, RegressionScoring
from scenarios.scores.scoring import CLASS_RATIO, CLASSIFICATION, REGRESSION, primaries, scoring
from scenarios.settings import protocol_options
from scenarios.settings.schema import resolve

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


@pytest.mark.parametrize("known", OWN, ids=[known.name for known in OWN])
def test_own_tasks_are_installed_under_their_names(known: Task) -> None:
    assert task(known.name) is known


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


def test_primary_metrics_are_those_of_the_own_tasks() -> None:
    assert primaries() == [tasks.ACCURACY, tasks.L1, tasks.MSE] == [known.metric for known in OWN]


@pytest.mark.usefixtures("ranked")
def test_primary_metrics_of_other_packages_come_after_the_own_ones_and_once() -> None:
    tau = task("a_ranking").metric
    assert primaries() == [tasks.ACCURACY, tasks.L1, tasks.MSE, tau]
    assert tau == Metric("tau", "rank errors", False, "rank error")
    assert metrics.primary([{"metric": "tau"}]) == tau
    assert metrics.primary([{"metric": "tau"}, {"metric": "mse"}]) == tasks.MSE
    assert metrics.heading("tau") == "rank error (lower is better)"


@pytest.mark.parametrize("kinds", [[], ["pooled"], ["constant", "individual", "pooled"]])
def test_the_task_of_baselines_alone_is_classification(kinds: list[str]) -> None:
    assert protocol_options.task(kinds) is CLASSIFICATION


@pytest.mark.parametrize(
    ("kind", "known"),
    [("soft_vote", CLASSIFICATION), ("class_ratio", CLASS_RATIO), ("label_sums", REGRESSION)],
)
def test_baselines_take_the_task_of_the_protocol_beside_them(kind: str, known: Task) -> None:
    assert protocol_options.task(["pooled", kind]) is known


def test_only_classification_has_baselines_that_train_classifiers() -> None:
    assert {known.name: known.baselines for known in OWN} == {
        "classification": set(protocol_options.BASELINES) - {protocol_options.NOISE_FREE},  # which is of any task
        "class_ratio": {"pooled", "constant"},
        "regression": {"pooled", "constant"},
    }
    assert [known.name for known in OWN if known.targets] == ["class_ratio"]
    assert [known.labels for known in OWN] == ["classes", "classes", "real"]


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
    assert type(scoring(known, split.table, split.cut.order, split.cut.test, *sets)) is scored
