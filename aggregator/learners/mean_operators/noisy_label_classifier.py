"""A linear classifier learned from labels that were flipped at random, by probabilities that are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggregator.learners.mean_operators.classifier import MeanOperatorClassifier
from aggregator.learners.mean_operators.moments import MomentEstimate, from_noisy_labels, from_randomised_response
from federation.contract.errors import InputError


@dataclass(eq=False, repr=False)
class NoisyLabelClassifier(MeanOperatorClassifier):
    """Learning from noisy labels through an unbiased mean operator (Patrini et al. 2015; Natarajan et al. 2013).

    Parameters, besides those of `MeanOperatorClassifier`, which it is without noise:
        flipped_positive: probability, from 0, that a label of the second class came out as the first.
        flipped_negative: that one of the first came out as the second (`moments.from_noisy_labels`); the two sum to
            less than 1.
        epsilon: instead of them the level > 0 of randomised response, which flips both alike
            (`moments.from_randomised_response`).

    The rule for the regularisation sees what the noise does to the estimate. `fit` raises `InputError` for
    probabilities that leave no signal or that are given beside `epsilon`.

    Attributes: those of `MeanOperatorClassifier`.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> rows = rng.normal(size=(2000, 2)) / 3
        >>> labels = (rows[:, 0] > 0).astype(int)
        >>> noisy = np.where(rng.random(2000) < 0.4, 1 - labels, labels)
        >>> classifier = NoisyLabelClassifier(flipped_positive=0.4, flipped_negative=0.4).fit(rows, noisy)
        >>> classifier.score(rows, labels)
        0.995
    """

    flipped_positive: float = 0.0
    flipped_negative: float = 0.0
    epsilon: float | None = None

    def _estimated(self, rows: np.ndarray, codes: np.ndarray) -> MomentEstimate:
        if self.epsilon is None:
            return from_noisy_labels(rows, codes, self.flipped_positive, self.flipped_negative)
        if self.flipped_positive or self.flipped_negative:
            raise InputError(
                f"epsilon {self.epsilon:g} decides how labels are flipped; leave out flipped_positive and "
                f"flipped_negative, got {self.flipped_positive:g} and {self.flipped_negative:g}"
            )
        return from_randomised_response(rows, codes, self.epsilon)
