"""Runs behind items: one directory for a scenario whatever its splits, another for another; data that is not there."""

import pytest
from support.toy_paper import toy_item, toy_paper

from federation.contract.errors import InputError
from scenarios.reproductions import measure as paper_runs
from scenarios.reproductions.measure import PaperRuns, scenario_of, sources
from scenarios.reproductions.paper import Part

PAPER = toy_paper(toy_item())


def directories(monkeypatch, folder, *parts, **options):
    """Where these parts would be run, in order; nothing is."""
    asked = []

    def run(scenario, *, out, **rest):
        asked.append(out)
        return type("Run", (), {"rows": []})

    monkeypatch.setattr(paper_runs, "run", run)
    runs = PaperRuns(PAPER, folder, **options)
    for part in parts:
        runs.rows(part)
    return asked


def test_equal_scenarios_share_a_run_and_others_have_their_own(monkeypatch, tmp_path):
    one = Part("CTG A", "quickstart", quick=("trials.splits=1",))
    other = Part("CTG A", "quickstart", ("privacy.epsilon=2",))
    more = Part("CTG A", "quickstart", ("trials.noise=7",))
    first = directories(monkeypatch, tmp_path, one, one, other, more)
    assert len(set(first)) == len(first) == 3
    assert first[0].parent == tmp_path / "toy" / "runs"
    assert first[0].name.startswith("quickstart-ctg-a-")
    assert directories(monkeypatch, tmp_path, one, quick=True) == directories(monkeypatch, tmp_path, one, splits=3)


def test_overrides_are_those_of_the_part_the_quick_run_and_the_command():
    part = Part("one", "quickstart", ("trials.splits=4",), quick=("trials.splits=2",))
    assert scenario_of(PAPER, part).trials.splits == 4
    assert scenario_of(PAPER, part, quick=True).trials.splits == 2
    assert scenario_of(PAPER, part, quick=True, splits=9).trials.splits == 9


def test_lacking_data_is_replaced_or_told(monkeypatch, tmp_path):
    monkeypatch.delenv("FEDERATION_DATA", raising=False)
    runs, here = PaperRuns(PAPER, tmp_path), Part("one", "quickstart")
    assert runs.available(here) == (here, "")
    assert sources(runs.scenario(here)) == ["digits"]
    found, why = runs.available(Part("one", "har-soft-vote"))
    assert found is None
    lacking = why
    assert why == "there is no file of 'har' (federation data har says where the original is)"
    found, why = runs.available(Part("one", "har-soft-vote", missing=here))
    assert found is here
    assert why == f"measured on other data, because {lacking}"


def test_a_paper_is_measured_by_one_command_at_a_time_in_a_folder(tmp_path):
    runs = PaperRuns(PAPER, tmp_path / "out")
    with runs.alone():
        with pytest.raises(InputError, match=r"another process measures toy in .*out; wait for it"), runs.alone():
            pass
        with PaperRuns(PAPER, tmp_path / "other").alone():
            pass
    with runs.alone():
        pass


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "toy").write_text("a file")
    with pytest.raises(InputError, match="name another --out"):
        PaperRuns(PAPER, tmp_path).alone()
