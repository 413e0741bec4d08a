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
    try:
        errors = [
            _error(clone(estimator).set_params(bandwidth=candidate), bags, proportions, noise, *roles)
            for candidate in CANDIDATES
            for roles in (groups, groups[::-1])
        ]
    except InputError:  # of a few bags only: all of them together may well be fitted
        return 1.0
    return CANDIDATES[int(np.argmin(np.reshape(errors, (len(CANDIDATES), 2)).sum(axis=1)))]


def two_groups(proportions: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Indices of two disjoint groups of C bags with independent proportions (M, C), or None.

    Each is chosen among those left by pivoted QR, which takes the most different ones first, so it does not matter
    in which order bags come.
    """
    left = np.arange(len(proportions))
    groups = []
    for _ in range(2):
        group = _independent(proportions[left])
        if group is None:
            return None
        groups.append(np.sort(left[group]))
        left = np.delete(left, group)
    return groups[0], groups[1]


def _independent(proportions: np.ndarray) -> np.ndarray | None:
    classes = proportions.shape[1]
    if len(proportions) < classes:
        return None
    triangle, pivots = qr(proportions.T, mode="r", pivoting=True)
    sizes = np.abs(np.diag(triangle))
    return pivots[:classes] if sizes[-1] > _INDEPENDENT * sizes[0] else None


def _error(
    estimator: RatioEstimator,
    bags: Sequence[np.ndarray],
    proportions: np.ndarray,
    noise: np.ndarray | None,
    train: np.ndarray,
    held_out: np.ndarray,
) -> float:
    estimator.fit([bags[i] for i in train], proportions[train], None if noise is None else noise[train])
    truth = simplex.project(proportions[held_out])
    found = np.stack([estimator.predict(bags[i]) for i in held_out])
    return float(np.abs(found - truth).sum(axis=1).mean())
