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
            return features @ arrays["weights"]
        if description["learner"] == BagNetwork.name:
            return BagNetwork.from_arrays(description, arrays).predict(features)
        raise InputError(f"the learner '{description['learner']}' of a released regression is not known; update")


def linear(weights: np.ndarray) -> Described:
    """The model that predicts x'w, w (d,).

    Examples:
        >>> linear(np.array([1.0, 2.0]))
        ({'learner': 'linear'}, {'weights': array([1., 2.])})
    """
    return {"learner": "linear"}, {"weights": weights}


def neural(network: BagNetwork) -> Described:
    """A fitted network."""
    description, arrays = network.to_arrays()
    return {**description, "learner": BagNetwork.name}, arrays
