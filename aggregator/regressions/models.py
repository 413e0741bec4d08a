"""Regressions learned from the answers of all parties together."""

from __future__ import annotations

from typing import Literal

import numpy as np

from aggregator.answers.label_answers import LabelAnswers
from aggregator.learners.bag_regression.least_squares import BagLeastSquares
from aggregator.learners.bag_regression.network import BagNetwork
from aggregator.releases.regression_models import linear, neural
from aggregator.releases.released_estimators import Described
from federation.contract.errors import InputError
from federation.questions.labels import BagSumsQuestion, WeightedSumsQuestion

Learner = Literal["linear", "network"]

_DEPENDENT = 1e-12  # eigenvalues below this share of the largest, of columns of norm 1, are rounding errors of X'X


def formed_bags(answers: LabelAnswers) -> np.ndarray:
    """Which bags of the parties that answered are there, bool (P, m)."""
    question = answers.question
    assert isinstance(question, BagSumsQuestion | WeightedSumsQuestion)
    formed: np.ndarray = np.arange(question.design.bags) < answers.array("formed")[answers.present][:, None]
    return formed


def from_sums(row_sums: np.ndarray, label_sums: np.ndarray) -> Described:
    """Least squares on sums of rows (M, d) and of labels (M,). Raises `InputError` for fewer than two sums."""
    if len(label_sums) < 2:
        raise InputError(f"a regression needs two sums or more, got {len(label_sums)}; use more or smaller bags")
    return linear(BagLeastSquares().fit(row_sums, label_sums).weights_)


def from_bags(
    learner: Learner,
    rows: np.ndarray,
    weights: np.ndarray,
    sums: np.ndarray,
    label_range: tuple[float, float],
    seed: int,
) -> Described:
    """A model from bags of rows (M, k, d) with weights (M, k) and label sums (M,)."""
    if learner == "linear":
        return from_sums(np.einsum("mk,mkd->md", weights, rows), sums)
    bags = np.arange(weights.size).reshape(weights.shape)
    return neural(BagNetwork(label_range, seed=seed).fit(rows.reshape(-1, rows.shape[-1]), bags, weights, sums))


def from_labels(
    learner: Learner, rows: np.ndarray, labels: np.ndarray, label_range: tuple[float, float], seed: int
) -> Described:
    """A model from rows (n, d) and private labels (n,)."""
    if learner == "linear":
        return from_sums(rows, labels)
    return neural(BagNetwork(label_range, seed=seed).fit_labels(rows, labels))


def from_moments(gram: np.ndarray, moment: np.ndarray) -> Described:
    """Least squares from X'X (d, d) and a noisy X'y (d,), of least norm in units of each column's."""
    norms = np.sqrt(np.maximum(np.diag(gram), 0.0))
    norms[norms == 0] = 1.0
    values, vectors = np.linalg.eigh(gram / np.outer(norms, norms))
    kept = values > _DEPENDENT * values[-1]
    return linear(vectors[:, kept] @ ((vectors[:, kept].T @ (moment / norms)) / values[kept]) / norms)
