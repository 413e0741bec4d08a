"""Lacombe, Jetley and Sebag 2021: sizes of the data sets, and the share of the best accuracy that is lost."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from federation.contract.errors import InputError
from scenarios.data.catalogue import load
from scenarios.reproductions.paper import EXACT, Observation

_HELD = {"A": 2500, "B": 2500, "C": 5000, "D": 5000, "E": 5000, "CTG A": 700, "CTG B": 700}


def lost(reached: float, best: float) -> float:
    """The share of the best accuracy that is lost."""
    return (best - reached) / best


def sizes(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Rows that answer, and features, of the data sets as they are here."""
    for setting, rows in _HELD.items():
        source = "ctg" if setting in ("CTG A", "CTG B") else f"expril_{setting.lower()}"
        with suppress(InputError):  # cardiotocograms may not be here
            table = load(source, data_dir=data_dir)
            held = len(table.official[0]) if table.official else rows
            yield Observation(setting, "target rows", "published", "", EXACT, held)
            yield Observation(setting, "features", "published", "", EXACT, len(table.columns))
