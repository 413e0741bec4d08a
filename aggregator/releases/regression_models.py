"""Released regressions, linear or neural."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from aggregator.learners.bag_regression.network import BagNetwork
from aggregator.releases.released_estimators import Described, ReleasedEstimators
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
