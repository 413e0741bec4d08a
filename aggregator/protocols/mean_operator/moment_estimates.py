"""Estimates of the mean operator, the mean of y x with y = 1 or -1, from the private answers of parties."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggregator.answers.label_answers import LabelAnswers
from aggregator.protocols.mean_operator.moment_answers import MomentAnswers
from federation.numerics.norms import within_norm
from federation.questions.labels import PrivateLabelsQuestion


@dataclass(frozen=True, eq=False)
class Moments:
    """`estimates` (draws, d), one per noise draw, and the public expected squared norm of the noise in each."""

    estimates: np.ndarray
    noise_variance: float


def of_sums(answers: MomentAnswers) -> Moments:
    """From noisy sums of y x."""
    estimates = answers.moments
    return Moments(estimates, estimates.shape[1] * answers.noise_variance)


def of_private_labels(answers: LabelAnswers) -> Moments:
    """From rows with private labels, whose mean is the class 0 or 1: each is unbiased, whatever its values.

    Public are the rows, and the variance of a private label.
    """
    question, present = answers.question, answers.present
    assert isinstance(question, PrivateLabelsQuestion)
    held = np.arange(question.rows.most) < answers.array("size")[present][:, None]
    rows = within_norm(answers.array("rows")[present][held])
    labels = answers.array("labels")[present].swapaxes(1, 2)[held]
    variance = 4 * float(np.max(question.mechanism().variance(np.array(question.rows.label_range))))
    return Moments((2 * labels - 1).T @ rows / len(rows), variance * float(np.square(rows).sum()) / len(rows) ** 2)
