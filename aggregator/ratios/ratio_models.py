"""Released estimators of class ratios."""

from __future__ import annotations

from typing import ClassVar

from aggregator.ratios import catalogue
from aggregator.ratios.estimator import RatioEstimator
from aggregator.released.released_estimators import ReleasedEstimators


class ReleasedRatios(ReleasedEstimators):
    """Estimators as `RatioEstimator.to_arrays` describes them."""

    kind: ClassVar[str] = "class_ratio"
    what: ClassVar[str] = "a released estimator of class ratios"

    def estimator(self, release: int, draw: int) -> RatioEstimator:
        """The estimator of one draw; it takes rows behind the release's feature map."""
        return catalogue.load(*self.releases[release][draw])
