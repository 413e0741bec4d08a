"""Scenarios of the protocols for two classes, from the file to scored rows, over every engine."""

from __future__ import annotations

import pytest
from support.protocol_runs import finished_run, require_same_files

pytestmark = pytest.mark.usefixtures("undrawn")


def document(**changes):
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
def finished(tmp_path_factory):
    return finished_run(document(), tmp_path_factory.mktemp("run"))


def values(run, variant, metric="accuracy"):
    return [row["value"] for row in run.rows if (row["variant"], row["metric"]) == (variant, metric)]


def test_rows_are_scored_round_by_round(finished):
    assert len(values(finished, "mean_operator")) == 2
    assert len(values(finished, "mean_operator-off")) == 1
    for round_ in (1, 2):
        assert len(values(finished, "error_marginals-pure-linear", f"accuracy_at_round_{round_}")) == 2
    assert values(finished, "error_marginals-off-linear") == values(
        finished, "error_marginals-off-linear", "accuracy_at_round_2"
    )
    assert min(values(finished, "mean_operator-off")) > 0.8 > max(values(finished, "constant"))
    units = {row["variant"]: row["unit"] for row in finished.rows}
    assert units["mean_operator"] == "label"
    assert units["mean_operator-secure-pure-row"] == units["error_marginals-pure-linear"] == "row"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["ray", "flower"])
def test_every_engine_leaves_the_same_bytes_round_after_round(finished, tmp_path, monkeypatch, engine):
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "home"))
    chosen = {"kind": engine, "workers": 1, "parties_per_node": 3}  # whether workers agree: tests of grids
    require_same_files(finished, document(engine=chosen), tmp_path, engine, 6)
