"""Scenarios of protocols from end to end, whatever parties do: scored releases, and equal files on every engine."""

import numpy as np
import pytest
from support.protocol_runs import finished_run, require_refusals, require_same_files

import scenarios
from scenarios.scores.results import read_results

pytestmark = pytest.mark.usefixtures("undrawn")


def two_classes(**changes):
    return {
        "data": {
            "source": "digits",
            "positive": ["1", "3", "5", "7", "9"],
            "auxiliary": 400,
            "features": ["standardise"],
        },
        "parties": {"count": 4, "dropout": 0.1, "hostile": {"fraction": 0.25, "kind": "malformed"}},
        "protocols": [
            {"kind": "mean_operator", "noise": ["auto", "randomised_response", "off"]},
            {"kind": "mean_operator", "protect": "row", "trust": "secure", "noise": "pure"},
            {"kind": "error_marginals", "learner": "linear", "noise": ["pure", "off"]},
            {"kind": "constant"},
        ],
        "servers": "two",  # four parties are too few for one that does what it likes
        "privacy": {"epsilon": [3]},
        "trials": {"splits": 1, "noise": 2},
        **changes,
    }


@pytest.fixture(scope="module")
def finished_classes(tmp_path_factory):
    return finished_run(two_classes(), tmp_path_factory.mktemp("run"))


def values(run, variant, metric="accuracy"):
    return [row["value"] for row in run.rows if (row["variant"], row["metric"]) == (variant, metric)]


@pytest.mark.slow
def test_rows_are_scored_round_by_round(finished_classes):
    assert len(values(finished_classes, "mean_operator")) == 2
    assert len(values(finished_classes, "mean_operator-off")) == 1
    for round_ in (1, 2):
        assert len(values(finished_classes, "error_marginals-pure-linear", f"accuracy_at_round_{round_}")) == 2
    assert values(finished_classes, "error_marginals-off-linear") == values(
        finished_classes, "error_marginals-off-linear", "accuracy_at_round_2"
    )
    assert min(values(finished_classes, "mean_operator-off")) > 0.8 > max(values(finished_classes, "constant"))
    units = {row["variant"]: row["unit"] for row in finished_classes.rows}
    assert units["mean_operator"] == "label"
    assert units["mean_operator-secure-pure-row"] == units["error_marginals-pure-linear"] == "row"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["ray", "flower"])
def test_every_engine_leaves_the_same_bytes_round_after_round(finished_classes, tmp_path, monkeypatch, engine):
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "home"))
    chosen = {"kind": engine, "workers": 1, "parties_per_node": 3}  # whether workers agree: tests of grids
    require_same_files(finished_classes, two_classes(engine=chosen), tmp_path, engine, 6)


def labels(**changes):
    return {
        "name": "labels",
        "data": {"source": "diabetes", "auxiliary": 40, "test": 0.3},
        "parties": {"count": 5, "dropout": 0.3, "hostile": {"fraction": 0.2, "kind": "malformed"}, "quorum": 0.4},
        "baselines": False,
        "protocols": [
            {"kind": "label_sums", "noise": "gaussian"},
            {"kind": "private_labels"},
            {"kind": "noisy_weighted_llp", "size": 4, "learner": "network"},
            {"kind": "weighted_lba", "size": 2},
            {"kind": "label_sums", "noise": "off"},
        ],
        "privacy": {"epsilon": [1, 8], "delta": 1e-3},
        "trials": {"splits": 1, "noise": 2},
        "seed": 3,
        **changes,
    }


@pytest.fixture(autouse=True)
def own_cluster(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # another run's cluster must not be taken for ours


@pytest.fixture(scope="module")
def finished_labels(tmp_path_factory):
    return finished_run(labels(), tmp_path_factory.mktemp("run"))


def test_every_release_is_scored_whoever_drops_out_or_attacks(finished_labels):
    rows = [row for row in read_results(finished_labels.directory / "results.csv") if row["metric"] == "mse"]
    assert len(rows) == 4 * 2 * 2 + 1  # variants x epsilons x draws, one without noise
    assert np.isfinite([row["value"] for row in rows]).all()
    assert {row["unit"] for row in rows} == {"label", "none"}
    require_refusals(finished_labels)


@pytest.mark.slow
def test_ray_leaves_the_same_bytes(finished_labels, tmp_path):
    chosen = {"kind": "ray", "workers": 2, "parties_per_node": 2}
    require_same_files(finished_labels, labels(engine=chosen), tmp_path, "ray", 5)


WHITENED = {"kind": "class_ratio", "estimator": "whitened", "submit": "embedding", "dimensions": 32}


def ratios(**changes):
    return {
        "name": "ratios",
        "data": {
            "source": "digits",
            "auxiliary": 200,
            "test": 0.3,
            "features": [{"whiten": 10}, "unit_norm"],
            "targets": {"shares": [0.1, 0.5]},
        },
        "parties": {"count": 12, "bags": 2, "rows": 72, "partition": {"majority": 0.05}},
        "baselines": False,
        "protocols": [
            {**WHITENED},
            {**WHITENED, "noise": "dirichlet_shifted", "pseudo_count": 20},
            {**WHITENED, "noise": "gaussian", "protect": "row"},
            {"kind": "class_ratio", "noise": "off", "submit": "rows", "estimator": "bag_classifier"},
        ],
        "privacy": {"epsilon": [1, 8], "delta": 1e-3},
        "trials": {"splits": 1, "noise": 2},
        **changes,
    }


@pytest.fixture(scope="module")
def finished_ratios(tmp_path_factory):
    return finished_run(ratios(), tmp_path_factory.mktemp("run"))


def errors(rows, variant, metric="l1"):
    return [row["value"] for row in rows if (row["variant"], row["metric"]) == (variant, metric)]


def test_every_release_is_scored(finished_ratios):
    rows = read_results(finished_ratios.directory / "results.csv")
    variants = {row["variant"] for row in rows}
    assert len(variants) == 4
    for variant in variants:
        found = errors(rows, variant)
        assert len(found) == (1 if "off" in variant else 4)  # epsilons x draws
        assert np.isfinite(found).all()
        assert 0 <= min(found) <= max(found) <= 2
    units = {row["unit"] for row in rows if row["metric"] == "l1"}
    assert units == {"label", "row", "none"}


@pytest.mark.slow
def test_flower_leaves_the_same_bytes(finished_ratios, tmp_path, monkeypatch):
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "home"))
    chosen = {"kind": "flower", "workers": 2, "parties_per_node": 5}
    require_same_files(finished_ratios, ratios(engine=chosen), tmp_path, "flower")


@pytest.mark.slow
def test_dropouts_and_attacks_are_swept_like_other_keys(tmp_path):
    parties = {
        "count": 12,
        "bags": 2,
        "partition": {"majority": 0.2},
        "dropout": [0, 0.2],
        "hostile": {"fraction": [0, 0.25], "kind": ["flip", "malformed"]},
        "quorum": 0.3,
    }
    data = {**ratios()["data"], "source": "breast_cancer", "auxiliary": 60}  # two classes: any two bags will do
    swept = ratios(data=data, parties=parties, privacy={"epsilon": 8, "delta": 1e-3})
    run = scenarios.run(swept, out=tmp_path / "out")
    values = [row["value"] for row in run.rows if row["metric"] == "l1"]
    assert len(values) == 8 * (3 * 2 + 1)  # worlds x draws, one without noise
    assert np.isfinite(values).all()
    assert max(values) <= 2
    require_refusals(run)
