"""Regressions learned from the answers of all parties together."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from aggregator.answers.label_answers import LabelAnswers
from aggregator.learners.bag_regression.least_squares import BagLeastSquares
from aggregator.learners.bag_regression.linear_training import trained
from aggregator.learners.bag_regression.network import BagNetwork
from aggregator.learners.shrinkage import shrink
from aggregator.regressions.bag_shrinkage import shrunk_sums, variance
from aggregator.releases.regression_models import linear, neural
from aggregator.releases.released_estimators import Described
from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.mechanisms.labels.mechanism import LabelMechanism
from federation.numerics.rows import whitening
from federation.queries.labels import BagSumsQuestion, WeightedSumsQuestion

Learner = Literal["linear", "network"]
Ends = tuple[float, float]
BagQuestion = BagSumsQuestion | WeightedSumsQuestion

_PLACES = 101
_DROWNED = 1e6


def formed_bags(answers: LabelAnswers) -> np.ndarray:
    """Which bags of the parties that answered are there, bool (P, m)."""
    question = answers.question
    assert isinstance(question, BagSumsQuestion | WeightedSumsQuestion)
    formed: np.ndarray = np.arange(question.design.bags) < answers.array("formed")[answers.present][:, None]
    return formed


def from_sums(
    row_sums: np.ndarray, label_sums: np.ndarray, label_range: Ends, noise: BagQuestion | None = None
) -> Described:
    """A linear model of sums of rows (M, d) and of labels (M,), shrunk where the question of their `noise` is given.

    Raises `InputError` for fewer than two sums.
    """
    _require_two(label_sums)
    weights = None if noise is None else shrunk_sums(row_sums, label_sums, noise)
    if weights is not None:
        return linear(weights, label_range)
    return linear(BagLeastSquares().fit(row_sums, label_sums).weights_, label_range)


def by_steps(
    row_sums: np.ndarray, label_sums: np.ndarray, label_range: Ends, size: int, seed: int, **steps: Any
) -> Described:
    """A linear model that Adam reaches on sums of rows (M, d) and labels (M,) of bags of `size` rows.

    `steps` are epochs, learning_rate and batch_rows of `trained`; the order of bags follows from the seed. Raises
    `InputError` for fewer than two sums, and `FederationError` for sums too large to train on.
    """
    _require_two(label_sums)
    [weights] = trained(row_sums[None], label_sums[None], size, generator(seed, "order of bags"), **steps)
    return linear(weights, label_range)


def from_bags(
    learner: Learner,
    rows: np.ndarray,
    weights: np.ndarray,
    sums: np.ndarray,
    label_range: Ends,
    seed: int,
    noise: BagQuestion | None = None,
) -> Described:
    """A model from bags of rows (M, k, d) with weights (M, k) and label sums (M,); `noise` as of `from_sums`."""
    if learner == "linear":
        return from_sums(np.einsum("mk,mkd->md", weights, rows), sums, label_range, noise)
    bags = np.arange(weights.size).reshape(weights.shape)
    return neural(BagNetwork(label_range, seed=seed).fit(rows.reshape(-1, rows.shape[-1]), bags, weights, sums))


def from_labels(
    learner: Learner,
    rows: np.ndarray,
    labels: np.ndarray,
    label_range: Ends,
    seed: int,
    noise: LabelMechanism | None = None,
) -> Described:
    """A model from rows (n, d) and private labels (n,); a linear one is shrunk where their `noise` is given."""
    if learner == "network":
        return neural(BagNetwork(label_range, seed=seed).fit_labels(rows, labels))
    if noise is None:
        return from_sums(rows, labels, label_range)
    gram, moment = rows.T @ rows, rows.T @ labels
    covariance = variance(rows, labels, _mean_variance(noise)) * gram
    return shrunk(gram, moment, covariance, rows.sum(axis=0), len(rows), label_range)


def from_moments(gram: np.ndarray, moment: np.ndarray, label_range: Ends | None = None) -> Described:
    """Least squares from X'X (d, d) and a noisy X'y (d,), of least norm in units of each column's."""
    whiten, _ = whitening(gram)
    return linear(whiten @ (whiten.T @ moment), label_range)


def shrunk(
    gram: np.ndarray, moment: np.ndarray, noise: np.ndarray, row_sum: np.ndarray, rows: float, label_range: Ends
) -> Described:
    """The mean of what is known of the weights, given X'X, X'y with `noise` of known covariance, and X'1 of n rows."""
    found = shrink(gram, moment, noise, ones=row_sum, rows=rows, label_range=label_range)
    return linear(found.weights, label_range)


def _require_two(label_sums: np.ndarray) -> None:
    if len(label_sums) < 2:
        raise InputError(f"a regression needs two sums or more, got {len(label_sums)}; use more or smaller bags")


def _mean_variance(mechanism: LabelMechanism) -> float:
    """Of a released label, over labels all along the range; of what has no bound, one that drowns every label."""
    labels = mechanism.labels
    found = float(np.mean(mechanism.variance(np.linspace(labels.low, labels.high, _PLACES))))
    return min(found, _DROWNED * labels.width**2)
