"""Estimates of the mean operator, the mean of y x with y = 1 or -1, from the private answers of parties."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggregator.protocols.mean_operator.moment_answers import MomentAnswers


@dataclass(frozen=True, eq=False)
class Moments:
    """`estimates` (draws, d), one per noise draw, and the public expected squared norm of the noise in each."""

    estimates: np.ndarray
    noise_variance: float


def of_sums(answers: MomentAnswers, square: float = 1.0) -> Moments:
    """From noisy sums of y x, where rows x of those who answer by randomised response have this mean squared norm."""
    estimates = answers.moments
    variance = estimates.shape[1] * answers.noise_variance + square * answers.response_variance
    return Moments(estimates, variance)
