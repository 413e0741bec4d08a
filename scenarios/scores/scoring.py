"""The interface of scoring, and the tasks by which releases are scored, of this project and of other packages."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregator.contract.protocol import Metric, Task
from aggregator.contract.registry import TASKS, model, task
from aggregator.releases.model_files import ReleasedFile, head
from federation.contract.errors import InputError
from federation.contract.plugins import installed
from federation.contract.randomness import digest
from federation.features.feature_map import FeatureMap
from scenarios.data.tables import Table

Metrics = dict[str, float]
_MOST_CELLS = 1 << 28  # of rows that are read when they are drawn: 2 GiB
_KEPT_CELLS = 1 << 26  # of test rows that are kept for all maps: 512 MiB


class Scoring(ABC):
    """Scores on test rows of one world, which neither app ever sees.

    `private` (n,) and `test` (T,) are indices into the rows of `table`. A task names its subclass, which is called with
    these, and with target sets where the task has some.
    """

    def __init__(self, table: Table, private: NDArray[np.int64] | range, test: NDArray[np.int64]) -> None:
        self.table, self.private, self.test = table, private, test
        self._tested: dict[str, NDArray[np.float64]] = {}
        self._begun: dict[str, NDArray[np.float64]] = {}

    def releases(self, path: Path) -> Iterator[tuple[Mapping[str, Any], list[Metrics]]]:
        """The guarantee of each release in a file, and the metrics of its noise draws. Raises `InputError`."""
        kind, _ = head(path)
        models = model(kind).load(path)
        for release, guarantee in enumerate(models.guarantees):
            yield guarantee, self.scored(models, release)

    @abstractmethod
    def scored(self, models: ReleasedFile[Any], release: int) -> list[Metrics]:
        """The metrics of the noise draws of one release. Raises `InputError`."""

    @abstractmethod
    def pooled(self, feature_map: FeatureMap, classifier: Mapping[str, Any], random: np.random.Generator) -> Metrics:
        """What the scenario's classifier can do with all private rows and labels, without any privacy.

        `feature_map` is one of `scenarios.scores.classification_scoring`.

        The rows are those that the parties hold: nobody drops out or attacks.
        """

    def held(
        self, feature_map: FeatureMap, private: NDArray[np.int64] | range | None = None
    ) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Private rows (n, D) behind a map, and their labels (n,); by default all of them."""
        private = self.private if private is None else private
        if self.table.drawn and len(private) * len(self.table.columns) > _MOST_CELLS:
            raise InputError(
                f"the {len(private)} private rows do not fit into memory together; give baselines: false, and "
                "list the others, constant and individual, among the protocols"
            )
        return self.table.behind(feature_map, private), self.table.labels[private]

    def tested(self, feature_map: FeatureMap) -> NDArray[np.float64]:
        """The test rows (T, D) behind a map; each map is applied once."""
        name = digest(*feature_map.to_arrays())
        if name not in self._tested:
            if len(self.test) * len(self.table.columns) <= _KEPT_CELLS:
                first, further = feature_map.parted()
                self._tested[name] = further.transform(self._through(first, self.tested_rows))
            else:
                self._tested[name] = self.table.behind(feature_map, self.test)
        return self._tested[name]

    def _through(self, first: FeatureMap, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Raw test rows through what maps of different dimensions begin with; the latest is kept."""
        name = digest(*first.to_arrays())
        if name not in self._begun:
            self._begun = {name: first.transform(rows) if first.steps else rows}
        return self._begun[name]

    @cached_property
    def tested_rows(self) -> NDArray[np.float64]:
        """The raw test rows (T, columns), read once for all maps."""
        return self.table.rows(self.test)


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
    "scenarios.scores.number_scoring:RatioScoring",
    frozenset({"pooled", "constant"}),
    targets=True,
)
REGRESSION = Task(
    "regression",
    "real",
    MSE,
    "scenarios.scores.number_scoring:RegressionScoring",
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
