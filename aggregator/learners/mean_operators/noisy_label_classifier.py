"""A linear classifier learned from labels that were flipped at random, by probabilities that are known."""

from __future__ import annotations

import numpy as np

from aggregator.learners.mean_operators.classifier import MeanOperatorClassifier
from aggregator.learners.mean_operators.moments import MomentEstimate, from_noisy_labels, from_randomised_response
from federation.contract.errors import InputError


class NoisyLabelClassifier(MeanOperatorClassifier):
    """Learning from noisy labels through an unbiased mean operator (Patrini et al. 2015; Natarajan et al. 2013).

    `flipped_positive` is the probability that a label of the second class came out as the first, `flipped_negative`
    that one of the first came out as the second (`moments.from_noisy_labels`). `epsilon` instead of them is the level
    of randomised response, which flips both alike (`moments.from_randomised_response`). Everything else is as for
    `MeanOperatorClassifier`, which it is without noise; its rule for the regularisation sees what the noise does to the
    estimate. `fit` raises `InputError` for probabilities that leave no signal or that are given beside `epsilon`.
    """

    def __init__(
        self,
        loss: str = "logistic",
        regularisation: float | None = None,
        rho: float | None = None,
        tolerance: float | None = None,
        flipped_positive: float = 0.0,
        flipped_negative: float = 0.0,
        epsilon: float | None = None,
    ) -> None:
        super().__init__(loss, regularisation, rho, tolerance)
        self.flipped_positive = flipped_positive
        self.flipped_negative = flipped_negative
        self.epsilon = epsilon

    def _estimated(self, rows: np.ndarray, codes: np.ndarray) -> MomentEstimate:
        if self.epsilon is None:
            return from_noisy_labels(rows, codes, self.flipped_positive, self.flipped_negative)
        if self.flipped_positive or self.flipped_negative:
            raise InputError(
                f"epsilon {self.epsilon:g} decides how labels are flipped; leave out flipped_positive and "
                f"flipped_negative, got {self.flipped_positive:g} and {self.flipped_negative:g}"
            )
        return from_randomised_response(rows, codes, self.epsilon)
