"""Figures of items: one where there is an axis of two places or more, and the same for the same values."""

from support.toy_paper import HIGHER, WIDE, printed, toy_item, toy_kept, toy_paper

from scenarios.reproductions.compare import cells
from scenarios.reproductions.pages import draw
from scenarios.reproductions.paper import Kept


def curves():
    parts = [toy_kept(x=x, high_published=WIDE, high_default=HIGHER) for x in ("1", "2")]
    return Kept([one for part in parts for one in part.observations], parts[0].record)


def test_an_axis_makes_a_figure_and_equal_values_equal_files(tmp_path):
    item = toy_item(axis="round", at=("1", "2"))
    found = cells(toy_paper(item), item, curves())
    [path] = draw(item, found, tmp_path / "one")
    [other] = draw(item, found, tmp_path / "two")
    assert path == tmp_path / "one.svg"
    assert path.read_bytes() == other.read_bytes()
    assert b"high, as published" in path.read_bytes()
    assert b"high, default" in path.read_bytes()


def test_a_table_makes_none(tmp_path, monkeypatch):
    printed(monkeypatch, low=0.5)
    item = toy_item()
    assert draw(item, cells(toy_paper(item), item, toy_kept()), tmp_path / "one") == []
    alone = toy_item(axis="round", at=("1",))
    assert draw(alone, cells(toy_paper(alone), alone, toy_kept(x="1", high_published=WIDE)), tmp_path / "one") == []
