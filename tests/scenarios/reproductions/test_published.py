"""What papers print: one table, each number once, with its digits."""

import csv
from collections import Counter
from importlib.resources import files

import pytest

from scenarios.reproductions.paper import COLUMNS, Published, papers_and_items, published


def test_numbers_keep_their_digits_spread_and_place():
    found = published("lacombe", "table2")
    assert found["CTG A", "1DP-C-EXPRIL", ""] == Published(0.730, pytest.approx(0.0005), 0.037, "Section 4.3, Table 2")
    assert published("lacombe", "none") == {}
    assert ("lacombe", "table2") in papers_and_items()


def test_every_line_is_whole_and_no_cell_stands_twice():
    text = (files("scenarios") / "papers" / "published.csv").read_text(encoding="utf-8")
    table = csv.DictReader(text.splitlines())
    rows = list(table)
    assert tuple(table.fieldnames or ()) == COLUMNS
    for row in rows:
        assert None not in row, row
        assert row["place"], row
        float(row["value"])
        float(row["plus_minus"] or 0)
    cells = Counter((row["paper"], row["item"], row["setting"], row["series"], row["x"]) for row in rows)
    assert [cell for cell, count in cells.items() if count > 1] == []
