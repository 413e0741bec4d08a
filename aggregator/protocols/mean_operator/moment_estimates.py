"""Estimates of the mean operator, the mean of y x with y = 1 or -1, from the private answers of parties."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggregator.answers.moment_answers import MomentTotals
from aggregator.learners.shrinkage import Shrinkage

_SIGNS = (-1.0, 1.0)
_STRENGTHS = 13  # of the prior: few are enough where labels have one range
_CONSTANT_SHARES = (1.0, 0.1, 0.01)  # classes may be anything from even to nearly one, and are often near even


@dataclass(frozen=True, eq=False)
class Moments:
    """`estimates` (draws, d), one per noise draw, and the expected squared norm of the error of each, (draws,)."""

    estimates: np.ndarray
    errors: np.ndarray


def of_sums(answers: MomentTotals, square: float = 1.0) -> Moments:
    """From noisy sums of y x, where rows x of those who answer by randomised response have this mean squared norm.

    Errors are those of the noise: public numbers, and the same for all draws.
    """
    estimates = answers.moments
    variance = estimates.shape[1] * answers.noise_variance + square * answers.response_variance
    return Moments(estimates, np.full(len(estimates), variance))


def denoised(answers: MomentTotals, rows: np.ndarray) -> Moments:
    """The same given the parties' own rows (n, d): what linear regression of y on x explains, shrunk by the noise.

    The mean of y x is that of f x, where f is the least-squares fit of y. The noise has the known covariance
    v I + w X'X/n, and the prior knows that y is from -1 to 1. Errors are those that are left a posteriori.
    """
    count = len(rows)
    gram, ones = rows.T @ rows, rows.sum(axis=0)
    noise = answers.noise_variance * np.eye(len(gram)) + answers.response_variance * gram / count
    shrinkage = Shrinkage(
        gram,
        count**2 * noise,
        ones=ones,
        rows=count,
        label_range=_SIGNS,
        grid=_STRENGTHS,
        constant_shares=_CONSTANT_SHARES,
    )
    known = [shrinkage.posterior(count * moment) for moment in answers.moments]
    back = gram / count
    errors = np.array([np.trace(back @ one.covariance @ back) for one in known])
    return Moments(np.array([back @ one.weights for one in known]), errors.clip(0.0))
