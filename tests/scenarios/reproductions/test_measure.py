"""Items are measured through runs that go on where they were, and rows of a run become values of series."""

import re

import pytest
from support.refusals import refused
from support.toy_paper import toy_item, toy_paper

from federation.contract.errors import InputError
from scenarios.reproductions import measure
from scenarios.reproductions.measure import IncompleteItemError, PaperRuns, observed, reproduce, scenario_of, sources
from scenarios.reproductions.paper import EXACT, Observation, Part, Pick, Series, read
from scenarios.runs.progress import Progress

pytestmark = pytest.mark.usefixtures("undrawn")

SMALL = (
    "data.source=breast_cancer", "data.auxiliary=100", "data.features=[standardise]", "parties.count=5",
    "parties.rows=20", "protocols=[{kind: soft_vote}, {kind: constant}]", "privacy.epsilon=3", "trials.noise=1",
    "trials.splits=2", "data.test=100",
)  # fmt: skip
SERIES = (Series("high", Pick("soft_vote")), Series("low", Pick("constant")))
PAPER = toy_paper(toy_item())


class Counted(Progress):
    """How many worlds were run."""

    def __init__(self):
        self.worlds = 0

    def world_done(self):
        self.worlds += 1


def measured(item, folder, **options):
    counted = Counted()
    kept = reproduce(PaperRuns(toy_paper(item), folder, progress=lambda name: counted, **options), item)
    return kept, counted.worlds


def test_an_item_is_measured_kept_and_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.delenv("FEDERATION_DATA", raising=False)
    parts = (
        Part("one", "quickstart", SMALL, quick=("trials.splits=1",)),
        Part("two", "quickstart", SMALL, quick=None),
        Part("three", "har-soft-vote"),
        Part("four", "har-soft-vote", missing=Part("four", "quickstart", SMALL, substitute="tumours")),
    )
    item = toy_item(parts=(parts[0], *parts[1:3]), series=SERIES)
    kept, worlds = measured(item, tmp_path, quick=True)
    assert worlds == 1
    assert set(kept.record.missing) == {"two", "three"}
    assert "there is no file of 'har'" in kept.record.missing["three"]
    assert read(tmp_path, toy_paper(item), item).record == kept.record
    item = toy_item(parts=(parts[0], parts[3]), series=SERIES)
    kept, worlds = measured(item, tmp_path)
    assert worlds == 1 + 2  # the split of the quick run is not repeated
    assert kept.record.splits == {"one": 2, "four": 2}
    assert kept.record.data["four"].startswith("tumours. measured on other data, because there is no file of 'har'")
    assert kept.by_split("one", "high", "published", "").keys() == {0, 1}


@pytest.mark.slow
def test_more_splits_are_added_and_shared_by_items_of_the_same_scenario(tmp_path):
    part = Part("one", "quickstart", SMALL)
    measured(toy_item(parts=(part,), series=SERIES), tmp_path)
    kept, worlds = measured(toy_item(name="table2", parts=(part,), series=SERIES), tmp_path, splits=3)
    assert worlds == 1
    assert re.search(r"--only.*table2.*--splits.*3", kept.record.command)
    assert kept.record.splits == {"one": 3}


def test_what_is_computed_needs_no_run_and_what_was_computed_before_it_failed_is_kept(tmp_path):
    def computed(quick, data_dir):
        yield Observation("one", "high", "published", "", EXACT, float(quick))

    def failing(quick, data_dir):
        yield Observation("one", "high", "published", "", 0, 0.5)
        raise InputError("there is no second value")

    kept, worlds = measured(toy_item(parts=(), compute=computed), tmp_path, quick=True)
    assert (worlds, kept.observations[0].value) == (0, 1.0)
    item = toy_item(parts=(), compute=failing)
    with pytest.raises(IncompleteItemError, match=r"table1.*rest.*there"):
        measured(item, tmp_path)
    assert read(tmp_path, toy_paper(item), item).by_split("one", "high", "published", "") == {0: 0.5}


def test_lacking_data_is_replaced_or_told_where_nothing_can_be_measured(tmp_path, monkeypatch):
    monkeypatch.delenv("FEDERATION_DATA", raising=False)
    with pytest.raises(IncompleteItemError, match=r"table1.*measured.*one.*har"):
        measured(toy_item(parts=(Part("one", "har-soft-vote"),)), tmp_path)
    runs, here = PaperRuns(PAPER, tmp_path), Part("one", "quickstart")
    assert runs.available(here) == (here, "")
    assert sources(runs.scenario(here)) == ["digits"]
    lacking = "there is no file of 'har' (federation data har says where the original is)"
    assert runs.available(Part("one", "har-soft-vote")) == (None, lacking)
    found, why = runs.available(Part("one", "har-soft-vote", missing=here))
    assert found is here
    assert why == f"measured on other data, because {lacking}"


@pytest.mark.slow
def test_a_part_that_fails_is_named_with_its_item_and_costs_no_other(tmp_path):
    few = ("data.source=breast_cancer", "data.auxiliary=100", "parties.count=50", "parties.rows=200")
    item = toy_item(parts=(Part("bad", "quickstart", few), Part("one", "quickstart", SMALL)), series=SERIES)
    with pytest.raises(IncompleteItemError, match="table1") as raised:
        measured(item, tmp_path)
    assert raised.value.exit_code == 2
    kept = read(tmp_path, toy_paper(item), item)
    assert kept.record == raised.value.kept.record
    assert (set(kept.record.seeds), kept.record.missing) == ({"one"}, {"bad": "it failed"})
    assert kept.by_split("one", "high", "published", "").keys() == {0, 1}


