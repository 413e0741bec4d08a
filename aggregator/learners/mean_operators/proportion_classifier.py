"""A linear classifier of rows, learned from bags of rows and the shares of the classes in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np

from aggregator.learners.inputs.feature_names import remember_names
from aggregator.learners.inputs.validation import require_one_of
from aggregator.learners.mean_operators.classifier import MeanOperatorClassifier
from aggregator.learners.mean_operators.mean_map import GAMMA, laplacian_mean_map, mean_map

Method = Literal["mean_map", "laplacian"]


@dataclass(eq=False, repr=False)
class ProportionClassifier(MeanOperatorClassifier):
    """Learning from label proportions through the mean operator (Patrini et al. 2015, Algorithm 1).

    The mean operator is estimated from the bags, and any linear-odd loss minimised with it.

    Parameters, besides those of `MeanOperatorClassifier`:
        method: "mean_map" where a class has the same mean in every bag (`mean_map.mean_map`), "laplacian" where its
            means are alike in bags whose own means are near (`mean_map.laplacian_mean_map`).
        gamma: > 0, of the Laplacian: how smooth class means are from bag to bag.
        bandwidth: > 0, of the Laplacian, in units of the rows; None for the median distance between the bags' means.

    The rule for the regularisation sees what the sampling of bags does to the estimate.

    Attributes: those of `MeanOperatorClassifier`.

    Examples:
        >>> rng, shares = np.random.default_rng(0), np.array([[0.8, 0.2], [0.5, 0.5], [0.1, 0.9]])
        >>> labels = [(np.arange(300) < 300 * share).astype(int) for share in shares[:, 1]]
        >>> bags = [np.column_stack([y - 0.5 + rng.normal(0, 0.2, 300), rng.normal(0, 0.2, 300)]) for y in labels]
        >>> ProportionClassifier().fit(bags, shares).score(np.concatenate(bags), np.concatenate(labels))
        0.99
    """

    method: Method = "mean_map"
    gamma: float = GAMMA
    bandwidth: float | None = None

    def fit(self, bags: Sequence[np.ndarray], proportions: np.ndarray, classes: Sequence[Any] = (0, 1)) -> Self:
        """Learn from M bags, arrays (n_i, d), and their label proportions (M, 2), a column for each of `classes`.

        Raises `InputError` for what `mean_map`, `laplacian_mean_map` or the classifier cannot use, equal proportions
        above all, and for an unknown method; `ValueError` for data frames whose columns are not those of the first.
        """
        require_one_of("method", self.method, get_args(Method))
        if self.method == "mean_map":
            estimate = mean_map(bags, proportions)
        else:
            estimate = laplacian_mean_map(bags, proportions, self.gamma, self.bandwidth)
        self.fit_moment(np.concatenate(bags), estimate.moment, estimate.noise_variance, classes)
        remember_names(self, bags)
        return self
