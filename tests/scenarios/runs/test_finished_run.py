"""A finished run shows itself in Python, its results in libraries of data frames, and what a store of MLflow holds."""

import json
import math
import re
import shutil
import statistics
import sys
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow
import pytest
from support.refusals import refused
from support.released_runs import vote_run

import scenarios
from scenarios.runs.finished_run import Results, Run, log_to_mlflow
from scenarios.runs.progress import Costs
from scenarios.scores.results import write_results
from scenarios.settings.protocol_options import BASELINES

KEPT = [("soft_vote", 0.5, "party"), ("soft_vote", 2.0, "party"), ("pooled", math.inf, "none")]
ROWS = [
    {
        **{"scenario": "<tiny>", "protocol": name, "variant": name, "default": int(name == "soft_vote")},
        **{"epsilon": epsilon, "delta": 0.0, "unit": unit, "split": 0, "noise": draw},
        **{"metric": "accuracy", "value": 0.25 + draw / 8},
    }
    for name, epsilon, unit in KEPT
    for draw in range(2)
]


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path, ROWS, Costs(), {}, [])


def test_a_run_says_in_a_line_what_it_is_and_in_notebooks_shows_its_results_and_rows(run, tmp_path):
    assert repr(run) == f"Run('<tiny>': soft_vote, pooled; epsilon 0.5, 2; in {tmp_path})"
    assert repr(Run(tmp_path, [], Costs(), {}, [])) == f"Run('nothing finished': ; in {tmp_path})"
    many = [{**ROWS[0], "variant": f"v{n}"} for n in range(6)]
    assert re.search(r"v0.*v1.*v2.*v3.*2.*epsilon.*0\.5", repr(Run(tmp_path, many, Costs(), {}, [])))
    page = run._repr_html_()
    assert page.count("<tr>") == 1 + 2  # the head and the variants
    assert "<td>soft_vote (default)</td>" in page
    assert "0.312 ± 0.088" in page
    rows = Results(ROWS)._repr_html_()
    assert "<td>&lt;tiny&gt;</td>" in rows  # names are text
    assert "<td>inf</td>" in rows
    assert Results(ROWS * 10)._repr_html_().count("<tr>") == 21
    assert "60 rows, of which the first 20" in Results(ROWS * 10)._repr_html_()
    assert "<th>epsilon</th>" in Results([])._repr_html_()


def test_results_are_rows_that_arrow_takes_and_without_pandas_a_list_that_notebooks_show(run, monkeypatch):
    results = Results(ROWS)
    assert results == ROWS
    assert pyarrow.RecordBatchReader.from_stream(results).read_all().to_pylist() == ROWS
    assert isinstance(run.results, pandas.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)  # as if it were not installed
    assert isinstance(run.results, Results)
    assert run.results == ROWS
    assert "<td>soft_vote</td>" in run.results._repr_html_()


def test_libraries_of_data_frames_read_the_file_and_the_rows(tmp_path, run):
    from pyarrow.csv import read_csv

    path = tmp_path / "results.csv"
    write_results(path, ROWS, [])
    table = read_csv(path)
    assert str(table.schema.field("epsilon").type) == "double"  # infinite ones too
    assert table.to_pylist() == ROWS
    assert pandas.read_csv(path).epsilon.max() == math.inf
    assert pandas.DataFrame(Results(ROWS)).equals(run.results)
    assert polars.read_csv(path)["epsilon"].max() == math.inf
    assert polars.DataFrame(Results(ROWS)).to_dicts() == ROWS
    assert duckdb.sql(f"SELECT max(epsilon) FROM '{path}'").fetchall() == [(math.inf,)]


def test_a_model_of_the_run(tmp_path, rng):
    directory, _ = vote_run(tmp_path, rng)
    run = Run(directory, ROWS, Costs(), {}, [])
    assert run.model("soft_vote", epsilon=2, draw=3).epsilon_ == 2.0
    assert run.model().epsilon_ == 8.0
    refused(r"epsilon.*7.*0\.5.*2.*8", run.model, "soft_vote", epsilon=7)


