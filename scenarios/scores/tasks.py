"""The tasks that releases are scored by, this project's own and those of other packages."""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any

from aggregator.contract.protocol import Metric, Task
from aggregator.contract.registry import TASKS, task
from federation.contract.errors import InputError
from federation.contract.plugins import installed

if TYPE_CHECKING:
    from scenarios.scores.scoring import Scoring

ACCURACY = Metric("accuracy", "accuracies", True, "accuracy", (0.0, 1.0))
L1 = Metric("l1", "L1 errors", False, "L1 error", (0.0, 2.0))
MSE = Metric("mse", "squared errors", False, "mean squared error", (0.0, math.inf))
CLASSIFICATION = Task(
    "classification",
    "classes",
    ACCURACY,
    "scenarios.scores.classification_scoring:ClassificationScoring",
    frozenset({"pooled", "individual", "constant"}),
)
CLASS_RATIO = Task(
    "class_ratio",
    "classes",
    L1,
    "scenarios.scores.ratio_scoring:RatioScoring",
    frozenset({"pooled", "constant"}),
    targets=True,
)
REGRESSION = Task(
    "regression",
    "real",
    MSE,
    "scenarios.scores.regression_scoring:RegressionScoring",
    frozenset({"pooled", "constant"}),
)


def primaries() -> list[Metric]:
    """The metrics by which releases are compared, of all tasks that can be used; this project's own first."""
    known = [CLASSIFICATION, CLASS_RATIO, REGRESSION]
    for name in installed(TASKS):
        try:
            known.append(task(name))
        except InputError:  # as whoever uses it will be told
            continue
    return list(dict.fromkeys(one.metric for one in known))


def scoring(known: Task, *arguments: Any) -> Scoring:
    """What scores the releases of a world of this task: its class, called with these arguments (`scoring.Scoring`)."""
    module, _, attribute = known.scoring.partition(":")
    made: Scoring = getattr(import_module(module), attribute)(*arguments)
    return made
