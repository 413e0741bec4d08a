"""Tables of results are written and read exactly, metrics are compared and shown, and runs without test rows say so."""

import json
import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refused

import scenarios
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from scenarios.data.catalogue import load as load_table
from scenarios.reports.report import write_report
from scenarios.runs.trial import worlds
from scenarios.scores import results
from scenarios.scores.scoring import ACCURACY, L1, MSE, primaries
from scenarios.settings.schema import resolve

ROW = dict(
    zip(results.COLUMNS, ["s", "soft_vote", "soft_vote", 1, 0.1, 1e-6, "party", 0, 2, "accuracy", 1 / 3], strict=True)
)

WHOLE = (",".join(results.COLUMNS) + "\ns,soft_vote,v,1,0.5,0,party,0,1,accuracy,0.75").encode()


def test_what_is_written_is_read_back_exactly_and_an_interrupted_write_leaves_the_old_file(tmp_path):
    rows = [{**ROW, "parties.count": "10"}, {**ROW, "epsilon": float("inf"), "parties.count": ""}]
    results.write_results(tmp_path / "r.csv", rows, ["parties.count"])
    assert results.read_results(tmp_path / "r.csv") == rows
    before = (tmp_path / "r.csv").read_text()
    assert before.splitlines()[0] == ",".join([*results.COLUMNS, "parties.count"])

    def interrupted():
        yield ROW
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        results.write_results(tmp_path / "r.csv", interrupted(), [])
    assert (tmp_path / "r.csv").read_text() == before


@pytest.mark.parametrize(
    "content", [b"", b"a,b\n1,2\n", b"\xff\xfe", b"epsilon,value\nx,1\n", WHOLE + b",extra\n", WHOLE[:-6]]
)
def test_damaged_tables_are_input_errors(tmp_path, content):
    (tmp_path / "r.csv").write_bytes(content)
    refused(r"r\.csv", results.read_results, tmp_path / "r.csv")


def test_absent_tables_and_pipes_are_input_errors(tmp_path):
    (tmp_path / "r.csv").write_bytes(WHOLE)
    assert results.read_results(tmp_path / "r.csv")[0]["value"] == 0.75
    refused(r"none\.csv", results.read_results, tmp_path / "none.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    refused(None, results.read_results, tmp_path / "pipe.csv")


@pytest.mark.parametrize(
    ("guarantee", "columns"),
    [
        (Guarantee(0.5, 1e-6, Unit.LABEL, Adjacency.REPLACE, "lattice"), (0.5, 1e-6, "label")),
        (NoGuarantee("noise is off"), (math.inf, 0.0, "none")),
        (NoGuarantee("it is not what it says", (0.05, 0.1)), (0.05, 0.1, "none")),
    ],
)
def test_columns_say_what_is_promised_or_claimed(guarantee, columns):
    assert results.protection(guarantee.to_dict()) == dict(zip(("epsilon", "delta", "unit"), columns, strict=True))


@pytest.mark.parametrize(
    ("epsilon", "aim", "said"),
    [(4.6, 1.0, {"aimed_epsilon": 1.0}), (1.0, 1.0, {}), (math.inf, 1.0, {}), (4.6, math.inf, {})],
)
def test_what_was_aimed_at_is_said_where_something_else_is_kept(epsilon, aim, said):
    assert results.missed(epsilon, aim) == said


@pytest.mark.parametrize(
    ("present", "chosen"),
    [
        (["auc", "accuracy", "balanced_accuracy"], ACCURACY),
        (["l1_at_0.1", "l1", "bytes_per_party"], L1),
        (["mse"], MSE),
        (["bytes_per_party"], ACCURACY),
        ([], ACCURACY),
    ],
)
def test_the_primary_metric_is_the_one_that_is_there(present, chosen):
    assert results.primary([{"metric": name} for name in present]) == chosen


@pytest.mark.parametrize(("metric", "better", "worse"), [(ACCURACY, 0.9, 0.8), (L1, 0.1, 0.2), (MSE, 3.0, 4.0)])
def test_errors_are_better_when_smaller(metric, better, worse):
    assert metric.better(better, worse)
    assert not metric.better(worse, better)
    assert not metric.better(better, better)


def test_names_and_headings_in_words():
    assert [metric.mean for metric in primaries()] == ["mean accuracy", "mean L1 error", "mean squared error"]
    assert [(results.metric_named(name).label, results.heading(name)) for name in ("accuracy", "auc", "l1")] == [
        ("accuracy", "accuracy"), ("AUC", "AUC"), ("L1 error", "L1 error (lower is better)"),
    ]  # fmt: skip
    assert results.heading("mse") == "mean squared error (lower is better)"
    assert results.metric_named("balanced_accuracy").label == "balanced accuracy"
    assert [results.at_share(share) for share in (0.1, 0.25, 1.0)] == ["l1_at_0.1", "l1_at_0.25", "l1_at_1"]
    assert [results.at_round(number) for number in (1, 12)] == ["accuracy_at_round_1", "accuracy_at_round_12"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.49021, "0.4902"), (127.84, "127.8"), (2913.4, "2913"), (13315503.0, "1.332e+07"), (54321.9, "54322"),
        (0.00012345, "0.0001234"), (1.2e-9, "1.200e-09"), (0.0, "0"), (9.99996, "10.000"), (1234567.0, "1234567"),
        (math.inf, "inf"), (math.nan, "nan"),
    ],
)  # fmt: skip
def test_squared_errors_have_four_digits_of_any_magnitude(value, text):
    assert results.shown("mse", value) == text


