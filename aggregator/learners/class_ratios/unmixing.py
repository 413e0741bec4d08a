"""From means of bags to means of classes: the least squares solution, and what its errors do to squared distances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aggregator.learners.class_ratios.measurement_error import expected_proportions
from federation.numerics.contrasts import contrasts

_LEAST_LEFT = 0.02  # of the products of class means, whatever noise there is
_NEGLIGIBLE = 1e-12  # share of the largest eigenvalue: rounding errors


def unmixing(proportions: np.ndarray, sizes: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
    """B (M, C), so that sum_i B_iy mean_i is the mean of class y, for proportions P (M, C) of bags of `sizes` (M,).

    B = N X (X'N X)^-1 with N = diag(sizes), least squares, weighted as the sampling errors of bags want it; its columns
    sum to 1. X = P without noise; for M = C, B is then the inverse of P. With noise of covariance (M, C, C), P'NP is
    larger than it should be and class means shrink towards each other. X then holds the expected true proportions,
    which for equal noise is the same as taking the noise out of P'NP (Fuller 1987, Measurement Error Models). To second
    order in the noise, least squares over M bags is biased as if M - C - 1 of them had it, so that is corrected.
    """
    bags, classes = proportions.shape
    share = max(bags - classes - 1, 0) / bags
    expected = expected_proportions(proportions, sizes, None if noise is None or share == 0 else noise * share)
    weighted = sizes[:, None] * expected
    return np.ascontiguousarray(np.linalg.solve(expected.T @ weighted, weighted.T).T)


@dataclass(frozen=True, eq=False)
class Unmixing:
    """`unmixing`, and what errors of the means and of the proportions do through it.

    Proportions (M, C) of bags of `sizes` (M,), with the covariance (M, C, C) of their noise or None.
    """

    proportions: np.ndarray
    sizes: np.ndarray
    noise: np.ndarray | None = None

    @cached_property
    def matrix(self) -> np.ndarray:
        """B (M, C)."""
        return unmixing(self.proportions, self.sizes, self.noise)

    def squares(self, weights: np.ndarray | float) -> np.ndarray:
        """sum_i weights_i B_i B_i' (C, C)."""
        return (self.matrix.T * weights) @ self.matrix

    @property
    def mean_noise(self) -> np.ndarray:
        """T (C, C), the covariance of the noise in the proportions, averaged over bags; zero without noise."""
        classes = self.proportions.shape[1]
        return np.zeros((classes, classes)) if self.noise is None else self.noise.mean(axis=0)

    @property
    def distortion(self) -> np.ndarray:
        """sum_i s_i B_i B_i' (C, C), where the noise in the proportions of bag i has the covariance s_i T."""
        level = np.trace(self.mean_noise)
        if self.noise is None or level == 0:
            return np.zeros_like(self.mean_noise)
        return self.squares(np.trace(self.noise, axis1=1, axis2=2) / level)

    @property
    def label_covariance(self) -> np.ndarray:
        """Covariance (C, C) of the labels (one indicator per class) of one row within its bag, averaged over rows."""
        weights = self.sizes / self.sizes.sum()
        squares = (self.proportions.T * weights) @ self.proportions
        if self.noise is not None:  # which adds its covariance to the squares
            squares = squares - np.tensordot(weights, self.noise, 1)
        return np.diag(weights @ self.proportions) - squares


def centred(quadratic: np.ndarray) -> np.ndarray:
    """H Q H (..., C, C) for H = I - 11'/C: the same form on vectors that sum to zero, and 0 along 1."""
    means = quadratic.mean(axis=-1)
    found = quadratic - means[..., :, None] - means[..., None, :] + means.mean(axis=-1)[..., None, None]
    return (found + found.swapaxes(-1, -2)) / 2


def positive(quadratic: np.ndarray) -> np.ndarray:
    """`quadratic` (..., C, C), made positive semidefinite on vectors that sum to zero by the least change.

    Differences of noisy terms can have negative eigenvalues there, which no products of means have.
    """
    values, vectors = np.linalg.eigh(centred(quadratic))
    return quadratic - (vectors * np.minimum(values, 0.0)[..., None, :]) @ vectors.swapaxes(-1, -2)


def tempered(corrected: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """As much of the way from `raw` products of means (..., C, C) to `corrected` ones as noise lets anybody know.

    A correction that takes more than all of them away along some vector that sums to zero, or nearly so, is itself
    noise, and the little that is left would decide about everything. So it is made in part only, the same part in all
    directions, such that `_LEAST_LEFT` of the raw products is left in each.
    """
    basis = contrasts(raw.shape[-1])
    values, vectors = np.linalg.eigh(basis.T @ centred(raw) @ basis)
    scale = np.sqrt(np.maximum(values, np.finfo(float).tiny + _NEGLIGIBLE * values[..., -1:]))
    units = vectors / scale[..., None, :]
    left = np.linalg.eigvalsh(units.swapaxes(-1, -2) @ (basis.T @ centred(corrected) @ basis) @ units)[..., :1]
    part = np.minimum(1.0, (1 - _LEAST_LEFT) / np.maximum(1 - left, _NEGLIGIBLE))[..., None]
    return raw + part * (corrected - raw)


def undistorted(products: np.ndarray, distortion: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Products Q of class means (..., C, C) without what noise in the proportions added to them.

    Noise s_i T moves class means mu by -mu D, with E D'QD = tr(Q T) `distortion`; see `Unmixing`.
    """
    added = np.einsum("...kl,kl->...", positive(products), noise)
    return products - added[..., None, None] * distortion


def given_labels(
    products: np.ndarray, sampling: np.ndarray, label_covariance: np.ndarray, spread: float = np.inf
) -> np.ndarray:
    """Products Q of class means (..., C, C) from U-statistics, for bags whose own label proportions are known.

    U-statistics take the covariance S of rows within bags for what disturbs a mean, so `spread` = tr(W S) times
    `sampling` has been subtracted from Q. The part mu L mu' of S, L = `label_covariance`, comes from which labels the
    rows have, and does not disturb a mean that is compared with the proportions of the same rows: tr(Q L) `sampling`
    has been subtracted too much.
    """
    share = min(float(np.sum(sampling * label_covariance)), 0.5)  # above, nothing is known anyway
    excess = np.einsum("...kl,kl->...", positive(products), label_covariance) / (1 - share)
    return products + np.minimum(excess, spread)[..., None, None] * sampling
