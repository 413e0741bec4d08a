"""The metrics that releases are judged by, and how their values are shown."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import fmean

from aggregator.contract.protocol import Metric
from scenarios.scores.results import Row
from scenarios.scores.tasks import ACCURACY, MSE, primaries
from scenarios.settings.protocol_options import CONSTANT

AT_SHARE = "l1_at_"  # followed by a class share: the L1 error on the target sets with that share
AT_ROUND = "accuracy_at_round_"  # followed by a number of rounds: the accuracy of what they have learned
CONSTANT_CLASS = "constant_class"  # of the baseline constant: the position of the class that it always says
BALANCED = "balanced_accuracy"
_UNEVEN = 0.1  # of the most frequent class beyond an even share: then accuracy says little
_SHARES = (ACCURACY.name, BALANCED, "auc")
_LABELS = {"auc": "AUC"}
_DIGITS = 4  # of a squared error
_LEAST_MAGNITUDE, _MOST_MAGNITUDE = -4, 6  # powers of ten that are written without an exponent


def metric_named(name: str) -> Metric:
    """The primary metric of that name; of any other, such as `auc`, more is better."""
    bounds = (0.0, 1.0) if name in _SHARES else (-math.inf, math.inf)
    other = Metric(name, f"{name}s", True, _LABELS.get(name, name.replace("_", " ")), bounds)
    return next((metric for metric in primaries() if metric.name == name), other)


def heading(name: str) -> str:
    """A metric's name above its values; of an error it says which of them are good.

    Examples:
        >>> heading("balanced_accuracy"), heading("l1")
        ('balanced accuracy', 'L1 error (lower is better)')
    """
    metric = metric_named(name)
    return metric.label if metric.higher_is_better else f"{metric.label} (lower is better)"


def in_percent(name: str) -> bool:
    """Whether a metric is a share, which papers give in percent."""
    return name in _SHARES


def shown(name: str, value: float, beside: float | None = None, *, percent: bool = False) -> str:
    """A value of a metric as tables and sentences show it: three decimals, of a squared error four digits.

    Squared errors have the unit of the labels squared, and so any magnitude. `beside` is another value whose decimals
    this one takes: that of a mean for its deviation. `percent`: a hundred times as much, with one decimal.

    Examples:
        >>> shown("accuracy", 0.82345), shown("accuracy", 0.82345, percent=True), shown("mse", 13315503.0)
        ('0.823', '82.3', '1.332e+07')
    """
    if percent:
        return f"{100 * value:.1f}"
    if name != MSE.name:
        return f"{value:.3f}"
    size = abs(value if beside is None else beside)
    if size == 0 or not math.isfinite(size):
        return f"{value:.4g}"
    magnitude = math.floor(math.log10(size))
    if not _LEAST_MAGNITUDE <= magnitude <= _MOST_MAGNITUDE:
        return f"{value:.3e}"
    return f"{value:.{max(0, _DIGITS - 1 - magnitude)}f}"


def primary(rows: Iterable[Row]) -> Metric:
    """The metric by which variants are compared: the first primary one that rows have, accuracy if they have none.

    Where one class has much more than an even share of rows, as the baseline `constant` tells, it is balanced accuracy:
    accuracy is high there for whoever knows nothing.

    Examples:
        >>> primary([{"protocol": "pooled", "metric": name} for name in ("bytes_per_party", "mse")]).label
        'mean squared error'
    """
    present: set[str] = set()
    constant: dict[str, list[float]] = {ACCURACY.name: [], BALANCED: []}
    for row in rows:
        present.add(row["metric"])
        if row.get("protocol") == CONSTANT and row["metric"] in constant:
            constant[row["metric"]].append(row["value"])
    found = next((metric for metric in primaries() if metric.name in present), ACCURACY)
    if found is ACCURACY and constant[BALANCED]:
        beyond = fmean(constant[ACCURACY.name]) - fmean(constant[BALANCED])
        return metric_named(BALANCED) if beyond > _UNEVEN else found
    return found


def at_share(share: float) -> str:
    """The name of the L1 error on target sets with one class share."""
    return f"{AT_SHARE}{share:g}"


def at_round(number: int) -> str:
    """The name of the accuracy after some rounds, 1 or more."""
    return f"{AT_ROUND}{number}"
