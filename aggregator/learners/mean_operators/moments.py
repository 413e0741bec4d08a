"""Estimates of the mean operator, the mean of y x with y = 1 or -1, from labels: all, some, or noisy ones.

With it and the rows without labels every linear-odd loss can be minimised (Patrini et al. 2015, Theorem 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from aggregator.learners.inputs.validation import require_number
from federation.contract.errors import InputError
from federation.features.steps import finite_rows

RIDGE = 0.01


@dataclass(frozen=True, eq=False)
class MomentEstimate:
    """An estimate `moment` (d,) of mean y x over n rows.

    `noise_variance` is the expected square of its distance from mean y x, summed over coordinates, or an estimate or
    bound of it, as the function says that made it: how much a learner should regularise.
    """

    moment: np.ndarray
    noise_variance: float


def from_labels(rows: np.ndarray, labels: np.ndarray) -> MomentEstimate:
    """Mean y x of rows (n, d) with labels (n,): class codes, 1 for y = 1 and 0 for y = -1.

    Raises `InputError` unless rows are finite, labels are 0 or 1, and there is one for each of at least one row.

    Examples:
        >>> from_labels([[1.0, 0.0], [0.0, 2.0]], [1, 0]).moment
        array([ 0.5, -1. ])
    """
    rows, signs = _labelled(rows, labels, "rows")
    return MomentEstimate(signs @ rows / len(rows), 0.0)


def from_noisy_labels(
    rows: np.ndarray, labels: np.ndarray, flipped_positive: float, flipped_negative: float
) -> MomentEstimate:
    """Unbiased estimate from labels (n,) that were flipped at random, by probabilities that are known per class.

    p = `flipped_positive` is the probability that a label 1 came out as 0, q = `flipped_negative` that a 0 came out as
    1. A noisy y~ has expectation (1 - p - q) y + q - p, so (mean y~ x - (q - p) mean x) / (1 - p - q) is right on
    average (Natarajan et al. 2013; Patrini et al. 2015, Section 3). Its parts (y~ - q + p) / (1 - p - q) may leave
    [-1, 1], and clipping would bias them. The variance is estimated without bias, from the same labels.

    Raises `InputError` as `from_labels`, and unless p and q are from 0 and p + q is below 1.

    Examples:
        >>> found = from_noisy_labels([[1.0], [2.0]], [1, 0], flipped_positive=0.1, flipped_negative=0.1)
        >>> found.moment.round(3), round(found.noise_variance, 3)
        (array([-0.625]), 0.703)
    """
    rows, noisy = _labelled(rows, labels, "rows")
    for name, value in (("flipped_positive", flipped_positive), ("flipped_negative", flipped_negative)):
        if not 0 <= value < 1:
            raise InputError(f"{name} must be a probability from 0 to below 1, got {value}")
    kept = 1.0 - flipped_positive - flipped_negative
    if kept <= 0:
        raise InputError(
            f"flipped_positive + flipped_negative must be below 1, got {flipped_positive:g} + {flipped_negative:g}: "
            "such labels tell nothing, or the opposite; swap them if they are inverted"
        )
    unbiased = (noisy - (flipped_negative - flipped_positive)) / kept
    of_positive = 4 * flipped_positive * (1 - flipped_positive) / kept**2
    of_negative = 4 * flipped_negative * (1 - flipped_negative) / kept**2
    of_labels = (of_positive + of_negative) / 2 + unbiased * (of_positive - of_negative) / 2
    variance = float(_squares(rows) @ of_labels) / len(rows) ** 2
    return MomentEstimate(unbiased @ rows / len(rows), max(0.0, variance))


def from_randomised_response(rows: np.ndarray, labels: np.ndarray, epsilon: float) -> MomentEstimate:
    """Unbiased estimate from labels (n,) by randomised response: each flipped with probability 1 / (1 + e^epsilon).

    The answers are mean y~ x / tanh(epsilon / 2), and their variance (1 / tanh^2 - 1) mean |x|^2 / n is known exactly
    (Warner 1965). Raises `InputError` as `from_labels`, and unless epsilon is positive.

    Examples:
        >>> found = from_randomised_response([[1.0], [2.0]], [1, 0], epsilon=1.0)
        >>> found.moment.round(3), round(found.noise_variance, 3)
        (array([-1.082]), 4.603)
    """
    rows, noisy = _labelled(rows, labels, "rows")
    if not epsilon > 0:
        raise InputError(f"epsilon must be positive, got {epsilon}; labels that are right need from_labels")
    kept = math.tanh(epsilon / 2)
    if kept == 0:
        raise InputError(f"epsilon must be larger than {epsilon:g}: labels at this level tell nothing")
    variance = (1 / kept**2 - 1) * float(_squares(rows).mean()) / len(rows)
    return MomentEstimate(noisy @ rows / (kept * len(rows)), variance)


def semi_supervised(
    rows: np.ndarray, labels: np.ndarray, unlabelled: np.ndarray, ridge: float = RIDGE
) -> MomentEstimate:
    """Estimate over all N rows from labels (n,) of some, `rows` (n, d), that were drawn at random among them.

    A ridge regression of y on x, penalised by `ridge` times mean |x|^2, predicts y everywhere; the mean of its
    predictions times x over all rows, plus the mean of its residuals times x over the labelled ones, is nearly unbiased
    whatever the labels are, and the better the more linear they are (the generalised regression estimator of survey
    sampling: Saerndal, Swensson and Wretman 1992). Exact when there are no `unlabelled` rows (N - n, d). The variance
    is that of sampling without replacement, estimated from leave-one-out residuals.

    A better mean operator need not make a better classifier: when only the labelled rows enter a loss, the errors of
    its two parts cancel to some extent, and on breast cancer and digits learning from these alone is as accurate.

    Raises `InputError` as `from_labels`, for fewer than two labelled rows, for rows that are all zero, for unlabelled
    ones of another width and unless the ridge is positive.

    Examples:
        >>> found = semi_supervised([[1.0], [2.0], [-1.0]], [1, 1, 0], [[1.5], [-2.0]])
        >>> found.moment.round(2), round(found.noise_variance, 3)
        (array([1.63]), 0.233)
    """
    rows, signs = _labelled(rows, labels, "labelled rows")
    unlabelled = finite_rows(unlabelled, "unlabelled rows")
    few, many = len(rows), len(rows) + len(unlabelled)
    squares = float(_squares(rows).mean())
    if few < 2 or squares == 0:
        raise InputError(f"labelled rows must be two or more, not all zero, got {few} of mean square {squares:g}")
    if unlabelled.shape[1] != rows.shape[1]:
        raise InputError(
            f"unlabelled rows must have {rows.shape[1]} columns, as the labelled have; got {unlabelled.shape[1]}"
        )
    require_number("ridge", ridge, RIDGE)
    products = rows.T @ rows
    system = products / few + ridge * squares * np.eye(rows.shape[1])
    of_labelled = signs @ rows / few
    slope = np.linalg.solve(system, of_labelled)
    elsewhere = (products + unlabelled.T @ unlabelled) / many - products / few
    leverages = np.einsum("nd,dn->n", rows, np.linalg.solve(system, rows.T)) / few
    residuals = (signs - rows @ slope) / (1 - leverages)
    spread = float((residuals[:, None] * rows).var(axis=0, ddof=1).sum())
    return MomentEstimate(of_labelled + elsewhere @ slope, (1 - few / many) * spread / few)


def _labelled(rows: np.ndarray, labels: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, d) as float64 and y (n,), 1.0 or -1.0. Raises `InputError`."""
    rows, codes = finite_rows(rows, what), np.asarray(labels)
    if 0 in rows.shape:
        raise InputError(f"{what} must have at least one row and one column, got shape {rows.shape}")
    if codes.shape != (len(rows),):
        raise InputError(f"labels must be one for each of {len(rows)} {what}, got shape {codes.shape}")
    if codes.dtype.kind not in "iufb" or not np.isin(codes, (0, 1)).all():
        odd = codes[~np.isin(codes, (0, 1))] if codes.dtype.kind in "iufb" else codes
        raise InputError(f"labels must be class codes, 0 or 1, got {odd[0]}; 1 stands for y = 1 and 0 for y = -1")
    return rows, np.where(codes == 1, 1.0, -1.0)


def _squares(rows: np.ndarray) -> np.ndarray:
    """|x|^2 of each row, (n,)."""
    return np.asarray(np.einsum("nd,nd->n", rows, rows))
