"""Proportions that were released with noise, brought back to where the true ones are expected."""

from __future__ import annotations

import numpy as np

from federation.numerics.contrasts import contrasts

_LEAST_RELIABLE = 0.1, 0.5  # share of the variance between bags that is taken for true, whatever the noise
_NEGLIGIBLE = 1e-12  # variance relative to the largest: rounding errors


def expected_proportions(proportions: np.ndarray, sizes: np.ndarray, noise: np.ndarray | None) -> np.ndarray:
    """Best linear predictions (M, C) of the true proportions from noisy ones (M, C) with noise covariances (M, C, C).

    p + S (S + N_i)^-1 (P_i - p), where p is the mean over bags, weighted by their sizes (M,), and S the covariance
    between bags less what noise adds to it (regression calibration: Carroll et al. 2006, Measurement Error in Nonlinear
    Models, ch. 4). Least squares on them is unbiased where least squares on noisy proportions shrinks, and a likelihood
    that takes them for the truth is not misled by entries far off the simplex. Rows sum to 1 as before but may leave
    the simplex; without noise they are `proportions`. S keeps a tenth of the variance (of few bags half) or more, so
    that noise as large as the signal leaves the classes in place.
    """
    if noise is None:
        return proportions
    basis = contrasts(proportions.shape[1])
    weights = sizes / sizes.sum()
    mean = weights @ proportions
    apart = (proportions - mean) @ basis
    errors = basis.T @ noise @ basis
    between = (weights[:, None] * apart).T @ apart
    unit = np.trace(between)
    if unit < np.finfo(float).tiny:  # all bags are equal, and nobody is where another is expected
        return proportions
    between, errors = between / unit, errors / unit  # inverses of extreme numbers would overflow
    added = np.einsum("i,ijk->jk", weights * (1 - weights), errors)
    # In units of the variance between bags, along which alone they differ, the true share of it is what is reliable.
    variances, axes = np.linalg.eigh(between)
    there = variances > _NEGLIGIBLE * variances.max()
    whiten, colour = axes[:, there] / np.sqrt(variances[there]), axes[:, there] * np.sqrt(variances[there])
    reliability, directions = np.linalg.eigh(whiten.T @ (between - added) @ whiten)
    back = colour @ directions
    true = (back * np.clip(reliability, _floor(*proportions.shape), 1.0)) @ back.T
    gains = np.linalg.pinv(true + errors, hermitian=True) @ true
    return mean + np.einsum("ij,ijk->ik", apart, gains) @ basis.T


def _floor(bags: int, classes: int) -> float:
    """Half of the variance for few bags, whose variance says little about that of the noise in it, a tenth for many."""
    return float(np.clip(3 * classes / bags, *_LEAST_RELIABLE))
