"""A linear classifier of rows, learned from bags of rows and the shares of the classes in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self, get_args

import numpy as np

from aggregator.learners.mean_operators.classifier import MeanOperatorClassifier
from aggregator.learners.mean_operators.laplacian_mean_map import GAMMA, laplacian_mean_map
from aggregator.learners.mean_operators.mean_map import mean_map
from aggregator.learners.mean_operators.moments import MomentEstimate
from federation.contract.errors import InputError, nearest_name

Method = Literal["mean_map", "laplacian"]


class ProportionClassifier(MeanOperatorClassifier):
    """Learning from label proportions through the mean operator (Patrini et al. 2015, Algorithm 1).

    The mean operator is estimated from the bags, and any linear-odd loss minimised with it. `method`:

    - "mean_map": a class has the same mean in every bag (`mean_map.mean_map`);
    - "laplacian": its means are alike in bags whose own means are near (`laplacian_mean_map.laplacian_mean_map`, which
      explains `gamma` and `bandwidth`).

    Everything else is as for `MeanOperatorClassifier`; its rule for the regularisation sees what the sampling of bags
    does to the estimate.
    """

    def __init__(
        self,
        loss: str = "logistic",
        regularisation: float | None = None,
        rho: float | None = None,
        tolerance: float | None = None,
        method: Method = "mean_map",
        gamma: float = GAMMA,
        bandwidth: float | None = None,
    ) -> None:
        super().__init__(loss, regularisation, rho, tolerance)
        self.method = method
        self.gamma = gamma
        self.bandwidth = bandwidth

    def fit(self, bags: Sequence[np.ndarray], proportions: np.ndarray, classes: Sequence[Any] = (0, 1)) -> Self:
        """Learn from M bags, arrays (n_i, d), and their label proportions (M, 2), a column for each of `classes`.

        Raises `InputError` for what `mean_map`, `laplacian_mean_map` or the classifier cannot use, equal proportions
        above all, and for an unknown method.
        """
        estimate = self._from_bags(bags, proportions)
        return self.fit_moment(np.concatenate(bags), estimate.moment, estimate.noise_variance, classes)

    def _from_bags(self, bags: Sequence[np.ndarray], proportions: np.ndarray) -> MomentEstimate:
        if self.method == "mean_map":
            return mean_map(bags, proportions)
        if self.method == "laplacian":
            return laplacian_mean_map(bags, proportions, self.gamma, self.bandwidth)
        known = get_args(Method)
        raise InputError(
            f"method must be {' or '.join(known)}, got {self.method!r}{nearest_name(str(self.method), known)}"
        )
