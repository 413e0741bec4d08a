"""Runs over periods: what is measured in each, what a unit has spent in all, and what goes on after an interruption."""

import json
import math

import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from support.streams import MONTHS, stream, stream_file

import scenarios
from federation.contract.errors import BudgetExceededError
from scenarios.reports.figures import plots
from scenarios.reports.paper_figure import collect
from scenarios.reports.summary import summarise
from scenarios.runs.runner import check_budget
from scenarios.runs.trial import World, releases_about, stated, worlds
from scenarios.scores.results import read_results
from scenarios.settings.schema import resolve
from scenarios.settings.sections import Trials

TESTED = range(2, MONTHS + 1)
ONE = ["trials.splits=1", "trials.noise=1"]


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


def test_every_period_but_the_first_is_tested_on(streamed):
    rows = read_results(streamed.directory / "results.csv")
    accuracies = [row for row in rows if row["metric"] == "accuracy"]
    assert len(accuracies) == len(TESTED) * 2 * (2 * 2 + 1)  # splits x (variants x draws + the constant)
    assert {row["period"] for row in rows} == {*map(str, TESTED)}
    assert ledger(streamed)["over_periods"]["periods"] == [f"2023-0{month}" for month in range(1, MONTHS + 1)]


def test_splits_repeat_within_a_period_and_periods_are_no_repetitions(streamed):
    found = [one for one in summarise(streamed.rows) if one.variant == "soft_vote"]
    assert [one.setting for one in found] == [{"period": str(period)} for period in TESTED]
    assert {(one.by_epsilon[1.0].splits, one.by_epsilon[1.0].releases) for one in found} == {(2, 4)}


def test_worlds_share_no_noise(path):
    found = worlds(resolve(stream(path)), None)
    assert len(found) == len({one.key for one in found}) == len({one.name for one in found}) == 2 * len(TESTED)
    other = worlds(resolve(stream(path), ["trials.window=3"]), None)
    assert not {one.key for one in found} & {one.key for one in other}


def test_the_ledger_adds_up_what_one_unit_has_spent(streamed):
    party = spent(streamed, variant="soft_vote", unit="party")
    assert (party["epsilon"], party["delta"]) == (4.0, 0.0)  # 1 in each of the four months
    assert (party["releases"], party["about_one"]) == (4, 4)
    for unit in ("row", "label"):  # which arrive once, and are in two windows
        once = spent(streamed, variant="soft_vote", unit=unit)
        assert (once["epsilon"], once["delta"], once["about_one"]) == (2.0, 0.0, 2)


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
    with pytest.raises(
        BudgetExceededError, match=r"'soft_vote' in 4 periods, about the same party, would .*epsilon=4,"
    ):
        check_budget(scenario(3.9))
    local = "protocols=[{kind: private_labels}]", "data.range=[0, 1]"
    check_budget(scenario(2.0, *local))  # of a label, which is in two windows
    check_budget(scenario(1.0, *local, "trials.window=1"))
    with pytest.raises(BudgetExceededError, match="in 2 periods, about the same label, would"):
        check_budget(scenario(1.9, *local))


def test_a_budget_is_exact_where_only_the_data_tells_how_many_periods_there_are(streamed, path, tmp_path, undrawn):
    least = spent(streamed, variant="soft_vote-gaussian", unit="party")["epsilon"]
    gaussian = stream(path, protocols=[{"kind": "soft_vote", "noise": "gaussian"}])
    limit = "privacy.budget={{epsilon: {}, delta: 1.0e-6}}"
    kept = scenarios.run(gaussian, out=tmp_path / "kept", overrides=[*ONE, limit.format(least * 1.0001)])
    assert spent(kept, unit="party")["budget"]["epsilon"] == least * 1.0001
    with pytest.raises(BudgetExceededError, match="in 4 periods, about the same party"):
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


def test_pages_say_what_all_periods_cost(streamed):
    said = "soft_vote at ε = 1 in 4 periods: ε = 4, δ = 0 for one party (replace), which has part in 4 of them at most"
    for page in ("report.html", "guarantee.html"):
        assert said in (streamed.directory / page).read_text()


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
    assert releases_about(Trials(periods={"every": "week"})) == {}
    assert releases_about(Trials()) == {}
