"""Released files of class-ratio estimators and of regressions, linear or neural."""

from typing import ClassVar, Literal

import numpy as np

from aggregator.learners.bag_regression.network import BagNetwork
from aggregator.learners.class_ratios import catalogue
from aggregator.learners.class_ratios.class_means import ClassMeans
from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.releases.models import Described, ReleasedEstimators
from federation.contract.errors import InputError


class ReleasedRegressions(ReleasedEstimators):
    """Linear models as `linear` describes them, networks as `neural` does."""

    kind: ClassVar[str] = "regression"
    what: ClassVar[str] = "a released regression"
    predicts: ClassVar[Literal["classes", "numbers", "ratios"]] = "numbers"

    def predicted(self, release: int, draw: int, rows: np.ndarray) -> np.ndarray:
        """Labels (n,) of raw rows. Raises `InputError` for an unknown learner."""
        return self.predict(release, draw, self.feature_maps[release].transform(rows))

    def predict(self, release: int, draw: int, features: np.ndarray) -> np.ndarray:
        """Labels (n,) of rows behind the release's feature map (n, d). Raises `InputError` for an unknown learner."""
        description, arrays = self.releases[release][draw]
        if description["learner"] == "linear":
            found = features @ arrays["weights"]
            return found if "range" not in description else np.clip(found, *description["range"])
        if description["learner"] == BagNetwork.name:
            return BagNetwork.from_arrays(description, arrays).predict(features)
        raise InputError(f"the learner '{description['learner']}' of a released regression is not known; update")


def linear(weights: np.ndarray, label_range: tuple[float, float] | None = None) -> Described:
    """The model that predicts x'w, w (d,), or the end of the range of labels that is nearer where that lies beyond it.

    To clip a prediction to an interval that holds the label never makes its error larger.

    Examples:
        >>> linear(np.array([1.0, 2.0]), (0.0, 5.0))
        ({'learner': 'linear', 'range': [0.0, 5.0]}, {'weights': array([1., 2.])})
    """
    clipped = {} if label_range is None else {"range": [float(end) for end in label_range]}
    return {"learner": "linear", **clipped}, {"weights": weights}


def neural(network: BagNetwork) -> Described:
    """A fitted network."""
    description, arrays = network.to_arrays()
    return {**description, "learner": BagNetwork.name}, arrays


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
        from aggregator.learners.class_ratios.drift import intervals

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
