"""The tasks that protocols are for, and the metrics that their releases are judged by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scenarios.results import Row

CLASSIFICATION, CLASS_RATIO = "classification", "class_ratio"
AT_SHARE = "l1_at_"  # followed by a class share: the L1 error on the target sets with that share
_LABELS = {"auc": "AUC", "l1": "L1 error", "mse": "mean squared error"}


@dataclass(frozen=True)
class Metric:
    """A metric by which variants are compared: `name` in results.csv, `several` of them in a sentence."""

    name: str
    several: str
    higher_is_better: bool

    @property
    def mean(self) -> str:
        """The mean over releases, in a sentence."""
        return f"mean {label(self.name).removeprefix('mean ')}"

    def better(self, value: float, other: float) -> bool:
        """Whether a value is better than another."""
        return value > other if self.higher_is_better else value < other


ACCURACY = Metric("accuracy", "accuracies", True)
L1 = Metric("l1", "L1 errors", False)
MSE = Metric("mse", "squared errors", False)
PRIMARY = (ACCURACY, L1, MSE)  # of classification, class ratios and regression


def label(name: str) -> str:
    """A metric's name in words, as on the axis of a figure."""
    return _LABELS.get(name, name.replace("_", " "))


def primary(rows: Iterable[Row]) -> Metric:
    """The metric by which variants are compared: the first of `PRIMARY` that rows have, accuracy if they have none."""
    present = {row["metric"] for row in rows}
    return next((metric for metric in PRIMARY if metric.name in present), ACCURACY)


def at_share(share: float) -> str:
    """The name of the L1 error on target sets with one class share."""
    return f"{AT_SHARE}{share:g}"
