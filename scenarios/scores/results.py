"""The file results.csv and its metrics, for people and programs: tidy, one row per measured value.

The file contains no clock time, so that equal runs give equal files. `Unscored` stands in for scores where a scenario
holds out no test rows.
"""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from aggregator.contract.protocol import Metric
from aggregator.releases.model_files import ReleasedFile
from federation.contract.errors import InputError
from federation.contract.files import is_file
from federation.features.feature_map import FeatureMap
from scenarios.scores.scoring import ACCURACY, MSE, Metrics, Scoring, primaries
from scenarios.settings.protocol_options import CONSTANT

COLUMNS = (
    "scenario", "protocol", "variant", "default", "epsilon", "delta", "unit", "split", "noise", "metric", "value",
)  # fmt: skip
NOBODY = "none"  # the unit of what has no guarantee
AIMED = "aimed_epsilon"  # the metric of what a release aimed at, where it keeps another epsilon
REMEDY = "name a directory that `federation run` has written"
_NUMBERS = {"epsilon": float, "delta": float, "value": float, "split": int, "noise": int, "default": int}

Row = dict[str, Any]


def protection(guarantee: Mapping[str, Any]) -> Row:
    """The columns `epsilon`, `delta` and `unit` of a release with this guarantee (`to_dict` of federation.guarantee).

    Without a guarantee the unit is `NOBODY`, and epsilon and delta are what is claimed, or infinity and 0.

    Examples:
        >>> protection({"non_private": True})
        {'epsilon': inf, 'delta': 0.0, 'unit': 'none'}
    """
    if guarantee.get("non_private"):
        epsilon, delta = guarantee.get("claimed", (math.inf, 0.0))
        return {"epsilon": epsilon, "delta": delta, "unit": NOBODY}
    return {name: guarantee[name] for name in ("epsilon", "delta", "unit")}


def missed(epsilon: float, aim: float) -> dict[str, float]:
    """The metric `AIMED` of a release with another epsilon than it aimed at; nothing for one that meets its aim.

    Infinity stands for no guarantee, or no aim.

    Examples:
        >>> missed(4.6, aim=1.0), missed(1.0, aim=1.0)
        ({'aimed_epsilon': 1.0}, {})
    """
    return {} if epsilon == aim or math.isinf(epsilon) or math.isinf(aim) else {AIMED: aim}


def write_results(path: Path, rows: Iterable[Row], swept: Sequence[str]) -> None:
    """Write rows with the fixed columns and one per swept key; replaces the file as a whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*COLUMNS, *swept], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    partial.replace(path)


def read_results(path: Path) -> list[Row]:
    """Rows with epsilon, delta and value as floats, split, noise and default as integers, the rest as text.

    Raises `InputError` when the file is missing or not such a table.
    """
    if not is_file(path):
        raise InputError(f"there is no {path} to read; {REMEDY}")
    try:
        with path.open(newline="", encoding="utf-8") as file:
            table = csv.DictReader(file)
            rows = list(table)
        if missing := set(COLUMNS).difference(table.fieldnames or ()):
            raise ValueError(f"it lacks the columns {', '.join(sorted(missing))}")
        if any(None in row or None in row.values() for row in rows):
            raise ValueError("not every row has a cell for each column")
        return [{name: _NUMBERS.get(name, str)(value) for name, value in row.items()} for row in rows]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; {REMEDY}") from error
    except (ValueError, TypeError, csv.Error) as error:
        raise InputError(f"{path} is not a results table: {error}; {REMEDY}") from error


UNSCORED = "There are no test rows (data.test: 0), so that nothing was scored; the models were learned from all rows."


class Unscored(Scoring):
    """Scoring without any metric, as there is no row that a model has not learned from."""

    def scored(self, models: ReleasedFile[Any], release: int) -> list[Metrics]:
        """An empty entry for each noise draw."""
        return [{} for _ in range(models.draws(release))]

    def pooled(self, feature_map: FeatureMap, classifier: Mapping[str, Any], random: np.random.Generator) -> Metrics:
        """No metric; nothing is trained."""
        return {}


def unscored(rows: Sequence[Row]) -> list[str]:
    """A line where rows say nothing that variants are compared by, as without test rows."""
    measured = {row["metric"] for row in rows}
    return [UNSCORED] if rows and primary(rows).name not in measured else []


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
