"""The rows of a world are scored by their task, and runs over periods add up what a unit has spent."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from support.fake_estimators import released
from support.released_lines import SLOPES, lines_document, stored
from support.streams import MONTHS, stream, stream_file

import scenarios
from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.features.feature_map import FeatureMap
from federation.features.steps import Affine, Append
from scenarios.reports.figures import plots
from scenarios.reports.paper_figure import collect
from scenarios.reports.summary import summarise
from scenarios.runs import trial as world
from scenarios.runs.runner import check_budget
from scenarios.runs.trial import World, releases_about, stated, worlds
from scenarios.scores.classification_scoring import ClassificationScoring
from scenarios.scores.number_scoring import RatioScoring, RegressionScoring
from scenarios.scores.results import read_results
from scenarios.settings.schema import resolve
from scenarios.settings.sections import Trials

KEPT = [Guarantee(epsilon, 1e-6, Unit.LABEL, Adjacency.REPLACE, "lattice").to_dict() for epsilon in (0.5, 1.0)]
CLAIMED = [NoGuarantee("its delta is larger", (epsilon, 1e-6)).to_dict() for epsilon in (0.5, 1.0)]
OFF = [NoGuarantee("noise is off").to_dict()]
NOTHING = FeatureMap(30, (Affine(np.zeros(30), np.zeros(30)),))  # every row becomes zeros


FAKES = pytest.mark.usefixtures("protocols", "estimators")  # in place of the installed ones
TESTED = range(2, MONTHS + 1)
ONE = ["trials.splits=1", "trials.noise=1"]


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


def summarised(folder, promised):
    """Write what an aggregator tells of a world, from what each variant promises."""
    releases = [{"variant": name, "guarantee": one, "checks": []} for name, kept in promised.items() for one in kept]
    summary = {
        "ledger": {"budget": None, "releases": releases, "published_together": []},
        "individual": {}, "failures": {}, "failed_variants": {}, "seconds": {},
        "diagnostics": {name: [{"condition": 2.0}] * len(kept) for name, kept in promised.items()},
        "bytes_per_party": {name: [16] * len(kept) for name, kept in promised.items()},
    }  # fmt: skip
    (folder / "world.json").write_text(json.dumps(summary))


@pytest.fixture
def promises(protocols, estimators, monkeypatch):
    """What stands in for the aggregator promises this, by variant; its estimators always say one half."""
    promised = {"ratio": KEPT, "ratio-published": CLAIMED, "ratio-off": OFF}

    def run(grid, made):
        plan = json.loads(json.dumps(made.to_dict()))
        folder, kept = Path(plan["directory"]), {one["name"]: promised[one["name"]] for one in plan["variants"]}
        for name, guarantees in kept.items():
            draws = 1 if guarantees is OFF else plan["draws"]
            offsets, maps = [[0.5] * draws] * len(guarantees), [NOTHING] * len(guarantees)
            released(offsets, maps, guarantees, columns=tuple("x" * 30)).save(folder / f"{name}.npz")
        summarised(folder, kept)

    monkeypatch.setattr(world, "run_plan", run)
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
        pytest.param(["auto"], [], marks=pytest.mark.slow),
        pytest.param(["auto", "published"], ["ratio-published"], marks=pytest.mark.slow),
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


@FAKES
@pytest.mark.parametrize(("kind", "scored"), [("ratio", RatioScoring), ("soft_vote", ClassificationScoring)])
def test_the_task_of_the_protocols_decides_how_releases_are_scored(kind, scored):
    entries = {"data": {"source": "breast_cancer"}, "protocols": [{"kind": "pooled"}, {"kind": kind}]}
    assert isinstance(worlds(resolve({**document(), **entries}), None)[0].scoring(), scored)


@FAKES
def test_a_budget_is_not_charged_for_claims_that_are_no_guarantee():
    budget = {"epsilon": 2, "delta": 0}
    check_budget(resolve(document("pure", "published", "off", budget=budget)))
    with pytest.raises(BudgetExceededError, match=r"ratio.*epsilon.*0"):
        check_budget(resolve(document("auto", budget=budget)))


LINES_KEPT = [Guarantee(e, 1e-6, Unit.LABEL, Adjacency.REPLACE, "shaped_gaussian").to_dict() for e in (0.5, 1.0)]


@pytest.fixture
def slopes(protocols, estimators, monkeypatch):
    """What stands in for the aggregator releases the true slopes with an intercept that is off by .5 or 1."""
    plans = []

    def run(grid, made):
        plan = json.loads(json.dumps(made.to_dict()))
        plans.append(plan)
        folder, names = Path(plan["directory"]), [variant["name"] for variant in plan["variants"]]
        for name in names:
            weights = [[[*SLOPES, 3.0 + off]] * plan["draws"] for off in (1.0, 0.5)]
            stored(folder / f"{name}.npz", weights, LINES_KEPT, FeatureMap(2, (Append(1.0),)))
        summarised(folder, dict.fromkeys(names, LINES_KEPT))

    monkeypatch.setattr(world, "run_plan", run)
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
    given = {**lines_document("diabetes", "slope"), "data": {"source": "diabetes"}, "parties": {"count": 4}}
    plan = worlds(resolve(given), None)[0].plan(tmp_path, 4)  # a documented range is an assumption
    assert plan.public.label_range == (25.0, 346.0)
    assert plan.task.class_names == (
        "the range [25, 346] of the labels, and which columns hold text, are as the data set documents"
    )


@FAKES
def test_own_files_are_scored_as_regressions_where_a_range_is_declared(own_file, tmp_path):
    for kinds in (["pooled"], ["slope", "pooled"]):
        assert isinstance(worlds(resolve(lines_document(own_file, *kinds)), None)[0].scoring(), RegressionScoring)
    classes = {**lines_document(own_file, "pooled"), "data": {"source": "digits"}, "parties": {"count": 4}}
    assert isinstance(worlds(resolve(classes), None)[0].scoring(), ClassificationScoring)
    with pytest.raises(InputError, match=r"0.*1.*data\.outside"):
        scenarios.run(lines_document(own_file, "pooled", range=[0, 1]), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return stream_file(tmp_path_factory.mktemp("stream"))


@pytest.fixture(scope="module")
def streamed(path, tmp_path_factory):
    return scenarios.run(stream(path), out=tmp_path_factory.mktemp("streamed") / "out")


def ledger(run):
    return json.loads((run.directory / "ledger.json").read_text())


def spent(run, **wanted):
    entries = ledger(run)["over_periods"]["spent"]
    [found] = [one for one in entries if all(one[key] == value for key, value in wanted.items())]
    return found


@pytest.mark.slow
def test_every_period_but_the_first_is_tested_on_and_periods_are_no_repetitions(streamed):
    rows = read_results(streamed.directory / "results.csv")
    accuracies = [row for row in rows if row["metric"] == "accuracy"]
    assert len(accuracies) == len(TESTED) * 2 * (2 * 2 + 1)  # splits x (variants x draws + the constant)
    assert {row["period"] for row in rows} == {*map(str, TESTED)}
    assert ledger(streamed)["over_periods"]["periods"] == [f"2023-0{month}" for month in range(1, MONTHS + 1)]
    found = [one for one in summarise(streamed.rows) if one.variant == "soft_vote"]
    assert [one.setting for one in found] == [{"period": str(period)} for period in TESTED]
    assert {(one.by_epsilon[1.0].splits, one.by_epsilon[1.0].releases) for one in found} == {(2, 4)}


def test_worlds_share_no_noise(path):
    found = worlds(resolve(stream(path)), None)
    assert len(found) == len({one.key for one in found}) == len({one.name for one in found}) == 2 * len(TESTED)
    other = worlds(resolve(stream(path), ["trials.window=3"]), None)
    assert not {one.key for one in found} & {one.key for one in other}


def test_the_ledger_and_pages_add_up_what_one_unit_has_spent(streamed):
    party = spent(streamed, variant="soft_vote", unit="party")
    assert (party["epsilon"], party["delta"]) == (4.0, 0.0)  # 1 in each of the four months
    assert (party["releases"], party["about_one"]) == (4, 4)
    for unit in ("row", "label"):  # which arrive once, and are in two windows
        once = spent(streamed, variant="soft_vote", unit=unit)
        assert (once["epsilon"], once["delta"], once["about_one"]) == (2.0, 0.0, 2)
    said = "soft_vote at ε = 1 in 4 periods: ε = 4, δ = 0 for one party (replace), which has part in 4 of them at most"
    for page in ("report.html", "guarantee.html"):
        assert said in (streamed.directory / page).read_text()


@pytest.mark.parametrize(("unit", "number"), [("party", 4), ("row", 2)])
def test_gaussian_releases_compose_exactly_over_periods(streamed, unit, number):
    releases = [
        one["guarantee"]
        for world in ledger(streamed)["worlds"]
        for one in world["releases"]
        if one["variant"] == "soft_vote-gaussian"
    ]
    mu = math.sqrt(number) * max(one["gaussian_mu"] for one in releases)

    def excess(epsilon):
        return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - 1e-6

    found = spent(streamed, variant="soft_vote-gaussian", unit=unit)
    assert found["epsilon"] == pytest.approx(brentq(excess, 0, 50), rel=1e-3)  # discrete noise pays a little more
    assert found["delta"] == 1e-6


def test_a_budget_lasts_over_the_periods_before_anything_is_read(path):
    def scenario(epsilon, *more):
        limit = f"privacy.budget={{epsilon: {epsilon}, delta: 0.1}}"
        return resolve(stream(path), ["trials.periods=5", limit, *more])

    check_budget(scenario(4.0))
    with pytest.raises(BudgetExceededError, match=r"soft_vote.*4.*epsilon.*4"):
        check_budget(scenario(3.9))
    local = "protocols=[{kind: private_labels}]", "data.range=[0, 1]"
    check_budget(scenario(2.0, *local))  # of a label, which is in two windows
    check_budget(scenario(1.0, *local, "trials.window=1"))
    with pytest.raises(BudgetExceededError, match="2"):
        check_budget(scenario(1.9, *local))


def test_a_budget_is_exact_where_only_the_data_tells_how_many_periods_there_are(streamed, path, tmp_path, undrawn):
    least = spent(streamed, variant="soft_vote-gaussian", unit="party")["epsilon"]
    gaussian = stream(path, protocols=[{"kind": "soft_vote", "noise": "gaussian"}])
    limit = "privacy.budget={{epsilon: {}, delta: 1.0e-6}}"
    kept = scenarios.run(gaussian, out=tmp_path / "kept", overrides=[*ONE, limit.format(least * 1.0001)])
    assert spent(kept, unit="party")["budget"]["epsilon"] == least * 1.0001
    with pytest.raises(BudgetExceededError, match="4"):
        scenarios.run(gaussian, out=tmp_path / "refused", overrides=[*ONE, limit.format(least * 0.9999)])
    assert not (tmp_path / "refused").exists()


def test_an_interrupted_run_goes_on_with_the_next_period(streamed, path, tmp_path, undrawn, monkeypatch):
    run, asked = World.run, []

    def interrupted(self, *arguments, **options):
        asked.append(self.label)
        if len(asked) == 4:
            raise KeyboardInterrupt
        return run(self, *arguments, **options)

    monkeypatch.setattr(World, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scenarios.run(stream(path), out=tmp_path / "out")
    assert asked[2:] == ["period=3, split 0", "period=3, split 1"]
    again = scenarios.run(stream(path), out=tmp_path / "out", resume=True)
    assert asked[4] == "period=3, split 1"  # nothing is computed twice
    for name in ("results.csv", "ledger.json"):
        assert (again.directory / name).read_bytes() == (streamed.directory / name).read_bytes()


@pytest.mark.parametrize("engine", [{"parties_per_node": 3}, pytest.param({"kind": "ray"}, marks=pytest.mark.slow)])
def test_equal_runs_give_equal_files_on_any_engine(streamed, path, tmp_path, undrawn, engine):
    again = scenarios.run(stream(path, engine=engine), out=tmp_path / "out")
    for name in ("results.csv", "ledger.json"):
        assert (again.directory / name).read_bytes() == (streamed.directory / name).read_bytes()
    models = [file.relative_to(again.directory) for file in again.directory.rglob("*.npz")]
    assert {model.parts[2] for model in models} == {f"period={period}" for period in TESTED}
    for name in models:
        assert (again.directory / name).read_bytes() == (streamed.directory / name).read_bytes()


def test_a_figure_is_over_periods_in_their_order(streamed):
    found = collect({streamed.directory: read_results(streamed.directory / "results.csv")}, x="period")
    axis = found.plot.axis
    assert (axis.name, axis.values, axis.logarithmic) == ("period", (2.0, 3.0, 4.0, 5.0), False)
    assert {curve.label: len(curve.points) for curve in found.plot.curves}["soft_vote"] == len(TESTED)
    more = [{**row, "split": row["split"] + 2} for row in streamed.rows]
    caption = collect({streamed.directory: [*streamed.rows, *more]}, x="period").caption
    assert "with the splits as units of each period: periods are no repetitions" in caption
    drawn = plots(streamed.rows)
    assert "accuracy-period" in drawn
    assert not drawn["accuracy-period"].axis.logarithmic


@pytest.mark.parametrize(
    ("trials", "periods", "party", "row"),
    [
        (Trials(periods=8, window=3), None, 7, 3),
        (Trials(periods=(1.0, 2.0, 3.0)), None, 2, 2),
        (Trials(periods={"every": "week"}, window=2), 53, 52, 2),
    ],
)
def test_in_how_many_releases_a_unit_has_part(trials, periods, party, row):
    found = releases_about(trials, periods)
    assert (found["party"], found["person"], found["row"], found["label"]) == (party, party, row, row)


def test_how_many_periods_there_are_may_be_for_the_data_to_tell():
    assert stated(Trials(periods={"every": "week"})) is None
    assert releases_about(Trials(periods={"every": "week"})) == releases_about(Trials()) == {}
