"""The rows of a world whose releases are scored by their task, whatever they promise or claim."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from support.fake_estimators import released
from support.released_lines import SLOPES, lines_document, stored

import scenarios
from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.features.feature_map import FeatureMap
from federation.features.steps import Affine, Append
from scenarios.runs import trial as world
from scenarios.runs.runner import check_budget
from scenarios.runs.trial import worlds
from scenarios.scores.classification_scoring import ClassificationScoring
from scenarios.scores.number_scoring import RatioScoring, RegressionScoring
from scenarios.scores.results import read_results
from scenarios.settings.schema import resolve

pytestmark = pytest.mark.usefixtures("protocols", "estimators")

KEPT = [Guarantee(epsilon, 1e-6, Unit.LABEL, Adjacency.REPLACE, "lattice").to_dict() for epsilon in (0.5, 1.0)]
CLAIMED = [NoGuarantee("its delta is larger", (epsilon, 1e-6)).to_dict() for epsilon in (0.5, 1.0)]
OFF = [NoGuarantee("noise is off").to_dict()]
NOTHING = FeatureMap(30, (Affine(np.zeros(30), np.zeros(30)),))  # every row becomes zeros


def document(*noises, **privacy):
    return {
        "name": "ratios",
        "data": {"source": "breast_cancer", "targets": {"rows": 20, "shares": [0.2, 0.6]}},
        "parties": {"count": 4},
        "protocols": [*({"kind": "ratio", "noise": noise} for noise in noises), {"kind": "pooled"}],
        "baselines": False,
        "privacy": {"epsilon": [0.5, 1], **privacy},
        "trials": {"splits": 1, "noise": 2},
    }


@pytest.fixture
def promises(monkeypatch):
    """What stands in for the aggregator promises this, by variant; its estimators always say one half."""
    promised = {"ratio": KEPT, "ratio-published": CLAIMED, "ratio-off": OFF}

    def run(grid, config):
        plan = json.loads(Path(config["plan"]).read_text())
        folder, listed = Path(plan["directory"]), [variant["name"] for variant in plan["variants"]]
        for name in listed:
            draws = 1 if promised[name] is OFF else plan["draws"]
            offsets, maps = [[0.5] * draws] * len(promised[name]), [NOTHING] * len(promised[name])
            released(offsets, maps, promised[name], columns=tuple("x" * 30)).save(folder / f"{name}.npz")
        releases = [{"variant": name, "guarantee": one, "checks": []} for name in listed for one in promised[name]]
        ledger = {"budget": None, "releases": releases, "published_together": []}
        summary = {
            "ledger": ledger, "individual": {}, "failures": {}, "failed_variants": {}, "seconds": {},
            "diagnostics": {name: [{"condition": 2.0}] * len(promised[name]) for name in listed},
            "bytes_per_party": {name: [16] * len(promised[name]) for name in listed},
        }  # fmt: skip
        (folder / "world.json").write_text(json.dumps(summary))

    monkeypatch.setattr(world, "run_server_app", run)
    return promised


def test_every_release_and_target_has_its_rows(promises, tmp_path, undrawn):
    rows = scenarios.run(document("auto", "published", "off"), out=tmp_path / "out").rows
    found = [
        (row["variant"], row["epsilon"], row["delta"], row["unit"], row["noise"], row["value"])
        for row in rows
        if row["metric"] == "l1_at_0.2" and row["protocol"] == "ratio"
    ]
    each = [(epsilon, noise) for epsilon in (0.5, 1.0) for noise in (0, 1)]
    assert found == [
        *(("ratio", epsilon, 1e-6, "label", noise, pytest.approx(0.6)) for epsilon, noise in each),
        *(("ratio-published", epsilon, 1e-6, "none", noise, pytest.approx(0.6)) for epsilon, noise in each),
        ("ratio-off", math.inf, 0.0, "none", 0, pytest.approx(0.6)),
    ]
    means = [row["value"] for row in rows if row["metric"] == "l1" and row["protocol"] == "ratio"]
    assert means == [pytest.approx((0.6 + 0.2) / 2)] * len(found)
    [pooled] = [row["value"] for row in rows if (row["variant"], row["metric"]) == ("pooled", "l1")]
    assert pooled < 0.2
    diagnostics = [row for row in rows if row["metric"] == "condition"]
    assert [(row["unit"], row["noise"], row["value"]) for row in diagnostics] == [
        *[("label", 0, 2.0)] * 2, *[("none", 0, 2.0)] * 3,
    ]  # fmt: skip


def test_a_release_that_keeps_another_epsilon_says_what_it_aimed_at(promises, tmp_path, monkeypatch, undrawn):
    monkeypatch.setattr(world, "head", lambda path: ("class_ratio", [0.25, 1.0]))
    rows = scenarios.run(document("auto"), out=tmp_path / "out").rows
    missed = [(row["epsilon"], row["noise"], row["value"]) for row in rows if row["metric"] == "aimed_epsilon"]
    assert missed == [(0.5, 0, 0.25)]


@pytest.mark.parametrize(
    ("noises", "exposed"),
    [
        (["auto"], []),
        (["auto", "published"], ["ratio-published"]),
        (["published", "off"], ["ratio-published", "ratio-off"]),
    ],
)
def test_what_protects_nobody_is_listed_whatever_its_options_are_called(promises, tmp_path, noises, exposed):
    scenarios.run(document(*noises), out=tmp_path / "out")
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["non_private"] is bool(exposed)
    assert record["non_private_variants"] == [*exposed, "pooled"]
    assert ("NON-PRIVATE. " in (tmp_path / "out" / "report.html").read_text()) is bool(exposed)
    names = {path.name for path in (tmp_path / "out" / "figures").glob("*.png")}
    assert names == {"l1.png", "l1-share.png"}


def test_the_task_of_the_protocols_decides_how_releases_are_scored(tmp_path):
    def scoring(*entries):
        resolved = resolve({**document(), "data": {"source": "breast_cancer"}, "protocols": list(entries)})
        return worlds(resolved, None)[0].scoring()

    assert isinstance(scoring({"kind": "pooled"}, {"kind": "ratio"}), RatioScoring)
    assert isinstance(scoring({"kind": "pooled"}, {"kind": "soft_vote"}), ClassificationScoring)


def test_a_budget_is_not_charged_for_claims_that_are_no_guarantee():
    budget = {"epsilon": 2, "delta": 0}
    check_budget(resolve(document("pure", "published", "off", budget=budget)))
    with pytest.raises(BudgetExceededError, match="release 'ratio' would spend epsilon=0"):
        check_budget(resolve(document("auto", budget=budget)))


LINES_KEPT = [Guarantee(e, 1e-6, Unit.LABEL, Adjacency.REPLACE, "shaped_gaussian").to_dict() for e in (0.5, 1.0)]


@pytest.fixture
def slopes(monkeypatch):
    """What stands in for the aggregator releases the true slopes with an intercept that is off by .5 or 1."""
    plans = []

    def run(grid, config):
        plan = json.loads(Path(config["plan"]).read_text())
        plans.append(plan)
        folder, names = Path(plan["directory"]), [variant["name"] for variant in plan["variants"]]
        for name in names:
            weights = [[[*SLOPES, 3.0 + off]] * plan["draws"] for off in (1.0, 0.5)]
            stored(folder / f"{name}.npz", weights, LINES_KEPT, FeatureMap(2, (Append(1.0),)))
        releases = [{"variant": name, "guarantee": one, "checks": []} for name in names for one in LINES_KEPT]
        summary = {
            "ledger": {"budget": None, "releases": releases, "published_together": []},
            "individual": {}, "failures": {}, "failed_variants": {}, "seconds": {},
            "diagnostics": {name: [{"condition": 2.0}] * 2 for name in names},
            "bytes_per_party": {name: [16] * 2 for name in names},
        }  # fmt: skip
        (folder / "world.json").write_text(json.dumps(summary))

    monkeypatch.setattr(world, "run_server_app", run)
    return plans


def test_a_run_ends_in_squared_errors(own_file, slopes, tmp_path):
    run = scenarios.run(lines_document(own_file, "slope", "pooled"), out=tmp_path / "out")
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


def test_the_aggregator_is_told_the_range_and_no_classes(own_file, slopes, tmp_path, undrawn):
    scenarios.run(lines_document(own_file, "slope", outside="clip", range=[-1, 5]), out=tmp_path / "out")
    for plan in slopes:
        assert plan["label_range"] == [-1.0, 5.0]
        assert plan["classes"] == []
        assert plan["class_names"] == (
            "the range [-1, 5] of the labels is public knowledge as declared; labels outside are clipped to it first, "
            "and which columns hold text is as declared"
        )


@pytest.mark.parametrize("kinds", [["pooled"], ["slope", "pooled"]])
def test_own_files_are_scored_as_regressions_where_a_range_is_declared(own_file, tmp_path, kinds):
    found = worlds(resolve(lines_document(own_file, *kinds)), None)[0]
    assert isinstance(found.scoring(), RegressionScoring)
    classes = resolve(
        {**lines_document(own_file, "pooled", range=None), "data": {"source": "digits"}, "parties": {"count": 4}}
    )
    assert isinstance(worlds(classes, None)[0].scoring(), ClassificationScoring)


def test_a_documented_range_is_a_premise(tmp_path):
    given = {**lines_document("diabetes", "slope"), "data": {"source": "diabetes"}, "parties": {"count": 4}}
    plan = worlds(resolve(given), None)[0].plan(tmp_path, 4)
    assert plan.label_range == (25.0, 346.0)
    assert plan.class_names == (
        "the range [25, 346] of the labels, and which columns hold text, are as the data set documents"
    )


def test_labels_outside_the_range_stop_a_run_before_anything_is_written(own_file, tmp_path):
    with pytest.raises(InputError, match=r"lie outside \[0, 1\], such as .* choose data\.outside: clip"):
        scenarios.run(lines_document(own_file, "pooled", range=[0, 1]), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
