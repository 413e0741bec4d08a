"""A run in plain sentences: what its leading variant reached, and what is ahead of it."""

from __future__ import annotations

import math

from scenarios.reports.readings import readings
from scenarios.reports.summary import Spread, VariantSummary
from scenarios.scores.results import NOBODY
from scenarios.scores.tasks import ACCURACY


def summary(protocol: str, epsilon: float, value: float, default: bool = True) -> VariantSummary:
    unit = NOBODY if math.isinf(epsilon) else "label"
    spread = {epsilon: Spread.of({0: [value], 1: [value]})}
    return VariantSummary(protocol, protocol, default, unit, 0.0, {}, ACCURACY.name, spread)


def test_the_leading_variant_has_its_values_and_a_better_one_is_named() -> None:
    leading, ahead = summary("mean_operator", 1.0, 0.8), summary("error_marginals", 1.0, 0.9, default=False)
    [(place, text)] = readings([leading, ahead, summary("pooled", math.inf, 0.95, default=False)], ACCURACY)
    assert place == ""
    assert text.startswith("The default variant, mean_operator, reaches a mean accuracy of 0.800 at ε\u00a0=\u00a01,")
    assert text.endswith("Ahead of it is error_marginals with 0.900 at ε\u00a0=\u00a01.")


def test_without_a_guarantee_there_is_nothing_to_read() -> None:
    assert readings([summary("pooled", math.inf, 0.9)], ACCURACY) == [("", "No variant of this run has a guarantee.")]
