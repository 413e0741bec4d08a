"""Class ratios whose mixture of class means is nearest to the mean of a set."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.kernel_means import KernelMeans, thinned
from aggregator.learners.class_ratios.unmixing import MeanErrors, Unmixing, given_labels, tempered, undistorted
from aggregator.learners.inputs.validation import (
    checked_covariance,
    checked_means,
    checked_proportions,
    require_flag,
    require_number,
)
from aggregator.learners.kernels.exact import ExactSupport
from aggregator.learners.kernels.features import FeatureKernel, LinearKernel
from aggregator.learners.kernels.interface import Kernel
from federation.contract.errors import InputError
from federation.numerics import simplex

_ERRORS = tuple(f"{field.name}_" for field in fields(MeanErrors))


@dataclass(eq=False, repr=False)
class ClassMeans(KernelMeans):
    """argmin |mu rho - phi_U|^2 over the simplex, with the class means mu = sum_i B_i phi_i of `Unmixing`.

    For as many bags as classes that is Eq. 5 of Iyer et al. 2016 with the projection inside the minimisation; with
    more bags it averages their sampling errors, which the published coefficients follow.

    Parameters, besides those of `KernelMeans`:
        debiased: take the expected effect of sampling errors out of mu'mu: U-statistics in place of V-statistics, given
            the labels; some bag (with exact kernels every bag) must have a second row for it.
        corrected: take the effect of known noise in the proportions out of mu and mu'mu; otherwise noisy proportions
            are projected onto the simplex and taken for the truth.

    Attributes, besides those of `KernelMeans`:
        quadratic_: mu'W mu (C, C), debiased, in the metric W of `metric`.
        class_means_: mu (D, C); None for exact kernels.
        covariance_ and the other fields of `MeanErrors`: None for exact kernels and for bags of single rows.

    Examples:
        >>> rng, shares = np.random.default_rng(0), np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
        >>> draw = lambda share, n: rng.normal(4.0 * (np.arange(n) < share * n))[:, None]  # share of class 1
        >>> bags = [draw(share, 200) for share in shares[:, 1]]
        >>> estimator = ClassMeans(features=32).fit(bags, shares)
        >>> estimator.predict(draw(0.7, 500)).round(2)
        array([0.29, 0.71])
    """

    name: ClassVar[str] = "class_means"
    fitted: ClassVar[tuple[str, ...]] = (*KernelMeans.fitted, "quadratic_", "class_means_", *_ERRORS)
    needs_covariance: ClassVar[bool] = False  # even where it is not debiased

    debiased: bool = True
    corrected: bool = True

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
        self._begin_means(means)
        means, sizes, mean_noise = checked_means(means, sizes, mean_noise)
        proportions, noise = checked_proportions(proportions, noise, len(means))
        self.n_features_in_, self.bandwidth_ = means.shape[1], None
        unmixing, errors = self._unmixing(proportions, sizes, noise), None
        if covariance is not None:
            covariance = checked_covariance(covariance, means.shape[1], covariance_rows)
            freedom = None if covariance_rows is None else covariance_rows - 1
            errors = MeanErrors.of(unmixing, covariance, freedom, mean_noise)
        self._fit_means(LinearKernel(), means, unmixing, errors)
        return self

    def estimate(self, embedding: np.ndarray) -> np.ndarray:
        """argmin rho'Q rho - 2 (operator'embedding)'rho over the simplex."""
        check_is_fitted(self, "operator_")
        return simplex.least_squares(self.quadratic_, embedding @ self.operator_)

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

    def _fit(self, bags: list[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None) -> None:
        space = self._kernel(bags, proportions, noise)
        unmixing = self._unmixing(proportions, np.array([len(bag) for bag in bags]), noise)
        if isinstance(space, FeatureKernel):
            sample, errors = thinned(bags), None
            freedom = sum(map(len, sample)) - len(sample)
            if freedom > 0:  # where all bags have single rows, nothing is known of how rows differ within bags
                covariance = space.support(sample, covariance=True).covariance()
                errors = MeanErrors.of(unmixing, covariance, freedom, 0.0)
            self._fit_means(space, space.support(bags).means, unmixing, errors)
        else:
            self._fit_exactly(space, bags, unmixing)

    def _unmixing(self, proportions: np.ndarray, sizes: np.ndarray, noise: np.ndarray | None) -> Unmixing:
        if noise is not None and not self.corrected:
            proportions, noise = simplex.project(proportions), None
        self.proportions_singular_values_ = np.linalg.svd(proportions, compute_uv=False)
        return Unmixing(proportions, sizes, noise)

    def _fit_means(
        self, space: FeatureKernel, means: np.ndarray, unmixing: Unmixing, errors: MeanErrors | None
    ) -> None:
        if errors is None and (self.debiased or self.needs_covariance):
            raise InputError(
                f"{self.name} needs the covariance of features within bags, for which some bag must have two rows; "
                "use class_means with debiased: false for single rows, or give fit_means a covariance"
            )
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


@dataclass(eq=False, repr=False)
class WhitenedMeans(ClassMeans):
    """`ClassMeans` in the metric W = (S + ridge tr(S)/D I)^-1, S being the covariance of features within bags.

    Distances then count in units of what sampling adds to them, as in Fisher's discriminant: generalised least squares,
    with a ridge against what is not known of S. W is large where little is known, so that sampling adds more to mu'W mu
    than to mu'mu: without `debiased`, errors are up to three times as large for bags of some hundred rows.

    Parameters, besides those of `ClassMeans` (kernels with features only):
        ridge: positive, in mean variances of a feature; from .3 to 3 it hardly matters.

    Attributes: those of `ClassMeans`.

    Examples:
        >>> rng, shares = np.random.default_rng(0), np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
        >>> draw = lambda share, n: rng.normal(4.0 * (np.arange(n) < share * n))[:, None]  # share of class 1
        >>> bags = [draw(share, 200) for share in shares[:, 1]]
        >>> estimator = WhitenedMeans(features=32).fit(bags, shares)
        >>> estimator.predict(draw(0.7, 500)).round(2)
        array([0.3, 0.7])
    """

    name: ClassVar[str] = "whitened"
    kernels: ClassVar[tuple[str, ...]] = ("fourier", "nystrom", "linear")
    needs_covariance: ClassVar[bool] = True

    ridge: float = 1.0

    def metric(self, errors: MeanErrors | None) -> np.ndarray | None:
        """W (D, D)."""
        return None if errors is None else errors.whitening(self.ridge)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_number("ridge", self.ridge, 1.0)


class EnergyMeans(ClassMeans):
    """`ClassMeans` with the energy kernel -|x - y|, which has no bandwidth, in time that grows with the square of rows.

    The objective is the energy distance of the set and the mixture of classes (Szekely and Rizzo 2013).

    Parameters: `debiased` and `corrected` of `ClassMeans`. Attributes: those of `ClassMeans`.

    Examples:
        >>> rng, shares = np.random.default_rng(0), np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
        >>> draw = lambda share, n: rng.normal(4.0 * (np.arange(n) < share * n))[:, None]  # share of class 1
        >>> bags = [draw(share, 200) for share in shares[:, 1]]
        >>> EnergyMeans().fit(bags, shares).predict(draw(0.7, 500)).round(2)
        array([0.3, 0.7])
    """

    name: ClassVar[str] = "energy"
    kernels: ClassVar[tuple[str, ...]] = ("energy",)

    def __init__(self, debiased: bool = True, corrected: bool = True) -> None:
        super().__init__("energy", 1.0, 1, 0, debiased, corrected)
