"""The bandwidth that predicts held-out bags best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import qr
from sklearn.base import clone

from aggregator.learners.class_ratios.estimator import RatioEstimator
from federation.contract.errors import InputError
from federation.numerics import simplex

CANDIDATES = tuple(2.0**k for k in range(-5, 6))
_INDEPENDENT = 1e-6  # share of the largest pivot


def selected_bandwidth(
    estimator: RatioEstimator, bags: Sequence[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None
) -> float:
    """The `bandwidth` among 2^-5..2^5 with the smallest mean L1 error on held-out bags (Iyer et al. 2016, Section 4.2).

    Two groups of C bags, each of which identifies all classes, are fitted and predicted in both role orders. Their
    released proportions (M, C) are the truth: no labels but those released are used. Bandwidth 1 where there are no
    two such groups, hence for fewer than 2C bags, or one cannot be fitted, as when all its rows are equal; the smallest
    of equally good ones otherwise.
    """
    groups = two_groups(proportions)
    if groups is None:
        return 1.0

    def error(bandwidth: float, train: np.ndarray, held_out: np.ndarray) -> float:
        fresh = clone(estimator).set_params(bandwidth=bandwidth)
        fresh.fit([bags[i] for i in train], proportions[train], None if noise is None else noise[train])
        found = np.stack([fresh.predict(bags[i]) for i in held_out])
        return float(np.abs(found - simplex.project(proportions[held_out])).sum(axis=1).mean())

    try:
        errors = [error(bandwidth, *groups) + error(bandwidth, *groups[::-1]) for bandwidth in CANDIDATES]
    except InputError:  # of a few bags only: all of them together may well be fitted
        return 1.0
    return CANDIDATES[int(np.argmin(errors))]


def two_groups(proportions: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Indices of two disjoint groups of C bags with independent proportions (M, C), or None.

    Each is chosen among those left by pivoted QR, which takes the most different ones first, so it does not matter
    in which order bags come.

    Examples:
        >>> two_groups(np.array([[0.5, 0.5], [1.0, 0.0], [0.6, 0.4], [0.0, 1.0]]))
        (array([1, 3]), array([0, 2]))
    """
    left, groups, classes = np.arange(len(proportions)), [], proportions.shape[1]
    for _ in range(2):
        if len(left) < classes:
            return None
        triangle, pivots = qr(proportions[left].T, mode="r", pivoting=True)
        sizes = np.abs(np.diag(triangle))
        if sizes[-1] <= _INDEPENDENT * sizes[0]:
            return None
        groups.append(np.sort(left[pivots[:classes]]))
        left = np.delete(left, pivots[:classes])
    return groups[0], groups[1]
