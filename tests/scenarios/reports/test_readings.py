"""A run in plain sentences: over how many releases its means are."""

from __future__ import annotations

from scenarios.reports.summary import Spread, VariantSummary
from scenarios.reports.tables import measured
from scenarios.scores.scoring import ACCURACY


def summary(*by_split: list[float]) -> VariantSummary:
    spread = {1.0: Spread.of(dict(enumerate(by_split)))}
    return VariantSummary("soft_vote", "soft_vote", True, "party", 0.0, {}, ACCURACY.name, spread)


def test_releases_and_splits_are_counted_over_all_settings() -> None:
    few, more = summary([0.8]), summary([0.8, 0.7], [0.9])
    assert measured([few]) == "Means are over 1 release at each ε (1 split of the data)."
    assert measured([more]) == "Means are over 3 releases at each ε (2 splits of the data)."
    assert measured([few, more]) == "Means are over 1 to 3 releases at each ε (1 to 2 splits of the data)."


def test_without_a_guarantee_there_is_nothing_to_count() -> None:
    assert measured([]) == "No variant of this run has a guarantee."