def directories(monkeypatch, folder, *parts, **options):
    """Where these parts would be run, in order; nothing is."""
    asked = []

    def run(scenario, *, out, **rest):
        asked.append(out)
        return type("Run", (), {"rows": []})

    monkeypatch.setattr(measure, "run", run)
    runs = PaperRuns(PAPER, folder, **options)
    for part in parts:
        runs.rows(part)
    return asked


def test_equal_scenarios_share_a_run_and_overrides_are_those_of_part_and_command(monkeypatch, tmp_path):
    one = Part("CTG A", "quickstart", quick=("trials.splits=1",))
    other = Part("CTG A", "quickstart", ("privacy.epsilon=2",))
    more = Part("CTG A", "quickstart", ("trials.noise=7",))
    first = directories(monkeypatch, tmp_path, one, one, other, more)
    assert len(set(first)) == len(first) == 3
    assert first[0].parent == tmp_path / "toy" / "runs"
    assert first[0].name.startswith("quickstart-ctg-a-")
    assert directories(monkeypatch, tmp_path, one, quick=True) == directories(monkeypatch, tmp_path, one, splits=3)
    part = Part("one", "quickstart", ("trials.splits=4",), quick=("trials.splits=2",))
    assert scenario_of(PAPER, part).trials.splits == 4
    assert scenario_of(PAPER, part, quick=True).trials.splits == 2
    assert scenario_of(PAPER, part, quick=True, splits=9).trials.splits == 9


def test_a_paper_is_measured_by_one_command_at_a_time_in_a_folder_that_can_be_written(tmp_path):
    runs = PaperRuns(PAPER, tmp_path / "out")
    with runs.alone():
        with pytest.raises(InputError), runs.alone():
            pass
        with PaperRuns(PAPER, tmp_path / "other").alone():
            pass
    with runs.alone():
        pass
    (tmp_path / "toy").write_text("a file")
    refused("--out", PaperRuns(PAPER, tmp_path).alone)


def row(variant, split, value, *, noise=0, epsilon=1.0, metric="accuracy", **swept):
    fixed = dict(scenario="s", protocol="soft_vote", default=0, delta=0.0, unit="party")
    return {
        **fixed, "variant": variant, "epsilon": epsilon, "split": split, "noise": noise, "metric": metric,
        "value": value, **swept,
    }  # fmt: skip


UNBOUND = float("inf")
ROWS = [
    row("a", 0, 0.6), row("a", 0, 0.8, noise=1), row("a", 1, 0.9),
    *(row("b", split, value, epsilon=UNBOUND) for split, value in enumerate((0.5, 0.4, 0.3))),
    row("a", 0, 3.0, metric="error_at_2"), row("a", 0, 5.0, metric="error_at_4"),
]  # fmt: skip


def values(rows, pick, **changes):
    item = toy_item(series=(Series("high", pick),), **changes)
    return [(one.x, one.split, one.value) for one in observed(rows, item, Part("one", "quickstart"))]


def test_noise_draws_of_a_split_are_averaged_values_taken_split_by_split_and_what_is_not_told_apart_refused():
    assert values(ROWS, Pick("a")) == [("", 0, pytest.approx(0.7)), ("", 1, 0.9)]
    assert values(ROWS, Pick("c")) == []
    assert values(ROWS, Pick("a", beside=Pick("b"))) == [("", 0, pytest.approx(0.2)), ("", 1, pytest.approx(0.5))]
    shares = Pick("a", beside=Pick("b"), of=lambda value, other: value / other)
    assert values(ROWS, shares)[1] == ("", 1, pytest.approx(2.25))
    refused(r"epsilons.*1.*2.*epsilon", values, [row("a", 0, 0.1), row("a", 0, 0.1, epsilon=2.0)], Pick("a"))
    with pytest.raises(InputError, match=r"parties\.count.*1.*parties\.count.*2"):
        values([row("a", 0, 0.1, **{"parties.count": str(n)}) for n in (1, 2)], Pick("a"))


def test_the_place_on_the_axis_stands_in_names_and_settings_and_inverse_epsilons_begin_without_noise():
    assert values(ROWS, Pick("a", "error_at_{x}"), axis="k", at=("2", "4")) == [("2", 0, 3.0), ("4", 0, 5.0)]
    rows = [row("a", 0, count / 10, epsilon=count / 1, **{"parties.count": str(count)}) for count in (1, 2)]
    swept = Pick("a", epsilon="{x}", where={"parties.count": "{x}"})
    assert values(rows, swept, axis="parties", at=("1", "2", "3")) == [("1", 0, 0.1), ("2", 0, 0.2)]
    rows = [row("a", 0, 0.2, epsilon=2.0), row("a", 0, 0.1, epsilon=10.0), row("b", 0, 0.9, epsilon=UNBOUND)]
    pieces = (Series("a", Pick("a", epsilon="1/{x}")), Series("a", Pick("b", epsilon="1/{x}")))
    item = toy_item(series=pieces, axis="1/epsilon", at=("0", "0.1", "0.5"))
    found = {one.x: one.value for one in observed(rows, item, Part("one", "quickstart"))}
    assert found == {"0": 0.9, "0.1": 0.1, "0.5": 0.2}
