"""By which metric variants are compared, in which direction, and what it is called."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.scores.results import at_round, at_share, heading, in_percent, metric_named, primary, shown
from scenarios.scores.scoring import ACCURACY, L1, MSE, primaries


@pytest.mark.parametrize(
    ("present", "chosen"),
    [
        (["auc", "accuracy", "balanced_accuracy"], ACCURACY),
        (["l1_at_0.1", "l1", "bytes_per_party"], L1),
        (["mse"], MSE),
        (["bytes_per_party"], ACCURACY),
        ([], ACCURACY),
    ],
)
def test_the_primary_metric_is_the_one_that_is_there(present, chosen):
    assert primary([{"metric": name} for name in present]) == chosen


@pytest.mark.parametrize(("metric", "better", "worse"), [(ACCURACY, 0.9, 0.8), (L1, 0.1, 0.2), (MSE, 3.0, 4.0)])
def test_errors_are_better_when_smaller(metric, better, worse):
    assert metric.better(better, worse)
    assert not metric.better(worse, better)
    assert not metric.better(better, better)


def test_names_in_words():
    assert [metric.mean for metric in primaries()] == ["mean accuracy", "mean L1 error", "mean squared error"]
    assert [metric_named(name).label for name in ("accuracy", "balanced_accuracy", "auc", "l1")] == [
        "accuracy", "balanced accuracy", "AUC", "L1 error",
    ]  # fmt: skip
    assert [at_share(share) for share in (0.1, 0.25, 1.0)] == ["l1_at_0.1", "l1_at_0.25", "l1_at_1"]


def test_headings_of_errors_say_which_values_are_good():
    assert [heading(name) for name in ("accuracy", "auc", "mse", "l1")] == [
        "accuracy", "AUC", "mean squared error (lower is better)", "L1 error (lower is better)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.49021, "0.4902"), (127.84, "127.8"), (2913.4, "2913"), (13315503.0, "1.332e+07"), (54321.9, "54322"),
        (0.00012345, "0.0001234"), (1.2e-9, "1.200e-09"), (0.0, "0"), (9.99996, "10.000"), (1234567.0, "1234567"),
        (math.inf, "inf"), (math.nan, "nan"),
    ],
)  # fmt: skip
def test_squared_errors_have_four_digits_of_any_magnitude(value, text):
    assert shown("mse", value) == text


def test_a_deviation_has_the_decimals_of_its_mean():
    assert shown("mse", 0.0123, 0.4902) == "0.0123"
    assert shown("mse", 2.04, 127.8) == "2.0"
    assert shown("mse", 384.2, 2913.0) == "384"
    assert shown("mse", 0.0, 127.8) == "0.0"
    assert shown("mse", 1e3, 2e8) == "1.000e+03"


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.floats(1e-12, 1e12))
def test_what_is_shown_of_a_squared_error_is_the_value(value):
    assert float(shown("mse", value)) == pytest.approx(value, rel=5.1e-4)


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "auc", "l1", "l1_at_0.1"])
def test_other_metrics_have_three_decimals(name):
    assert shown(name, 0.12345, 1e-9) == "0.123"


def test_shares_can_be_shown_in_percent():
    assert [name for name in ("accuracy", "balanced_accuracy", "auc", "l1", "mse") if in_percent(name)] == [
        "accuracy", "balanced_accuracy", "auc",
    ]  # fmt: skip
    assert shown("accuracy", 0.8249, percent=True) == "82.5"
    assert [at_round(number) for number in (1, 12)] == ["accuracy_at_round_1", "accuracy_at_round_12"]


def uneven(beyond):
    """The constant answer where the most frequent class has this much more than half of the rows."""
    named = {"accuracy": 0.5 + beyond, "balanced_accuracy": 0.5}
    return [{"protocol": "constant", "metric": metric, "value": value} for metric, value in named.items()]


@pytest.mark.parametrize(("beyond", "leading"), [(0.05, "accuracy"), (0.2, "balanced_accuracy")])
def test_rare_classes_are_compared_by_balanced_accuracy(beyond, leading):
    rows = [{"protocol": "soft_vote", "metric": "accuracy", "value": 0.9}, *uneven(beyond)]
    assert primary(rows).name == leading
    assert primary(rows[:1]).name == "accuracy"
