"""Scenarios of regressions from private labels from end to end: equal files on every engine."""

from __future__ import annotations

import json

import numpy as np
import pytest

import scenarios
from scenarios.runs import runner
from scenarios.scores.results import read_results


def document(**changes):
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


pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(autouse=True)
def own_cluster(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # another run's cluster must not be taken for ours


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_draw", lambda *arguments: None)
        return scenarios.run(document(), out=tmp_path_factory.mktemp("run") / "out", keep_models=True)


def test_every_release_is_scored_whoever_drops_out_or_attacks(finished):
    rows = [row for row in read_results(finished.directory / "results.csv") if row["metric"] == "mse"]
    assert len(rows) == 4 * 2 * 2 + 1  # variants x epsilons x draws, one without noise
    assert np.isfinite([row["value"] for row in rows]).all()
    assert {row["unit"] for row in rows} == {"label", "none"}
    failures = json.loads((finished.directory / "run.json").read_text())["failures"]
    assert failures.pop("dropped out") > 0
    [(cause, refused)] = failures.items()
    assert "outside the declared range" in cause
    assert refused > 0


@pytest.mark.slow
def test_ray_leaves_the_same_bytes(finished, tmp_path):
    chosen = {"kind": "ray", "workers": 2, "parties_per_node": 2}
    run = scenarios.run(document(engine=chosen), out=tmp_path / "out", keep_models=True)
    names = ["results.csv", "ledger.json"]
    names += [str(path.relative_to(finished.directory)) for path in finished.directory.rglob("*.npz")]
    assert len(names) == 2 + 5
    for name in names:
        assert (run.directory / name).read_bytes() == (finished.directory / name).read_bytes()
    assert json.loads((run.directory / "run.json").read_text())["engine"] == "ray"
