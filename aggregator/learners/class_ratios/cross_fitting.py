"""Classifiers fitted to parts of the bags and tried on what was left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggregator.learners.class_ratios.bag_likelihood import Transition, fitted_weights, posteriors, surprise

_STRENGTHS = tuple(float(f"{10 ** (-k / 2):.2g}") for k in range(2, 15))  # 0.1 to 1e-7


@dataclass(frozen=True, eq=False)
class CrossFit:
    """K classifiers (K, C, d + 1), the posteriors (N, C) of every row by the one that has not seen it, and lam."""

    weights: np.ndarray
    held_out: np.ndarray
    regularisation: float


def dealt(sizes: np.ndarray, folds: int, random: np.random.Generator) -> np.ndarray:
    """Fold numbers (N,) of the rows of bags that lie one after another: folds are equal in every bag, up to one row."""
    order = np.concatenate([start + random.permutation(n) for start, n in zip(_starts(sizes), sizes, strict=True)])
    found = np.empty(len(order), dtype=np.intp)
    found[order] = np.arange(len(order)) % folds
    return found


def cross_fit(
    rows: np.ndarray,
    bags: np.ndarray,
    transition: Transition,
    regularisation: float | None,
    parts: np.ndarray,
) -> CrossFit:
    """Fits one classifier without each part, for rows (N, d) of bags (N,) that are dealt into `parts` (N,).

    With `regularisation` None it is the one that surprises least on the rows left out, looked for from strong to weak
    until the surprise rises; each classifier starts where the last of its own part ended, so that no row is seen by the
    one that is tried on it.
    """
    folds = int(parts.max()) + 1
    likelihoods = transition.matrix[bags]
    weights = np.zeros((folds, len(transition.priors), rows.shape[1] + 1))
    best, least = None, np.inf
    for strength in _STRENGTHS if regularisation is None else (regularisation,):
        held_out = np.empty_like(likelihoods)
        for part in range(folds):
            out = parts == part
            weights[part] = fitted_weights(rows[~out], likelihoods[~out], transition.priors, strength, weights[part])
            held_out[out] = posteriors(weights[part], rows[out], transition.priors)
        value, _ = surprise(held_out, likelihoods)
        if value >= least:
            break
        best, least = CrossFit(weights.copy(), held_out, strength), value
    assert best is not None
    return best


def _starts(sizes: np.ndarray) -> np.ndarray:
    return np.cumsum(sizes) - sizes
