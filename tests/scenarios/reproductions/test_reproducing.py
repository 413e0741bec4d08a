"""Items are measured through runs that go on where they were, and say what was lacking."""

import pytest
from support.toy_paper import toy_item, toy_paper

from federation.contract.errors import InputError
from scenarios.reproductions.measure import IncompleteItemError, PaperRuns, reproduce
from scenarios.reproductions.paper import EXACT, Observation, Part, Pick, Series, read
from scenarios.runs import runner
from scenarios.runs.progress import Progress

SMALL = (
    "data.source=breast_cancer", "data.auxiliary=100", "data.features=[standardise]", "parties.count=5",
    "parties.rows=20", "protocols=[{kind: soft_vote}, {kind: constant}]", "privacy.epsilon=3", "trials.noise=1",
    "trials.splits=2", "data.test=100",
)  # fmt: skip
SERIES = (Series("high", Pick("soft_vote")), Series("low", Pick("constant")))


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """Runs without their figures and reports."""
    monkeypatch.setattr(runner, "_draw", lambda *arguments: None)


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


def test_more_splits_are_added_and_shared_by_items_of_the_same_scenario(tmp_path):
    part = Part("one", "quickstart", SMALL)
    measured(toy_item(parts=(part,), series=SERIES), tmp_path)
    kept, worlds = measured(toy_item(name="table2", parts=(part,), series=SERIES), tmp_path, splits=3)
    assert worlds == 1
    assert kept.record.command == "federation reproduce toy --only table2 --splits 3"
    assert kept.record.splits == {"one": 3}


def test_what_is_computed_needs_no_run(tmp_path):
    def computed(quick, data_dir):
        return [Observation("one", "high", "published", "", EXACT, float(quick))]

    kept, worlds = measured(toy_item(parts=(), compute=computed), tmp_path, quick=True)
    assert (worlds, kept.observations[0].value) == (0, 1.0)


def test_where_nothing_can_be_measured_it_says_what_is_lacking(tmp_path, monkeypatch):
    monkeypatch.delenv("FEDERATION_DATA", raising=False)
    with pytest.raises(
        IncompleteItemError, match=r"nothing of toy table1 could be measured: one: there is no file of 'har'"
    ):
        measured(toy_item(parts=(Part("one", "har-soft-vote"),)), tmp_path)


def test_a_part_that_fails_is_named_with_its_item_and_costs_no_other(tmp_path):
    few = ("data.source=breast_cancer", "data.auxiliary=100", "parties.count=50", "parties.rows=200")
    item = toy_item(parts=(Part("bad", "quickstart", few), Part("one", "quickstart", SMALL)), series=SERIES)
    with pytest.raises(IncompleteItemError, match=r"^toy table1, bad: .*") as raised:
        measured(item, tmp_path)
    assert raised.value.exit_code == 2
    kept = read(tmp_path, toy_paper(item), item)
    assert kept.record == raised.value.kept.record
    assert (set(kept.record.seeds), kept.record.missing) == ({"one"}, {"bad": "it failed"})
    assert kept.by_split("one", "high", "published", "").keys() == {0, 1}


def test_what_was_computed_before_it_failed_is_kept(tmp_path):
    def computed(quick, data_dir):
        yield Observation("one", "high", "published", "", 0, 0.5)
        raise InputError("there is no second value")

    item = toy_item(parts=(), compute=computed)
    with pytest.raises(IncompleteItemError, match=r"^toy table1, the rest: there is no second value"):
        measured(item, tmp_path)
    assert read(tmp_path, toy_paper(item), item).by_split("one", "high", "published", "") == {0: 0.5}
