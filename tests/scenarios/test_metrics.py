"""By which metric variants are compared, in which direction, and what it is called."""

import pytest

from scenarios.metrics import ACCURACY, L1, MSE, PRIMARY, at_share, label, primary


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
    assert [metric.mean for metric in PRIMARY] == ["mean accuracy", "mean L1 error", "mean squared error"]
    assert [label(name) for name in ("accuracy", "balanced_accuracy", "auc", "l1")] == [
        "accuracy", "balanced accuracy", "AUC", "L1 error",
    ]  # fmt: skip
    assert [at_share(share) for share in (0.1, 0.25, 1.0)] == ["l1_at_0.1", "l1_at_0.25", "l1_at_1"]
