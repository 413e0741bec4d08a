"""Scores released regressions, and the baseline of least squares on all rows, by their errors on test rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregator.releases.estimator_models import ReleasedRegressions
from aggregator.releases.model_files import ReleasedFile
from federation.contract.errors import InputError
from federation.features.feature_map import FeatureMap
from scenarios.scores.scoring import Metrics, Scoring
from scenarios.scores.tasks import MSE


class RegressionScoring(Scoring):
    """Of models that predict numbers: the mean squared error on test rows and their true labels."""

    def scored(self, models: ReleasedFile[Any], release: int) -> list[Metrics]:
        """Mean squared errors; of kinds of models that are not this project's own, by what they say of raw rows."""
        draws = range(models.draws(release))
        if isinstance(models, ReleasedRegressions):
            test = self.tested(models.feature_maps[release])
            return [self._error(models.predict(release, draw, test)) for draw in draws]
        raw = self.tested_rows
        return [self._error(models.predicted(release, draw, raw)) for draw in draws]

    def pooled(self, feature_map: FeatureMap, classifier: Mapping[str, Any], random: np.random.Generator) -> Metrics:
        """Ordinary least squares on all private rows with their true labels, of least norm among equally good ones.

        Predictions are clipped to the declared range, as those of releases are. `classifier` and `random` play no part.
        There is no intercept but what the feature map appends.
        """
        weights = np.linalg.lstsq(*self.held(feature_map), rcond=None)[0]
        lowest, highest = self.table.label_range or (-np.inf, np.inf)
        return self._error(np.clip(self.tested(feature_map) @ weights, lowest, highest))

    def constant(self) -> Metrics:
        """Of the baseline `constant`: the mean label of the private rows, whatever the row; NON-PRIVATE.

        A private model can do worse: nobody who asks privately knows that mean.
        """
        mean = self.table.labels[self.private].mean()
        return self._error(np.full(len(self.test), mean))

    def _error(self, predictions: NDArray[np.float64]) -> Metrics:
        """Of predictions (T,) for the test rows. Raises `InputError` when one of them is not finite."""
        if not np.isfinite(predictions).all():
            raise InputError("a released regression predicts numbers that are not finite: its training has diverged")
        return {MSE.name: float(np.mean((predictions - self.table.labels[self.test]) ** 2))}
