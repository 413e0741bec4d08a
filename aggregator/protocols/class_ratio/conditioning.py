"""How well bags tell classes apart: singular values, condition numbers, and the published bound on the error."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
    """
    shares = np.asarray(proportions, dtype=np.float64)
    values = np.linalg.svd(shares, compute_uv=False)
    smallest = float(values[-1]) if len(shares) >= shares.shape[1] else 0.0
    return {
        "smallest singular value": smallest,
        "condition number": float(values[0]) / smallest if smallest > 0 else math.inf,
    }


def separation(estimator: ClassMeans) -> dict[str, float]:
    """Singular values of the class means mu on vectors that sum to zero, in the estimator's metric and debiased.

    An error of length e in the mean of a set moves its ratios by at most e over the smallest; 0 where two mixtures of
    classes look the same. Of two classes there is one value and the condition number is 1.
    """
    check_is_fitted(estimator, "operator_")
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(centred(estimator.quadratic_))[1:], 0.0))
    smallest = float(values[0])
    return {
        "smallest singular value": smallest,
        "condition number": float(values[-1]) / smallest if smallest > 0 else math.inf,
    }


@dataclass(frozen=True)
class PublishedBound:
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
