"""Scenarios of class ratios from end to end: equal files on every engine, whatever parties do."""

from __future__ import annotations

import numpy as np
import pytest
from support.protocol_runs import finished_run, require_refusals, require_same_files

import scenarios
from scenarios.scores.results import read_results

WHITENED = {"kind": "class_ratio", "estimator": "whitened", "submit": "embedding", "dimensions": 32}


def document(**changes):
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


pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(autouse=True)
def own_cluster(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # another run's cluster must not be taken for ours


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return finished_run(document(), tmp_path_factory.mktemp("run"))


def errors(rows, variant, metric="l1"):
    return [row["value"] for row in rows if (row["variant"], row["metric"]) == (variant, metric)]


def test_every_release_is_scored(finished):
    rows = read_results(finished.directory / "results.csv")
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
def test_flower_leaves_the_same_bytes(finished, tmp_path, monkeypatch):
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "home"))
    chosen = {"kind": "flower", "workers": 2, "parties_per_node": 5}
    require_same_files(finished, document(engine=chosen), tmp_path, "flower")


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
    data = {**document()["data"], "source": "breast_cancer", "auxiliary": 60}  # two classes: any two bags will do
    swept = document(data=data, parties=parties, privacy={"epsilon": 8, "delta": 1e-3})
    run = scenarios.run(swept, out=tmp_path / "out")
    values = [row["value"] for row in run.rows if row["metric"] == "l1"]
    assert len(values) == 8 * (3 * 2 + 1)  # worlds x draws, one without noise
    assert np.isfinite(values).all()
    assert max(values) <= 2
    require_refusals(run)
