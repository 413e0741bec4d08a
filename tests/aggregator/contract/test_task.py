"""Metrics by which variants are compared, and what a task is unless it says otherwise."""

from __future__ import annotations

import pytest

from aggregator.contract.protocol import Metric, Task

ACCURACY = Metric("accuracy", "accuracies", True, "accuracy")
ERROR = Metric("mse", "errors", False, "mean squared error")


@pytest.mark.parametrize(("metric", "expected"), [(ACCURACY, True), (ERROR, False)])
def test_the_better_of_two_values_is_the_higher_or_the_lower_one(metric, expected):
    assert metric.better(0.9, 0.1) == expected
    assert metric.better(0.1, 0.9) != expected


@pytest.mark.parametrize("metric", [ACCURACY, ERROR])
@pytest.mark.parametrize("other", [0.5, float("nan")])
def test_no_value_is_better_than_itself_or_than_what_is_no_number(metric, other):
    assert not metric.better(0.5, other)
    assert not metric.better(other, 0.5)


def test_the_mean_of_a_mean_is_said_once():
    assert (ACCURACY.mean, ERROR.mean) == ("mean accuracy", "mean squared error")


def test_a_task_has_the_pooled_baseline_and_no_targets_unless_it_says_so():
    task = Task("ranking", "real", ERROR, "somewhere:score")
    assert (task.baselines, task.targets) == ({"pooled"}, False)