FEW = {
    "name": "few",
    "data": {"source": "breast_cancer"},
    "parties": {"count": [1, 2]},
    "protocols": [{"kind": "mean_operator"}, {"kind": "mean_operator", "noise": "off"}, {"kind": "constant"}],
    "privacy": {"epsilon": [1, 3], "delta": 1e-6},
    "trials": {"splits": 2, "noise": 2},
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A finished run of several settings, where MLflow is installed."""
    pytest.importorskip("mlflow")
    return scenarios.run(FEW, out=tmp_path_factory.mktemp("few"))


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return (tmp_path / "store").as_uri()


def test_a_store_holds_settings_and_files_and_every_variant_with_its_results_and_its_guarantee(swept, store):
    mlflow = pytest.importorskip("mlflow")
    whole = log_to_mlflow(swept, tracking_uri=store)
    client = mlflow.MlflowClient(store)
    logged = client.get_run(whole)
    assert (logged.info.run_name, logged.info.status) == ("few", "FINISHED")
    assert logged.data.params["privacy.epsilon"] == "[1.0, 3.0]"
    assert logged.data.params["data.source"] == "breast_cancer"
    kept = {path.name for path in swept.directory.iterdir() if path.is_file()}
    assert {artefact.path for artefact in client.list_artifacts(whole)} == kept >= {"ledger.json", "report.html"}
    assert client.get_experiment(logged.info.experiment_id).name == "few"
    whole = log_to_mlflow(swept.directory, experiment="tumours", tracking_uri=store)
    experiment = client.get_experiment_by_name("tumours").experiment_id
    releases = {
        (found.data.params["variant"], found.data.params["epsilon"], found.data.params["parties.count"]): found.data
        for found in client.search_runs([experiment])
        if found.data.tags.get("mlflow.parentRunId") == whole
    }
    references = [(name, "inf") for name in ("mean_operator-off", *BASELINES)]
    wanted = [("mean_operator", "1"), ("mean_operator", "3"), *references]
    assert set(releases) == {(*one, count) for one in wanted for count in ("1", "2")}
    ledger = json.loads((swept.directory / "ledger.json").read_text())["worlds"]
    for (variant, epsilon, count), data in releases.items():
        rows = [
            row["value"]
            for row in swept.rows
            if (row["variant"], row["metric"], row["parties.count"]) == (variant, "accuracy", count)
            and row["epsilon"] == float(epsilon)
        ]
        assert math.isclose(data.metrics["accuracy"], statistics.mean(rows))
        assert math.isclose(data.metrics["accuracy_sd"], statistics.stdev(rows), abs_tol=1e-12)
        if epsilon == "inf":
            assert data.tags["guarantee"] == "none (NON-PRIVATE)"
            continue
        (told,) = [
            entry["guarantee"]
            for world in ledger
            for entry in world["releases"]
            if str(world["swept"]["parties.count"]) == count
            and (entry["variant"], entry["guarantee"].get("epsilon")) == (variant, float(epsilon))
        ]
        for key in ("unit", "adjacency", "mechanism"):
            assert data.tags[f"guarantee.{key}"] == told[key]
        assert float(data.tags["guarantee.delta"]) == told["delta"]


@pytest.mark.parametrize("seeded", [True, False])
def test_every_page_says_that_no_guarantee_covers_scores_and_files(swept, store, tmp_path, seeded):
    mlflow = pytest.importorskip("mlflow")
    directory = shutil.copytree(swept.directory, tmp_path / "run")
    if not seeded:
        ledger = directory / "ledger.json"
        ledger.write_text(ledger.read_text().replace('"entropy": "seed"', '"entropy": "system"'))
    log_to_mlflow(directory, experiment="told", tracking_uri=store)
    client = mlflow.MlflowClient(store)
    logged = client.search_runs([client.get_experiment_by_name("told").experiment_id])
    assert len(logged) > 10
    for one in logged:
        said = one.data.tags["mlflow.note.content"]
        assert "metrics, files and references of this run" in said
        assert ("no model of it may be published" in said) == seeded


def test_what_cannot_be_logged_and_a_store_that_refuses_are_told(tmp_path, finished, monkeypatch):
    for place, named in (("nowhere", None), (tmp_path, r"results\.csv")):
        refused(named, log_to_mlflow, place)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "mlflow", None)
        refused(r"MLflow.*pip", log_to_mlflow, finished)
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "false")
    refused("MLflow", log_to_mlflow, finished, tracking_uri=(tmp_path / "refused").as_uri())


def test_telemetry_is_off_unless_somebody_wants_it(finished, tmp_path, monkeypatch):
    (tmp_path / "mlflow").mkdir()
    (tmp_path / "mlflow" / "exceptions.py").write_text("class MlflowException(Exception): ...\n")
    (tmp_path / "mlflow" / "__init__.py").write_text(
        "import os\n"
        "from mlflow.exceptions import MlflowException\n"
        "def MlflowClient(uri):\n"
        "    raise MlflowException(os.environ['MLFLOW_DISABLE_TELEMETRY'])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY", raising=False)
    for wanted in ("true", "false"):  # by default, and as somebody has set it
        for name in [name for name in sys.modules if name.split(".")[0] == "mlflow"]:
            monkeypatch.delitem(sys.modules, name)
        refused(rf"MLflow.*{wanted}", log_to_mlflow, finished)
        monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "false")
    assert Path(sys.modules.pop("mlflow").__file__).parent == tmp_path / "mlflow"
    del sys.modules["mlflow.exceptions"]
