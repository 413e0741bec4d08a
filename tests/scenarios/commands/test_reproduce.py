"""`federation reproduce`: papers and items, what it takes and refuses, and what it leaves."""

import json
import re

import pytest
from support.toy_paper import toy_item, toy_paper

from federation.contract.errors import InputError
from scenarios.commands.reproduce import OUT
from scenarios.reproductions import paper as catalogue
from scenarios.reproductions.measure import PaperRuns
from scenarios.reproductions.paper import EXACT, Observation, Part


def computed(quick, data_dir):
    return [Observation("one", "high", "published", "", EXACT, 0.25 if quick else 0.5)]


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """A paper `toy` that needs no run, in a folder of its own."""
    item = toy_item(parts=(), compute=computed, minutes=(2.0, 0.5))
    monkeypatch.setattr(catalogue, "names", lambda: ["toy"])
    monkeypatch.setattr(catalogue, "paper", lambda name: toy_paper(item, toy_item(name="table2")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDERATION_DATA", raising=False)
    return tmp_path


def test_papers_and_items_are_listed_with_what_they_need_and_an_item_is_told_kept_and_shown(toy, done):
    record = json.loads(done("reproduce", "--json"))
    first, second = record["items"]
    assert (first["item"], first["data"], first["minutes"]) == ("table1", "none", "2, quick 0.5")
    assert second["data"] == "digits"
    assert "Nobody 2000: Toys" in done("reproduce")
    out = done("reproduce", "toy", "--only", "table1")
    assert "0.500" in out
    assert out.endswith("page: runs/reproductions/toy.md\n")
    assert "| one | high | 0.500 |" in (toy / "runs/reproductions/toy.md").read_text()
    out = done("reproduce", "toy", "--only", "table1", "--quick")
    assert out.endswith("page: runs/reproductions-quick/toy.md\nnext: federation reproduce toy, for all splits\n")
    assert "0.250" in (toy / "runs/reproductions-quick/toy/table1.csv").read_text() or "0.25" in out
    record = json.loads(done("reproduce", "toy", "--only", "table1", "--out", "here", "--json"))
    assert record["page"] == "here/toy.md"


def test_what_is_unknown_or_in_the_way_is_one_line(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "there is no paper 'lacombee'" in refused("reproduce", "lacombee")
    assert re.search(r"--only.*table9", refused("reproduce", "lacombe", "--only", "table9"))
    (tmp_path / "file").write_text("")
    assert "--out file is a file" in refused("reproduce", "lacombe", "--out", "file")


def test_two_commands_do_not_write_the_same_pages(toy, refused):
    with PaperRuns(catalogue.paper("toy"), OUT).alone():
        assert "runs/reproductions" in refused("reproduce", "toy")


def test_an_interruption_says_how_to_go_on_and_data_that_is_not_there_is_named(toy, monkeypatch, typed, refused):
    def interrupted(quick, data_dir):
        raise KeyboardInterrupt

    monkeypatch.setattr(catalogue, "paper", lambda name: toy_paper(toy_item(parts=(), compute=interrupted)))
    code, _, error = typed("reproduce", "toy")
    assert code == 130
    assert error.endswith("are kept, and the same command goes on with them\n")
    monkeypatch.setattr(catalogue, "paper", lambda name: toy_paper(toy_item(parts=(Part("one", "har-soft-vote"),))))
    assert re.search(r"table1.*measured.*one.*har", refused("reproduce", "toy"))


def test_what_fails_is_told_in_the_end_and_costs_no_other_item(toy, monkeypatch, typed):
    def failing(quick, data_dir):
        yield from computed(quick, data_dir)
        raise InputError("a second value is beyond us; do without")

    items = toy_item(parts=(), compute=failing), toy_item(name="table2", parts=(), compute=computed)
    monkeypatch.setattr(catalogue, "paper", lambda name: toy_paper(*items))
    code, out, error = typed("reproduce", "toy")
    assert (code, error) == (2, "error: toy table1, the rest: a second value is beyond us; do without\n")
    assert out.endswith("page: runs/reproductions/toy.md\n")
    page = (toy / "runs/reproductions/toy.md").read_text()
    assert page.count("| one | high | 0.500 |") == 2
    assert "the rest was not measured: it failed." in page
