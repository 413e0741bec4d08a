"""The kind of model that it releases."""

from typing import ClassVar, Literal

import numpy as np

from aggregator.releases.models import Described, ReleasedEstimators


class NearestMeans(ReleasedEstimators):
    """A mean of either class behind the feature map; a row is of the class whose mean is nearer."""

    kind: ClassVar[str] = "nearest_mean"
    what: ClassVar[str] = "a nearest mean"
    predicts: ClassVar[Literal["classes", "numbers", "ratios"]] = "classes"

    def predicted(self, release: int, draw: int, rows: np.ndarray) -> np.ndarray:
        """Class codes (n,) of raw rows."""
        means = self.releases[release][draw][1]["means"]
        features = self.feature_maps[release].transform(rows)
        return np.argmin(((features[:, None] - means) ** 2).sum(axis=2), axis=1)


def described(means: np.ndarray) -> Described:
    """Means (2, d) as a released estimator."""
    return {"learner": "nearest mean"}, {"means": means}
