"""The page of a paper has tables, reasons and figures, and says how all of it was made."""

import re

from support.toy_paper import CLAIM, HIGHER, OTHER, WIDE, printed, toy_item, toy_kept, toy_paper

from scenarios.reproductions.compare import cells
from scenarios.reproductions.pages import draw, page, write
from scenarios.reproductions.paper import Kept, keep


def test_a_page_has_the_table_the_reasons_and_the_command(tmp_path, monkeypatch):
    printed(monkeypatch, low=0.5, high=0.84)
    item = toy_item(reasons=(OTHER,), claims=(CLAIM,), about="What it is.")
    text = page(toy_paper(item), {"table1": toy_kept()}, tmp_path)
    assert text.startswith("# Nobody 2000: Toys\n\nOf toys.\n")
    assert "## Table 1: of a toy (Section 1)\n\nWhat it is.\n\n- **high**: what is \\*high\\*\n" in text
    assert "| one | low | 0.500 ± 0.020 | 0.730 \\[0.689, 0.771\\] | no | - | - | 1 |" in text
    assert "1. *other data*: toys differ" in text
    assert "+0.115" in text
    assert "`federation reproduce toy --only table1` (version 0.1.0, seed 1); splits: one 4." in text
    assert re.search(r"table1\.csv.*toy/table1\.csv", text)


def curves():
    parts = [toy_kept(x=x, high_published=WIDE, high_default=HIGHER) for x in ("1", "2")]
    return Kept([one for part in parts for one in part.observations], parts[0].record)


def test_figures_are_drawn_beside_the_kept_values_and_what_was_not_measured_says_how_it_would_be(tmp_path):
    assert re.search(r"--only.*table1", page(toy_paper(toy_item()), {}, tmp_path))
    item = toy_item(axis="round", at=("1", "2"))
    keep(tmp_path, toy_paper(item), item, curves())
    path = write(toy_paper(item), tmp_path)
    assert path == tmp_path / "toy.md"
    assert re.search(r"1.*toy/table1\.svg", path.read_text())
    assert (tmp_path / "toy" / "table1.svg").exists()


def test_an_axis_makes_a_figure_equal_values_equal_files_and_a_table_none(tmp_path, monkeypatch):
    item = toy_item(axis="round", at=("1", "2"))
    found = cells(toy_paper(item), item, curves())
    [path] = draw(item, found, tmp_path / "one")
    [other] = draw(item, found, tmp_path / "two")
    assert path == tmp_path / "one.svg"
    assert path.read_bytes() == other.read_bytes()
    assert b"high, as published" in path.read_bytes()
    assert b"high, default" in path.read_bytes()
    printed(monkeypatch, low=0.5)
    item = toy_item()
    assert draw(item, cells(toy_paper(item), item, toy_kept()), tmp_path / "one") == []
    alone = toy_item(axis="round", at=("1",))
    assert draw(alone, cells(toy_paper(alone), alone, toy_kept(x="1", high_published=WIDE)), tmp_path / "one") == []
