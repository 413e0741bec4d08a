"""Scenarios of regressions from private labels from end to end: equal files on every engine."""

from __future__ import annotations

import numpy as np
import pytest
from support.protocol_runs import finished_run, require_refusals, require_same_files

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
    return finished_run(document(), tmp_path_factory.mktemp("run"))


def test_every_release_is_scored_whoever_drops_out_or_attacks(finished):
    rows = [row for row in read_results(finished.directory / "results.csv") if row["metric"] == "mse"]
    assert len(rows) == 4 * 2 * 2 + 1  # variants x epsilons x draws, one without noise
    assert np.isfinite([row["value"] for row in rows]).all()
    assert {row["unit"] for row in rows} == {"label", "none"}
    require_refusals(finished)


@pytest.mark.slow
def test_ray_leaves_the_same_bytes(finished, tmp_path):
    chosen = {"kind": "ray", "workers": 2, "parties_per_node": 2}
    require_same_files(finished, document(engine=chosen), tmp_path, "ray", 5)
