"""Regressions as a task: own files and data sets, from the scenario to the artefacts."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.released_lines import stored

import scenarios
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.features.feature_map import FeatureMap
from federation.features.steps import Append
from scenarios.runs import world
from scenarios.runs.preview import preview
from scenarios.runs.world import worlds
from scenarios.scores.classification_scoring import ClassificationScoring
from scenarios.scores.regression_scoring import RegressionScoring
from scenarios.scores.results import read_results
from scenarios.settings.schema import resolve

pytestmark = pytest.mark.usefixtures("protocols")

SLOPES = np.array([2.0, -1.0])
KEPT = [Guarantee(e, 1e-6, Unit.LABEL, Adjacency.REPLACE, "shaped_gaussian").to_dict() for e in (0.5, 1.0)]


@pytest.fixture
def own_file(tmp_path, rng):
    rows = rng.normal(size=(300, 2))
    labels = np.clip(rows @ SLOPES + 3.0 + 0.1 * rng.normal(size=300), -9, 15)
    lines = [
        f"{site},{a:.6f},{b:.6f},{y:.6f}\n" for site, (a, b), y in zip(np.arange(300) % 6, rows, labels, strict=True)
    ]
    (tmp_path / "own.csv").write_text("site,a,b,y\n" + "".join(lines))
    return tmp_path / "own.csv"


def document(path, *kinds, **data):
    return {
        "name": "lines",
        "data": {
            "source": str(path), "label": "y", "range": [-9, 15], "features": ["constant"], "auxiliary": 40, **data,
        },
        "parties": {"partition": {"by": "site"}},
        "protocols": [{"kind": kind} for kind in kinds],
        "privacy": {"epsilon": [0.5, 1]},
        "trials": {"splits": 2, "noise": 3},
    }  # fmt: skip


@pytest.fixture
def released(monkeypatch):
    """What stands in for the aggregator releases the true slopes with an intercept that is off by .5 or 1."""
    plans = []

    def run(grid, config):
        plan = json.loads(Path(config["plan"]).read_text())
        plans.append(plan)
        folder, names = Path(plan["directory"]), [variant["name"] for variant in plan["variants"]]
        for name in names:
            weights = [[[*SLOPES, 3.0 + off]] * plan["draws"] for off in (1.0, 0.5)]
            stored(folder / f"{name}.npz", weights, KEPT, FeatureMap(2, (Append(1.0),)))
        releases = [{"variant": name, "guarantee": one, "checks": []} for name in names for one in KEPT]
        summary = {
            "ledger": {"budget": None, "releases": releases, "published_together": []},
            "individual": {}, "failures": {}, "failed_variants": {}, "seconds": {},
            "diagnostics": {name: [{"condition": 2.0}] * 2 for name in names},
            "bytes_per_party": {name: [16] * 2 for name in names},
        }  # fmt: skip
        (folder / "world.json").write_text(json.dumps(summary))

    monkeypatch.setattr(world, "run_server_app", run)
    return plans


def test_a_run_ends_in_squared_errors(own_file, released, tmp_path):
    run = scenarios.run(document(own_file, "slope", "pooled"), out=tmp_path / "out")
    errors = [row for row in read_results(run.directory / "results.csv") if row["metric"] == "mse"]
    by_variant = {}
    for row in errors:
        by_variant.setdefault((row["variant"], row["epsilon"]), []).append(row["value"])
    assert {key: len(values) for key, values in by_variant.items()} == {
        ("slope", 0.5): 6, ("slope", 1.0): 6, ("pooled", np.inf): 2,
    }  # fmt: skip
    assert np.mean(by_variant["slope", 0.5]) == pytest.approx(1.01, abs=0.1)
    assert np.mean(by_variant["slope", 1.0]) == pytest.approx(0.26, abs=0.05)
    assert np.mean(by_variant["pooled", np.inf]) == pytest.approx(0.01, rel=0.4)
    assert {path.name for path in (run.directory / "figures").glob("*.png")} == {"mse.png"}
    report = (run.directory / "report.html").read_text()
    assert "Mean squared error (lower is better)" in report
    assert "accurac" not in report


def test_the_aggregator_is_told_the_range_and_no_classes(own_file, released, tmp_path):
    scenarios.run(document(own_file, "slope", outside="clip", range=[-1, 5]), out=tmp_path / "out")
    for plan in released:
        assert plan["label_range"] == [-1.0, 5.0]
        assert plan["classes"] == []
        assert plan["class_names"] == (
            "the range [-1, 5] of the labels is public knowledge as declared; labels outside are clipped to it first, "
            "and which columns hold text is as declared"
        )


@pytest.mark.parametrize("kinds", [["pooled"], ["slope", "pooled"]])
def test_own_files_are_scored_as_regressions_where_a_range_is_declared(own_file, tmp_path, kinds):
    found = worlds(resolve(document(own_file, *kinds)), None)[0]
    assert isinstance(found.scoring(), RegressionScoring)
    classes = resolve(
        {**document(own_file, "pooled", range=None), "data": {"source": "digits"}, "parties": {"count": 4}}
    )
    assert isinstance(worlds(classes, None)[0].scoring(), ClassificationScoring)


def test_a_documented_range_is_a_premise(tmp_path):
    given = {**document("diabetes", "slope"), "data": {"source": "diabetes"}, "parties": {"count": 4}}
    plan = worlds(resolve(given), None)[0].plan(tmp_path, 4)
    assert plan.label_range == (25.0, 346.0)
    assert plan.class_names == (
        "the range [25, 346] of the labels, and which columns hold text, are as the data set documents"
    )


def test_labels_outside_the_range_stop_a_run_before_anything_is_written(own_file, tmp_path):
    with pytest.raises(InputError, match=r"lie outside \[0, 1\], such as .* choose data\.outside: clip"):
        scenarios.run(document(own_file, "pooled", range=[0, 1]), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_dry_run_names_the_range_and_not_the_labels(own_file):
    [point] = preview(resolve(document(own_file, "slope", "pooled")), None)["points"]
    assert point["data"] == "own.csv: 300 rows, 2 columns, labels from -9 to 15"
    assert (point["parties"], point["features"]) == (6, 3)
