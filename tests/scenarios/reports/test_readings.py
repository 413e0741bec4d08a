"""What a run says of its baselines in plain sentences."""

from __future__ import annotations

import math

from scenarios.reports.readings import readings
from scenarios.reports.summary import Spread, VariantSummary
from scenarios.scores.results import NOBODY
from scenarios.scores.tasks import ACCURACY, MSE


def summary(protocol: str, epsilon: float, value: float) -> VariantSummary:
    unit = NOBODY if math.isinf(epsilon) else "label"
    spread = {epsilon: Spread.of({0: [value], 1: [value]})}
    return VariantSummary(protocol, protocol, unit == "label", unit, 0.0, {}, ACCURACY.name, spread)


def test_every_baseline_has_its_sentence() -> None:
    leading = summary("mean_operator", 1.0, 0.8)
    baselines = [summary(name, math.inf, value) for name, value in (("pooled", 0.9), ("constant", 0.55))]
    [(place, text)] = readings([leading, *baselines], ACCURACY)
    assert place == ""
    assert "all their rows together (pooled, NON-PRIVATE) reaches 0.900." in text
    said = "most frequent class of every row (constant, NON-PRIVATE) reaches 0.550;"
    assert said in text
    assert said not in readings([leading, baselines[0]], ACCURACY)[0][1]


def test_a_regression_is_beside_the_mean_label_that_it_cannot_know() -> None:
    leading, constant = summary("label_sums", 1.0, 7.0), summary("constant", math.inf, 5.0)
    [(_, text)] = readings([leading, constant], MSE)
    said = "To say the mean label of every row, which no private model knows (constant, NON-PRIVATE) reaches 5"
    assert said in text
    assert "label_sums is not better" in text
