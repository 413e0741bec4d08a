"""How well bags tell classes apart: singular values, condition numbers, and the published bound on the error."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.class_means import ClassMeans
from aggregator.learners.class_ratios.mmd import MMD
from aggregator.learners.class_ratios.unmixing import centred
from federation.contract.errors import InputError


def conditioning(proportions: np.ndarray) -> dict[str, float]:
    """Smallest singular value and condition number of the proportions (M, C), as released.

    Noise in the proportions is multiplied by up to the inverse of the first. 0 and infinite for fewer bags than
    classes.

    Examples:
        >>> conditioning(np.array([[0.9, 0.1], [0.1, 0.9]]))
        {'smallest singular value': 0.8, 'condition number': 1.25}
    """
    shares = np.asarray(proportions, dtype=np.float64)
    values = np.linalg.svd(shares, compute_uv=False)
    return _described(values[0], values[-1] if len(shares) >= shares.shape[1] else 0.0)


def separation(estimator: ClassMeans) -> dict[str, float]:
    """Singular values of the class means mu on vectors that sum to zero, in the estimator's metric and debiased.

    An error of length e in the mean of a set moves its ratios by at most e over the smallest; 0 where two mixtures of
    classes look the same. Of two classes there is one value and the condition number is 1.

    Examples:
        >>> bags, shares = [np.array([[0.0], [2.0]]), np.array([[6.0], [8.0]])], np.array([[0.9, 0.1], [0.1, 0.9]])
        >>> separation(ClassMeans("linear", debiased=False).fit(bags, shares))
        {'smallest singular value': 5.30, 'condition number': 1.0}
    """
    check_is_fitted(estimator, "operator_")
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(centred(estimator.quadratic_))[1:], 0.0))
    return _described(values[-1], values[0])


def _described(largest: float, smallest: float) -> dict[str, float]:
    number = float(largest) / float(smallest) if smallest > 0 else math.inf
    return {"smallest singular value": float(smallest), "condition number": number}


class PublishedBound(NamedTuple):
    """Iyer et al. 2016, Theorem 1, corrected, at the estimated matrices: a diagnostic, never an error bar.

    `bound` on the L2 error exceeds 1, hence says nothing, below many thousands of rows per bag, where actual errors are
    a hundredth of it. `q` is the published condition number of the training bags, the largest singular value of the
    proportions over the smallest of the mean embeddings, `smallest`.
    """

    q: float
    smallest: float
    bound: float


def published_bound(estimator: MMD, target_size: int, failure: float = 0.05) -> PublishedBound:
    """|rho^ - rho| <= a F + Q (a F + C(n_u)) with probability 1 - `failure`, for a set of n_u = `target_size` rows.

        C(n) = 2/sqrt(n) + sqrt(ln(2 (2M+1)/failure) / (2n)),  F^2 = sum_i C(n_i)^2,  a = 1/s,  Q = |P|/s,

    s being the smallest singular value of [phi_1 .. phi_M]. Where the paper's Lemma 2 has sqrt(x/s), sqrt(x)/s is
    meant; the theorem wants s of the populations, of which that of the samples is an estimate. With more bags than
    classes s is 0 in the populations: `q` and `bound` are infinite.

    Raises `InputError` unless `target_size` is at least 1 and `failure` between 0 and 1.

    Examples:
        >>> rng, shares = np.random.default_rng(0), np.array([[0.9, 0.1], [0.1, 0.9]])
        >>> bags = [rng.normal(3.0 * (np.arange(200) < 200 * share))[:, None] for share in shares[:, 1]]
        >>> round(published_bound(MMD().fit(bags, shares), 200).bound, 1)
        2.4
    """
    check_is_fitted(estimator, "operator_")
    if target_size < 1 or not 0 < failure < 1:
        raise InputError(f"target_size must be at least 1 and failure between 0 and 1, got {target_size} and {failure}")
    bags, classes = len(estimator.sizes_), estimator.operator_.shape[1]
    smallest = float(estimator.means_singular_values_[-1]) if bags == classes else 0.0
    if smallest == 0:
        return PublishedBound(math.inf, 0.0, math.inf)

    def confidence(rows: np.ndarray | int) -> np.ndarray:
        return 2 / np.sqrt(rows) + np.sqrt(math.log(2 * (2 * bags + 1) / failure) / (2 * np.asarray(rows)))

    of_bags = float(np.linalg.norm(confidence(estimator.sizes_))) / smallest
    q = float(estimator.proportions_singular_values_[0]) / smallest
    return PublishedBound(q, smallest, of_bags + q * (of_bags + float(confidence(target_size))))
