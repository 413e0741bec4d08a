"""What papers print: scenarios/papers/published.csv, one line for each number."""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files

COLUMNS = ("paper", "item", "setting", "series", "x", "value", "plus_minus", "place")
Key = tuple[str, str, str]  # setting, series, x


@dataclass(frozen=True)
class Published:
    """A number as printed, in our units; `half` is half of a unit of its last digit, and `place` where it stands.

    `plus_minus` is what stands behind its plus-minus sign, None where nothing does.
    """

    value: float
    half: float
    plus_minus: float | None
    place: str


def published(paper: str, item: str) -> dict[Key, Published]:
    """The numbers of an item by setting, series and place on the axis."""
    found = {}
    for row in _rows():
        if (row["paper"], row["item"]) == (paper, item):
            spread = float(row["plus_minus"]) if row["plus_minus"] else None
            key = (row["setting"], row["series"], row["x"])
            found[key] = Published(float(row["value"]), _half(row["value"]), spread, row["place"])
    return found


def papers_and_items() -> set[tuple[str, str]]:
    """Of which papers and items numbers are known."""
    return {(row["paper"], row["item"]) for row in _rows()}


@functools.cache
def _rows() -> Iterable[dict[str, str]]:
    source = files("scenarios") / "papers" / "published.csv"
    return tuple(csv.DictReader(source.read_text(encoding="utf-8").splitlines()))


def _half(text: str) -> float:
    """Half of a unit of the last digit of a number.

    Examples:
        >>> _half("0.743"), _half("0.18"), _half("4.5e-2")
        (0.0005, 0.005, 0.0005)
    """
    digits, _, power = text.lower().partition("e")
    decimals = len(digits.partition(".")[2])
    return 0.5 * 10.0 ** (int(power or 0) - decimals)