@pytest.mark.parametrize(
    ("value", "mean", "text"),
    [
        (0.0123, 0.4902, "0.0123"), (2.04, 127.8, "2.0"), (384.2, 2913.0, "384"), (0.0, 127.8, "0.0"),
        (1e3, 2e8, "1.000e+03"),
    ],
)  # fmt: skip
def test_a_deviation_has_the_decimals_of_its_mean(value, mean, text):
    assert results.shown("mse", value, mean) == text


@settings(derandomize=True)
@given(st.floats(1e-12, 1e12))
def test_what_is_shown_of_a_squared_error_is_the_value(value):
    assert float(results.shown("mse", value)) == pytest.approx(value, rel=5.1e-4)


def test_other_metrics_have_three_decimals_and_shares_can_be_shown_in_percent():
    shares = ["accuracy", "balanced_accuracy", "auc"]
    for name in (*shares, "l1", "l1_at_0.1"):
        assert results.shown(name, 0.12345, 1e-9) == "0.123"
    assert [name for name in (*shares, "l1", "mse") if results.in_percent(name)] == shares
    assert results.shown("accuracy", 0.8249, percent=True) == "82.5"


def uneven(beyond):
    """The constant answer where the most frequent class has this much more than half of the rows."""
    named = {"accuracy": 0.5 + beyond, "balanced_accuracy": 0.5}
    return [{"protocol": "constant", "metric": metric, "value": value} for metric, value in named.items()]


@pytest.mark.parametrize(("beyond", "leading"), [(0.05, "accuracy"), (0.2, "balanced_accuracy")])
def test_rare_classes_are_compared_by_balanced_accuracy(beyond, leading):
    rows = [{"protocol": "soft_vote", "metric": "accuracy", "value": 0.9}, *uneven(beyond)]
    assert results.primary(rows).name == leading
    assert results.primary(rows[:1]).name == "accuracy"


FEW = [
    "data.test=0", "trials.splits=1", "trials.noise=2", "privacy.epsilon=[1, 30]", "parties.count=30",
    "protocols=[{kind: soft_vote}, {kind: pooled}, {kind: individual}, {kind: constant}]",
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return scenarios.run("quickstart", out=tmp_path_factory.mktemp("run") / "run", overrides=FEW)


def test_every_row_is_public_or_at_a_party():
    cut = worlds(resolve("breast-cancer-mean-operator", ["data.test=0"]), None)[0].split.cut
    table = load_table("breast_cancer")
    assert len(cut.test) == 0
    assert sorted([*cut.auxiliary, *cut.order]) == list(range(len(table)))


def test_models_are_released_only_what_needs_no_test_row_is_told_and_artefacts_say_so(run, tmp_path):
    assert {row["variant"] for row in run.rows} == {"soft_vote"}
    assert {row["metric"] for row in run.rows} == {"noise_to_signal", "expected_agreement", "bytes_per_party"}
    assert run.model(epsilon=1, draw=1).classes_.tolist() == [str(digit) for digit in range(10)]
    table = load_table("digits")
    model = run.model(epsilon=30)
    assert model.score(table.rows(np.arange(len(table))), np.array(table.classes)[table.labels]) > 0.5
    page = (run.directory / "report.html").read_text()
    assert results.UNSCORED in page
    assert "Results</h2>" not in page
    assert "intervals" not in page
    assert "Protected is all data of one party" in page  # a guarantee needs no test row
    assert json.loads((run.directory / "run.json").read_text())["status"] == "done"
    assert results.unscored(run.rows) == [results.UNSCORED]
    assert results.unscored([]) == results.unscored([{**run.rows[0], "metric": "accuracy"}]) == []
    assert "nothing was scored" in run._repr_html_()
    assert write_report([run.directory], tmp_path / "again.html").exists()


@pytest.mark.parametrize("name", ["digits-class-ratio", "diabetes-label-dp", "breast-cancer-mean-operator"])
def test_no_task_needs_test_rows(name):
    assert isinstance(worlds(resolve(name, ["data.test=0", "data.targets=null"]), None)[0].scoring(), results.Unscored)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["data.test=-1"], r"data\.test"),
        (["data.test=0.0"], "0"),
        (["data.test=false"], r"data\.test"),
        (["data.test=0", "protocols=[{kind: pooled}]"], r"data\.test.*0"),
        (["data.test=0", "data.targets={}"], r"data\.targets.*data\.test.*0"),
    ],
)
def test_what_makes_no_sense_without_test_rows_is_refused(settings, words):
    with pytest.raises(scenarios.InputError, match=words):
        resolve("quickstart", settings)
