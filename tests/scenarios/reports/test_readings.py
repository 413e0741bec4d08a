"""What a run says of its baselines in plain sentences."""

from __future__ import annotations

import math

from scenarios.reports.readings import hints, readings
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


def row(
    variant="soft_vote", default=1, epsilon=1.0, metric="noise_to_signal", value=0.1, unit="party", protocol="soft_vote"
):
    return {
        "protocol": protocol,
        "variant": variant,
        "default": default,
        "epsilon": epsilon,
        "unit": unit,
        "metric": metric,
        "value": value,
    }


def test_nothing_to_say_where_signal_can_show():
    assert hints([row(value=0.99), row(metric="accuracy", value=7.0), row(default=0, value=9.0)]) == []


def test_epsilons_where_noise_exceeds_all_signal_are_named_in_order():
    [line] = hints([row(epsilon=3.0, value=1.2), row(epsilon=0.1, value=12.0), row(epsilon=30.0)])
    assert "soft_vote: the noise exceeds" in line
    assert "epsilon 0.1 (12.0 times), 3 (1.2 times);" in line


def test_a_setting_of_a_sweep_without_the_problem_is_enough():
    assert hints([row(value=5.0), row(value=0.5)]) == []


def test_without_a_default_the_first_variant_that_says_how_noisy_it_is_leads():
    rows = [row("a", 0, metric="accuracy"), row("b", 0, value=3.0), row("c", 0, value=4.0)]
    [line] = hints(rows)
    assert line.startswith("b: ")


def test_an_epsilon_that_is_only_claimed_leads_nowhere():
    [line] = hints([row("published", 1, value=9.0, unit="none"), row("kept", 0, value=3.0)])
    assert line.startswith("kept: ")
    assert hints([row(value=9.0, unit="none")]) == []


def test_what_would_help_is_the_protocols():
    [line] = hints([row("class_ratio", value=3.0, unit="label", protocol="class_ratio")])
    assert "larger bags" in line
    assert "dimensions" not in line


def noise_norm(**known):
    return row("mean_operator", metric="noise_norm", unit="label", protocol="mean_operator", **known)


def test_noise_beyond_the_largest_mean_operator_is_too_much():
    rows = [noise_norm(epsilon=0.1, value=1.1), noise_norm(epsilon=0.3, value=0.9)]
    [line] = hints(rows)
    assert line.startswith("mean_operator: the noise exceeds the largest possible signal at epsilon 0.1 (1.1 times); ")
    assert "summation: secure" in line
    assert hints(rows[1:]) == []
    assert len(hints([*rows, row(value=9.0)])) == 2  # each of its own kind
