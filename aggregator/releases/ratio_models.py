"""Released estimators of class ratios."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from aggregator.learners.class_ratios import catalogue
from aggregator.learners.class_ratios.class_means import ClassMeans
from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.releases.released_estimators import ReleasedEstimators
from federation.contract.errors import InputError


class ReleasedRatios(ReleasedEstimators):
    """Estimators as `RatioEstimator.to_arrays` describes them."""

    kind: ClassVar[str] = "class_ratio"
    what: ClassVar[str] = "a released estimator of class ratios"
    predicts: ClassVar[Literal["classes", "numbers", "ratios"]] = "ratios"

    def predicted(self, release: int, draw: int, rows: np.ndarray) -> np.ndarray:
        """Class ratios (C,) of a set of raw rows (n, columns)."""
        return self.estimator(release, draw).predict(self.feature_maps[release].transform(rows))

    def intervals(self, release: int, draw: int, rows: np.ndarray, level: float) -> np.ndarray | None:
        """Intervals (C, 2) of the ratios, of estimators that know their errors."""
        from aggregator.learners.class_ratios.intervals import intervals

        estimator = self.estimator(release, draw)
        if not isinstance(estimator, ClassMeans):
            return None
        try:
            return intervals(estimator, self.feature_maps[release].transform(rows), level=level)
        except InputError:  # too little is known of the errors
            return None

    def estimator(self, release: int, draw: int) -> RatioEstimator:
        """The estimator of one draw; it takes rows behind the release's feature map."""
        return catalogue.load(*self.releases[release][draw])
