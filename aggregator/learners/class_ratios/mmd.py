"""Class ratios by maximum mean discrepancy, as published (Iyer, Nath and Sarawagi 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.kernel_means import KernelMeans
from aggregator.learners.kernels.exact import ExactSupport
from aggregator.learners.kernels.features import FeatureSupport
from federation.numerics import simplex

_NEGLIGIBLE = 1e-12  # share of the largest eigenvalue of the Gram matrix that is rounding errors


@dataclass(eq=False, repr=False)
class MMD(KernelMeans):
    """argmin_alpha |sum_i alpha_i phi_i - phi_U|^2 over R^M, then the projection of P'alpha onto the simplex.

    Iyer, Nath and Sarawagi 2016, Eq. 5. phi_i are the mean embeddings of the bags, their products V-statistics; of many
    solutions, the one of least norm. With more bags than classes the least squares follow sampling errors, and with
    noise in the proportions they know nothing of it: `ClassMeans` is better at both. Noisy proportions are first
    projected onto the simplex.

    Parameters: see `KernelMeans`. With `kernel` "exact" it is the published estimator exactly, in time that grows
    with the square of the number of rows, eleven times that for the published selection of the bandwidth, "auto".

    Attributes: those of `KernelMeans`, `sizes_` (M,), the rows of each bag, and `means_singular_values_` (M,) of the
    matrix [phi_1 .. phi_M], descending.

    Examples:
        >>> rng, shares = np.random.default_rng(0), np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
        >>> draw = lambda share, n: rng.normal(4.0 * (np.arange(n) < share * n))[:, None]  # share of class 1
        >>> bags = [draw(share, 200) for share in shares[:, 1]]
        >>> MMD().fit(bags, shares).predict(draw(0.7, 500)).round(2)
        array([0.28, 0.72])
    """

    name: ClassVar[str] = "mmd"
    fitted: ClassVar[tuple[str, ...]] = (*KernelMeans.fitted, "sizes_", "means_singular_values_")

    kernel: str = "exact"
    bandwidth: float | str = "auto"

    def estimate(self, embedding: np.ndarray) -> np.ndarray:
        """Proj(P'alpha), with alpha linear in the embedding."""
        check_is_fitted(self, "operator_")
        return simplex.project(self.operator_.T @ embedding)

    def _fit(self, bags: list[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None) -> None:
        space = self._kernel(bags, proportions, noise)
        if noise is not None:
            proportions = simplex.project(proportions)
        support = space.support(bags)
        values, vectors = np.linalg.eigh(support.gram())
        kept = values > _NEGLIGIBLE * values[-1]
        coefficients = (vectors[:, kept] / values[kept]) @ (vectors[:, kept].T @ proportions)
        if isinstance(support, FeatureSupport):
            self.space_, self.operator_ = support.kernel, support.means.T @ coefficients
        else:
            assert isinstance(support, ExactSupport)
            self.space_, self.operator_ = support, coefficients
        self.sizes_ = support.sizes
        self.proportions_singular_values_ = np.linalg.svd(proportions, compute_uv=False)
        self.means_singular_values_ = np.sqrt(np.maximum(values[::-1], 0.0))
