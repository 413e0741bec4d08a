"""Runs that hold out no rows: every row is learned from, nothing is scored, and all artefacts are there and say so."""

import json

import numpy as np
import pytest

import scenarios
from scenarios.data.catalogue import load as load_table
from scenarios.reports.report import write_report
from scenarios.runs.trial import worlds
from scenarios.scores.results import UNSCORED, Unscored, unscored
from scenarios.settings.schema import resolve

ONE = ["data.test=0", "trials.splits=1", "trials.noise=2", "privacy.epsilon=[1, 30]"]
FEW = [*ONE, "parties.count=30", "protocols=[{kind: soft_vote}, {kind: pooled}, {kind: individual}, {kind: constant}]"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return scenarios.run("quickstart", out=tmp_path_factory.mktemp("run") / "run", overrides=FEW)


def test_every_row_is_public_or_at_a_party():
    cut = worlds(resolve("breast-cancer-mean-operator", ["data.test=0"]), None)[0].split.cut
    table = load_table("breast_cancer")
    assert len(cut.test) == 0
    assert sorted([*cut.auxiliary, *cut.order]) == list(range(len(table)))


def test_models_are_released_and_only_what_needs_no_test_row_is_told(run):
    assert {row["variant"] for row in run.rows} == {"soft_vote"}
    assert {row["metric"] for row in run.rows} == {"noise_to_signal", "expected_agreement", "bytes_per_party"}
    assert run.model(epsilon=1, draw=1).classes_.tolist() == [str(digit) for digit in range(10)]
    table = load_table("digits")
    model = run.model(epsilon=30)
    assert model.score(table.rows(np.arange(len(table))), np.array(table.classes)[table.labels]) > 0.5


def test_artefacts_say_that_nothing_was_scored(run, tmp_path):
    page = (run.directory / "report.html").read_text()
    assert UNSCORED in page
    assert "Results</h2>" not in page
    assert "intervals" not in page
    assert "Protected is one party" in page  # a guarantee needs no test row
    assert json.loads((run.directory / "run.json").read_text())["status"] == "done"
    assert unscored(run.rows) == [UNSCORED]
    assert unscored([]) == unscored([{**run.rows[0], "metric": "accuracy"}]) == []
    assert "nothing was scored" in run._repr_html_()
    assert write_report([run.directory], tmp_path / "again.html").exists()


@pytest.mark.parametrize("name", ["digits-class-ratio", "diabetes-label-dp", "breast-cancer-mean-operator"])
def test_no_task_needs_test_rows(name):
    assert isinstance(worlds(resolve(name, ["data.test=0", "data.targets=null"]), None)[0].scoring(), Unscored)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["data.test=-1"], "data.test: must be official, a count of rows"),
        (["data.test=0.0"], "a whole number, 0 for none"),
        (["data.test=false"], "data.test: must be official"),
        (["data.test=0", "protocols=[{kind: pooled}]"], "data.test: 0 leaves no row to score baselines on"),
        (["data.test=0", "data.targets={}"], "data.targets: are drawn from the test rows, and data.test is 0"),
    ],
)
def test_what_makes_no_sense_without_test_rows_is_refused(settings, words):
    with pytest.raises(scenarios.InputError, match=words):
        resolve("quickstart", settings)
