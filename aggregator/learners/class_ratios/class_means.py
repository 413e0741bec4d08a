"""Class ratios whose mixture of class means is nearest to the mean of a set."""

from __future__ import annotations

from dataclasses import fields
from typing import ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.kernel_means import KernelMeans
from aggregator.learners.class_ratios.mean_errors import MeanErrors
from aggregator.learners.class_ratios.sample import thinned
from aggregator.learners.class_ratios.unmixing import Unmixing, given_labels, tempered, undistorted
from aggregator.learners.class_ratios.validation import checked_covariance, checked_means, checked_proportions
from aggregator.learners.kernels.exact import ExactSupport
from aggregator.learners.kernels.features import FeatureKernel, LinearKernel
from aggregator.learners.kernels.interface import Kernel
from aggregator.learners.parameters import require_flag
from federation.contract.errors import InputError
from federation.numerics import simplex

_ERRORS = tuple(f"{field.name}_" for field in fields(MeanErrors))


class ClassMeans(KernelMeans):
    """argmin |mu rho - phi_U|^2 over the simplex, with the class means mu = sum_i B_i phi_i of `Unmixing`.

    For as many bags as classes that is Eq. 5 of Iyer et al. 2016 with the projection inside the minimisation; with
    more bags it averages their sampling errors, which the published coefficients follow.

    `debiased` takes the expected effect of sampling errors out of mu'mu: U-statistics in place of V-statistics, given
    the labels; some bag (with exact kernels every bag) must have a second row for it. `corrected` takes the effect of
    known noise in the proportions out of mu and mu'mu; otherwise noisy proportions are projected onto the simplex and
    taken for the truth. Other parameters: see `KernelMeans`.
    """

    name: ClassVar[str] = "class_means"
    fitted: ClassVar[tuple[str, ...]] = (*KernelMeans.fitted, "quadratic_", "class_means_", *_ERRORS)

    debiased: bool
    corrected: bool
    quadratic_: np.ndarray  # (C, C), mu'W mu, debiased
    class_means_: np.ndarray | None  # (D, C), mu; None for exact kernels

    def __init__(
        self,
        kernel: str = "fourier",
        bandwidth: float | str = 1.0,
        features: int = 512,
        seed: int = 0,
        debiased: bool = True,
        corrected: bool = True,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.features = features
        self.seed = seed
        self.debiased = debiased
        self.corrected = corrected

    def fit_means(
        self,
        means: np.ndarray,
        sizes: np.ndarray,
        proportions: np.ndarray,
        noise: np.ndarray | None = None,
        covariance: np.ndarray | None = None,
        mean_noise: np.ndarray | float = 0.0,
        covariance_rows: int | None = None,
    ) -> Self:
        """Learn from the mean features (M, D) of bags of `sizes` (M,) instead of their rows; needs kernel "linear".

        `covariance` (D, D) is that of the features of one row, of public rows or pooled within the bags; with bags of
        shifted class shares the former is somewhat larger, which matters little. `mean_noise`, one number or (M,), is
        the variance per coordinate of noise in released means. `covariance_rows` says from how many rows the covariance
        was estimated (see `MeanErrors.spread`); None for so many that it is exact.

        Raises `InputError` as `fit` does, and unless all are finite, of such shapes and not negative.
        """
        self._check_parameters()
        if self.kernel != "linear":
            raise InputError(f"fit_means needs kernel 'linear', which takes rows for features, got {self.kernel!r}")
        means, sizes, mean_noise = checked_means(means, sizes, mean_noise)
        proportions, noise = checked_proportions(proportions, noise, len(means))
        if covariance is not None:
            covariance = checked_covariance(covariance, means.shape[1], covariance_rows)
        freedom = None if covariance_rows is None else covariance_rows - 1
        self.bandwidth_ = None
        unmixing = self._unmixing(proportions, sizes, noise)
        self._fit_means(LinearKernel(), means, unmixing, covariance, freedom, mean_noise)
        self.n_features_in_ = means.shape[1]
        return self

    def estimate(self, embedding: np.ndarray) -> np.ndarray:
        """argmin rho'Q rho - 2 (operator'embedding)'rho over the simplex."""
        check_is_fitted(self, "operator_")
        return simplex.least_squares(self.quadratic_, self.operator_.T @ embedding)

    def errors(self) -> MeanErrors | None:
        """What is known of the errors of the class means; None for exact kernels and for bags of single rows."""
        check_is_fitted(self, "operator_")
        values = {name.removesuffix("_"): getattr(self, name) for name in _ERRORS}
        return None if values["covariance"] is None else MeanErrors(**values)

    def metric(self, errors: MeanErrors | None) -> np.ndarray | None:
        """W (D, D) of the distance |W^{1/2} (mu rho - phi_U)|; None for I."""
        return None

    def solution(
        self, class_means: np.ndarray, errors: MeanErrors | None, metric: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """W mu (..., D, C) and mu'W mu (..., C, C), for class means mu (..., D, C) that have these errors."""
        operator = class_means if metric is None else metric @ class_means
        raw = class_means.swapaxes(-1, -2) @ operator
        if errors is None:
            return operator, raw
        products = errors.debiased(raw, metric) if self.debiased else raw
        return operator, tempered(undistorted(products, errors.distortion, errors.noise), raw)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_flag("debiased", self.debiased)
        require_flag("corrected", self.corrected)

    def _fit_bags(
        self, space: Kernel, bags: list[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None
    ) -> None:
        unmixing = self._unmixing(proportions, np.array([len(bag) for bag in bags]), noise)
        if isinstance(space, FeatureKernel):
            covariance, freedom = _within_bags(space, bags)
            self._fit_means(space, space.support(bags).means, unmixing, covariance, freedom)
        else:
            self._fit_exactly(space, bags, unmixing)

    def _unmixing(self, proportions: np.ndarray, sizes: np.ndarray, noise: np.ndarray | None) -> Unmixing:
        if noise is not None and not self.corrected:
            proportions, noise = simplex.project(proportions), None
        self.proportions_singular_values_ = np.linalg.svd(proportions, compute_uv=False)
        return Unmixing(proportions, sizes, noise)

    def _fit_means(
        self,
        space: FeatureKernel,
        means: np.ndarray,
        unmixing: Unmixing,
        covariance: np.ndarray | None,
        freedom: int | None,
        mean_noise: np.ndarray | float = 0.0,
    ) -> None:
        if covariance is None and self._needs_covariance:
            raise InputError(
                f"{self.name} needs the covariance of features within bags, for which some bag must have two rows; "
                "use class_means with debiased: false for single rows, or give fit_means a covariance"
            )
        errors = None if covariance is None else MeanErrors.of(unmixing, covariance, freedom, mean_noise)
        class_means = means.T @ unmixing.matrix
        self.operator_, self.quadratic_ = self.solution(class_means, errors, self.metric(errors))
        self.space_, self.class_means_ = space, class_means
        self._keep(errors)

    def _fit_exactly(self, space: Kernel, bags: list[np.ndarray], unmixing: Unmixing) -> None:
        support = space.support(bags)
        assert isinstance(support, ExactSupport)
        unmix = unmixing.matrix
        products = raw = unmix.T @ support.gram() @ unmix
        if self.debiased:
            products = unmix.T @ support.unbiased_gram() @ unmix
            products = given_labels(products, unmixing.squares(1 / unmixing.sizes), unmixing.label_covariance)
        products = undistorted(products, unmixing.distortion, unmixing.mean_noise)
        self.operator_, self.quadratic_ = unmix, tempered(products, raw)
        self.space_, self.class_means_ = support, None
        self._keep(None)

    def _keep(self, errors: MeanErrors | None) -> None:
        for name in _ERRORS:
            setattr(self, name, None if errors is None else getattr(errors, name.removesuffix("_")))

    @property
    def _needs_covariance(self) -> bool:
        return self.debiased


def _within_bags(space: FeatureKernel, bags: list[np.ndarray]) -> tuple[np.ndarray | None, int | None]:
    """Pooled covariance of features within bags (D, D) and its degrees of freedom; None where bags have single rows."""
    sample = thinned(bags)
    freedom = sum(map(len, sample)) - len(sample)
    return (space.support(sample, covariance=True).covariance(), freedom) if freedom > 0 else (None, None)
