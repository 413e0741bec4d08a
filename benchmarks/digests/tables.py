"""Generated tables with all that a table can have: numbers, texts, persons, sites, months and two classes."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

_COLUMNS = ("a", "b", "c", "d", "note", "person", "site", "month", "outcome")
_WORDS = ("red", "green", "blue", "old", "new", "big", "small")
_MONTHS, _SITES, _PUBLIC = 4, ("north", "south", "west"), 120


def write_tables(folder: Path) -> None:
    """Write patients.csv, its numbers as numbers.csv, its public rows as public.csv, those of each site as SITE.csv."""
    rng = np.random.default_rng(0)
    rows: list[list[object]] = []
    for number in range(480):
        ill = int(rng.random() < 0.5)
        numbers = [f"{value:.4f}" for value in rng.normal(size=4) + ill]
        note = " ".join([*rng.choice(_WORDS, 3), "good" if ill else "bad"])
        place, month = _SITES[number // 6 % len(_SITES)], 1 + number * _MONTHS // 480
        rows.append([*numbers, note, number // 6, place, f"2023-{month:02d}", ("ill", "well")[ill]])
    _write(folder / "patients.csv", rows)
    _write(folder / "numbers.csv", [[*row[:4], int(row[-1] == "ill")] for row in rows], (*_COLUMNS[:4], "outcome"))
    _write(folder / "public.csv", rows[:_PUBLIC])
    for site in _SITES:
        _write(folder / f"{site}.csv", [row for row in rows[_PUBLIC:] if site in row])


def _write(path: Path, rows: list[list[object]], columns: Sequence[str] = _COLUMNS) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
