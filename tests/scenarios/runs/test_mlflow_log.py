"""Runs in MLflow: what a store holds afterwards, against the files of the run."""

import json
import math
import shutil
import statistics
import sys
from pathlib import Path

import pytest

import scenarios
from federation.contract.errors import InputError
from scenarios.runs.finished_run import log_to_mlflow
from scenarios.settings.protocol_options import BASELINES

FEW = {
    "name": "few",
    "data": {"source": "breast_cancer"},
    "parties": {"count": [1, 2]},
    "protocols": [{"kind": "mean_operator"}, {"kind": "mean_operator", "noise": "off"}, {"kind": "constant"}],
    "privacy": {"epsilon": [1, 3], "delta": 1e-6},
    "trials": {"splits": 2, "noise": 2},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return scenarios.run(FEW, out=tmp_path_factory.mktemp("few"))


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return (tmp_path / "store").as_uri()


def test_a_store_holds_settings_results_and_files(finished, store):
    mlflow = pytest.importorskip("mlflow")
    whole = log_to_mlflow(finished, tracking_uri=store)
    client = mlflow.MlflowClient(store)
    logged = client.get_run(whole)
    assert (logged.info.run_name, logged.info.status) == ("few", "FINISHED")
    assert logged.data.params["privacy.epsilon"] == "[1.0, 3.0]"
    assert logged.data.params["data.source"] == "breast_cancer"
    kept = {path.name for path in finished.directory.iterdir() if path.is_file()}
    assert {artefact.path for artefact in client.list_artifacts(whole)} == kept >= {"ledger.json", "report.html"}
    assert client.get_experiment(logged.info.experiment_id).name == "few"


def test_every_variant_stands_with_its_results_and_its_guarantee(finished, store):
    mlflow = pytest.importorskip("mlflow")
    whole = log_to_mlflow(finished.directory, experiment="tumours", tracking_uri=store)
    client = mlflow.MlflowClient(store)
    experiment = client.get_experiment_by_name("tumours").experiment_id
    releases = {
        (found.data.params["variant"], found.data.params["epsilon"], found.data.params["parties.count"]): found.data
        for found in client.search_runs([experiment])
        if found.data.tags.get("mlflow.parentRunId") == whole
    }
    references = [(name, "inf") for name in ("mean_operator-off", *BASELINES)]
    wanted = [("mean_operator", "1"), ("mean_operator", "3"), *references]
    assert set(releases) == {(*one, count) for one in wanted for count in ("1", "2")}
    ledger = json.loads((finished.directory / "ledger.json").read_text())["worlds"]
    for (variant, epsilon, count), data in releases.items():
        rows = [
            row["value"]
            for row in finished.rows
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
def test_every_page_says_that_no_guarantee_covers_scores_and_files(finished, store, tmp_path, seeded):
    mlflow = pytest.importorskip("mlflow")
    directory = shutil.copytree(finished.directory, tmp_path / "run")
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


def test_what_cannot_be_logged_is_told(tmp_path, finished, monkeypatch):
    with pytest.raises(InputError, match="there is no run in nowhere; name a directory"):
        log_to_mlflow("nowhere")
    with pytest.raises(InputError, match=r"results\.csv to read; name a directory"):
        log_to_mlflow(tmp_path)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(InputError, match=r"needs MLflow, which is not installed; pip install .*\[mlflow\]"):
        log_to_mlflow(finished)


def test_a_store_that_refuses_is_told(finished, tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "false")
    with pytest.raises(InputError, match="MLflow does not take the run: "):
        log_to_mlflow(finished, tracking_uri=(tmp_path / "refused").as_uri())


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
        with pytest.raises(InputError, match=f"MLflow does not take the run: {wanted}$"):
            log_to_mlflow(finished)
        monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "false")
    assert Path(sys.modules.pop("mlflow").__file__).parent == tmp_path / "mlflow"
    del sys.modules["mlflow.exceptions"]
