"""Papers declare items, reasons and what they print; what is kept of an item is read as it was written."""

import csv
import errno
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest
from support.refusals import refused
from support.toy_paper import PICK, toy_item, toy_kept, toy_paper

from scenarios.reproductions import paper as catalogue


def test_a_reason_covers_what_it_names_or_all_and_settings_and_series_are_those_that_are_declared():
    assert catalogue.Reason("misprint", "").covers("one", "high")
    some = catalogue.Reason("misprint", "", series=("high",), settings=("one", "two"))
    assert some.covers("one", "low", "high")
    assert not some.covers("one", "low")
    assert not some.covers("three", "high")
    parts = (catalogue.Part("b", "x"), catalogue.Part("a", "y"), catalogue.Part("b", "z"))
    assert toy_item(parts=parts).settings == ["b", "a"]
    assert catalogue.Series("high", default=PICK).picks() == {"default": PICK}
    assert list(catalogue.Series("high", PICK, PICK).picks()) == ["published", "default"]


def test_papers_and_items_are_found_by_name_and_unknown_names_are_refused_with_those_that_there_are():
    assert "lacombe" in catalogue.names()
    for name in catalogue.names():
        assert catalogue.paper(name).name == name
    refused(r"lacomb.*lacombe", catalogue.paper, "lacomb")
    known = toy_paper(toy_item(), toy_item(name="fig1"))
    refused(r"--only.*fig2.*table1.*fig1.*fig1", catalogue.items, known, ["fig2"])
    assert [item.name for item in catalogue.items(known, ["fig1"])] == ["fig1"]
    assert len(catalogue.items(known, [])) == 2


ITEM = toy_item()
PAPER = toy_paper(ITEM)


def test_values_and_record_come_back_and_nothing_is_none(tmp_path):
    assert catalogue.read(tmp_path, PAPER, ITEM) is None
    found = toy_kept(data={"one": "toys"})
    catalogue.keep(tmp_path, PAPER, ITEM, found)
    again = catalogue.read(tmp_path, PAPER, ITEM)
    assert again.record == found.record
    assert again.by_split("one", "low", "published", "") == pytest.approx(found.by_split("one", "low", "published", ""))
    assert len(again.observations) == len(found.observations)
    assert again.by_split("one", "low", "default", "") == {}


@pytest.mark.parametrize(
    ("values", "record"),
    [("a,b\n1,2\n", None), ("setting,series,role,x,split,value\n", None), (None, "{}"), (None, "no json")],
)
def test_other_content_is_refused_by_name(tmp_path, values, record):
    catalogue.keep(tmp_path, PAPER, ITEM, toy_kept())
    path = catalogue.table(tmp_path, PAPER, ITEM)
    if values is not None:
        path.write_text(values)
    if record is not None:
        path.with_suffix(".json").write_text(record)
    refused("table1", catalogue.read, tmp_path, PAPER, ITEM)


def test_what_cannot_be_written_is_one_sentence_and_leaves_what_was_there(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "toy").write_text("a file")
    refused("--out", catalogue.keep, tmp_path / "other", PAPER, ITEM, toy_kept())
    catalogue.keep(tmp_path, PAPER, ITEM, toy_kept())
    before = catalogue.table(tmp_path, PAPER, ITEM).read_bytes()

    def full(path, text, **options):
        path.write_bytes(text.encode()[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    refused("--out", catalogue.keep, tmp_path, PAPER, ITEM, toy_kept(high_published={0: 0.1}))
    assert catalogue.table(tmp_path, PAPER, ITEM).read_bytes() == before


def test_every_line_is_whole_no_cell_stands_twice_and_numbers_keep_their_digits_spread_and_place():
    found = catalogue.published("lacombe", "table2")
    assert found["CTG A", "1DP-C-EXPRIL", ""] == catalogue.Published(
        0.730, pytest.approx(0.0005), 0.037, "Section 4.3, Table 2"
    )
    assert catalogue.published("lacombe", "none") == {}
    text = (files("scenarios") / "papers" / "published.csv").read_text(encoding="utf-8")
    table = csv.DictReader(text.splitlines())
    rows = list(table)
    assert tuple(table.fieldnames or ()) == catalogue.COLUMNS
    for row in rows:
        assert None not in row, row
        assert row["place"], row
        float(row["value"])
        float(row["plus_minus"] or 0)
    cells = Counter((row["paper"], row["item"], row["setting"], row["series"], row["x"]) for row in rows)
    assert [cell for cell, count in cells.items() if count > 1] == []
