"""Regression from weighted sums of rows and labels over bags, shrunk by what the sums of labels vary by.

With independent weights of mean 0 and variance 1 sums over bags have, in the mean, the second moment of all rows in
bags: the sums take the place of rows.
"""

from __future__ import annotations

import numpy as np

from aggregator.learners.shrinkage import shrink
from federation.features.feature_map import FeatureMap
from federation.features.steps import Append
from federation.mechanisms.bag_sums.noisy_labels import LaplaceBagSums
from federation.mechanisms.bag_sums.weighted_sums import RepairedBagSums
from federation.numerics.rows import whitening
from federation.queries.labels import BagSumsQuestion, WeightedSumsQuestion

FREE = 10  # sums beyond the rank of the rows that are enough to tell how noisy they are

_UNIFORM = 1 / 12  # variance of labels, in squared widths of their range


def shrunk_sums(
    row_sums: np.ndarray, label_sums: np.ndarray, question: BagSumsQuestion | WeightedSumsQuestion
) -> np.ndarray | None:
    """Weights (d,) from sums of rows (M, d) and noisy sums of labels (M,); None where features end in no constant.

    Without one, nobody can know how sums of rows would move if all labels did.
    """
    constant = constant_answer(question.rows.feature_map)
    if constant is None:
        return None
    low, high = question.rows.label_range
    middle = (low + high) / 2
    beyond = label_sums - middle * (row_sums @ constant)  # so that the prior's mean is 0, in directions that lack, too
    gram, moment = row_sums.T @ row_sums, row_sums.T @ beyond
    found = shrink(
        gram,
        moment,
        variance(row_sums, beyond, sum_variance(question)) * gram,
        ones=gram @ constant,
        rows=len(row_sums) * question.design.size,
        label_range=(low - middle, high - middle),
    )
    return np.asarray(found.weights + middle * constant)


def variance(rows: np.ndarray, labels: np.ndarray, known: float) -> float:
    """Of noise and residuals together: what labels (n,) vary by around least squares on rows (n, d).

    Where there are hardly more labels than the rank of the rows, what is `known` of the noise.
    """
    whiten, _ = whitening(rows.T @ rows)
    free = len(labels) - whiten.shape[1]
    if free < FREE:
        return known
    return float(np.square(labels - rows @ (whiten @ (whiten.T @ (rows.T @ labels)))).sum() / free)


def sum_variance(question: BagSumsQuestion | WeightedSumsQuestion) -> float:
    """Of the sum of labels of one bag at most, its weights and labels included, for labels all along the range."""
    mechanism, size = question.mechanism(), question.design.size
    low, high = question.rows.label_range
    if isinstance(mechanism, RepairedBagSums):
        noise = mechanism.tau**2
    else:
        noise = 2 * mechanism.scale**2 if isinstance(mechanism, LaplaceBagSums) else mechanism.sigma**2 * size
    return noise + _UNIFORM * size * (high - low) ** 2


def constant_answer(feature_map: FeatureMap) -> np.ndarray | None:
    """The weights (d,) that say 1 of every row, where a constant is the last feature; None where there is none.

    Examples:
        >>> constant_answer(FeatureMap(2, (Append(4.0),)))
        array([0.  , 0.  , 0.25])
    """
    last = feature_map.steps[-1] if feature_map.steps else None
    if not isinstance(last, Append) or last.value == 0:
        return None
    return np.append(np.zeros(feature_map.dimension - 1), 1 / last.value)
