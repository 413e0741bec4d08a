"""Scores released regressions, and the baseline of least squares on all rows, by their errors on test rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.contract.registry import model
from aggregator.releases.model_files import ReleasedFile, head
from aggregator.releases.regression_models import ReleasedRegressions
from federation.contract.digest import digest
from federation.contract.errors import InputError
from federation.features.feature_map import FeatureMap
from scenarios.scores.scored import Metrics
from scenarios.scores.tasks import MSE
from scenarios.simulated.simulation import Split


class RegressionScoring:
    """`scored.Scoring` of models that predict numbers: the mean squared error on test rows and their true labels."""

    def __init__(self, split: Split) -> None:
        self._split = split
        self._tests: dict[str, np.ndarray] = {}

    def releases(self, path: Path) -> Iterator[tuple[Mapping[str, Any], list[Metrics]]]:
        """The guarantee of each release in a file, and the metrics of its noise draws. Raises `InputError`."""
        kind, _ = head(path)
        if kind != ReleasedRegressions.kind:
            yield from self._others(model(kind).load(path))
            return
        models = ReleasedRegressions.load(path)
        for release, (guarantee, feature_map) in enumerate(zip(models.guarantees, models.feature_maps, strict=True)):
            test = self._test(feature_map)
            draws = range(models.draws(release))
            yield guarantee, [self._error(models.predict(release, draw, test)) for draw in draws]

    def _others(self, models: ReleasedFile[Any]) -> Iterator[tuple[Mapping[str, Any], list[Metrics]]]:
        """Of a kind of models that gives raw rows their numbers."""
        raw = self._split.table.rows(self._split.cut.test)
        for release, guarantee in enumerate(models.guarantees):
            draws = range(models.draws(release))
            yield guarantee, [self._error(models.predicted(release, draw, raw)) for draw in draws]

    def pooled(self, feature_map: FeatureMap, classifier: Mapping[str, Any], random: np.random.Generator) -> Metrics:
        """Ordinary least squares on all private rows with their true labels, of least norm among equally good ones.

        `classifier` and `random` play no part. There is no intercept but what the feature map appends.
        """
        table, held = self._split.table, self._split.cut.order
        rows = feature_map.transform(table.rows(held))
        weights = np.linalg.lstsq(rows, table.labels[held], rcond=None)[0]
        return self._error(self._test(feature_map) @ weights)

    def _error(self, predictions: np.ndarray) -> Metrics:
        """Of predictions (T,) for the test rows. Raises `InputError` when one of them is not finite."""
        if not np.isfinite(predictions).all():
            raise InputError("a released regression predicts numbers that are not finite: its training has diverged")
        labels = self._split.table.labels[self._split.cut.test]
        return {MSE.name: float(np.mean((predictions - labels) ** 2))}

    def _test(self, feature_map: FeatureMap) -> np.ndarray:
        """The test rows (T, D) behind a map; each map is applied once."""
        name = digest(*feature_map.to_arrays())
        if name not in self._tests:
            self._tests[name] = feature_map.transform(self._split.table.rows(self._split.cut.test))
        return self._tests[name]
