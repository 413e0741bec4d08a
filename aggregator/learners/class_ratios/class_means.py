"""Class ratios whose mixture of class means is nearest to the mean of a set.

Least squares turns means of bags into means of classes. The module also corrects what the errors of these means add to
squared distances, and estimates the proportions behind proportions that were released with noise.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.kernel_means import KernelMeans, thinned
from aggregator.learners.inputs.validation import (
    checked_covariance,
    checked_means,
    checked_proportions,
    require_flag,
    require_number,
)
from aggregator.learners.kernels.exact import ExactSupport, Kernel
from aggregator.learners.kernels.features import FeatureKernel, LinearKernel
from federation.contract.errors import InputError
from federation.numerics import simplex
from federation.numerics.rows import contrasts


@dataclass(frozen=True, eq=False)
class MeanErrors:
    """Second moments of the errors E (D, C) of class means mu = sum_i B_i phi_i, B being the matrix of an `Unmixing`.

    - Sampling: E'WE is tr(W S) `sampling` in expectation for every metric W, with the `covariance` S (D, D) of the
      features of one row within bags and `sampling` = sum_i B_i B_i' / n_i (C, C). `freedom` are the degrees of
      freedom that S was estimated with from the rows of the bags themselves, None when it owes them nothing.
    - Noise of variance v_i per coordinate of the released mean i: tr(W) `release`, `release` = sum_i v_i B_i B_i'.
    - Noise in proportions: see `undistorted` for `distortion` and its T, `noise` (C, C).

    mu L mu' is the part of S that vanishes when the classes of rows are known, L = `label_covariance` (C, C).
    """

    covariance: np.ndarray
    freedom: int | None
    sampling: np.ndarray
    release: np.ndarray
    distortion: np.ndarray
    noise: np.ndarray
    label_covariance: np.ndarray

    def __post_init__(self) -> None:
        """Raises `InputError` for a covariance that is none, as a damaged model may have."""
        shape = self.covariance.shape
        if len(shape) != 2 or not 0 < shape[0] == shape[1]:
            raise InputError(f"the covariance of features must be a square matrix, got the shape {shape}")

    @classmethod
    def of(
        cls, unmixing: Unmixing, covariance: np.ndarray, freedom: int | None, mean_noise: np.ndarray | float
    ) -> MeanErrors:
        """For S = `covariance` and its `freedom`, and v = `mean_noise`, (M,) or one number."""
        sampling, release = unmixing.squares(1 / unmixing.sizes), unmixing.squares(mean_noise)
        of_noise = unmixing.distortion, unmixing.mean_noise
        return cls(covariance, freedom, sampling, release, *of_noise, unmixing.label_covariance)

    def whitening(self, ridge: float) -> np.ndarray:
        """W = (S + n v I + `ridge` tr(S)/D I)^-1 (D, D), the metric that the errors themselves suggest.

        n v is the noise of released means in units of what one row adds. Where there are no errors, W = I.
        """
        dimension = len(self.covariance)
        noise = float(np.trace(self.release) / np.trace(self.sampling))
        level = noise + ridge * float(np.trace(self.covariance)) / dimension
        return np.linalg.inv(self.covariance + (level or 1.0) * np.eye(dimension))

    def debiased(self, products: np.ndarray, metric: np.ndarray | None) -> np.ndarray:
        """mu'W mu (..., C, C) without what sampling and release add to it; W is I for `metric` None, or `whitening`."""
        spread = self.spread(metric)
        level = len(self.covariance) if metric is None else np.trace(metric)
        unbiased = products - spread * self.sampling - level * self.release
        return given_labels(unbiased, self.sampling, self.label_covariance, spread)

    def spread(self, metric: np.ndarray | None) -> float:
        """Expected |W^(1/2) (phi(x) - E phi(x))|^2 of another row within a bag.

        For W = (S + c I)^-1 and S estimated with f degrees of freedom that is t / (1 - t/f), t = tr(W S) (by leaving
        rows out one by one; Ledoit and Peche 2011 for the limit).
        """
        if metric is None:
            return float(np.trace(self.covariance))
        seen = float(np.sum(metric * self.covariance))
        return seen if self.freedom is None else seen / (1 - seen / self.freedom)


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


_LEAST_LEFT = 0.02  # of the products of class means, whatever noise there is
_LEAST_RELIABLE = 0.1, 0.5  # share of the variance between bags that is taken for true, whatever the noise
_ROUNDING = 1e-13  # share of the largest product of means: differences below it are no differences
_NEGLIGIBLE = 1e-12  # share of the largest eigenvalue or variance: rounding errors


def expected_proportions(proportions: np.ndarray, sizes: np.ndarray, noise: np.ndarray | None) -> np.ndarray:
    """Best linear predictions (M, C) of the true proportions from noisy ones (M, C) with noise covariances (M, C, C).

    p + S (S + N_i)^-1 (P_i - p), where p is the mean over bags, weighted by their sizes (M,), and S the covariance
    between bags less what noise adds to it (regression calibration: Carroll et al. 2006, Measurement Error in Nonlinear
    Models, ch. 4). Least squares on them is unbiased where least squares on noisy proportions shrinks, and a likelihood
    that takes them for the truth is not misled by entries far off the simplex. Rows sum to 1 as before but may leave
    the simplex; without noise they are `proportions`. S keeps a tenth of the variance (of few bags half) or more, so
    that noise as large as the signal leaves the classes in place.

    Examples:
        >>> shares, sizes = np.array([[1.2, -0.2], [0.1, 0.9], [0.5, 0.5]]), np.array([10, 10, 10])
        >>> noise = np.tile([[0.05, -0.05], [-0.05, 0.05]], (3, 1, 1))
        >>> expected_proportions(shares, sizes, noise).round(2)  # nearer to their mean
        array([[ 1.07, -0.07],
               [ 0.21,  0.79],
               [ 0.52,  0.48]])
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
    # Half of the variance for few bags, whose variance says little about that of the noise in it, a tenth for many.
    least = np.clip(3 * proportions.shape[1] / len(proportions), *_LEAST_RELIABLE)
    true = (back * np.clip(reliability, least, 1.0)) @ back.T
    gains = np.linalg.pinv(true + errors, hermitian=True) @ true
    return np.asarray(mean + np.einsum("ij,ijk->ik", apart, gains) @ basis.T)


@dataclass(frozen=True, eq=False)
class Unmixing:
    """From means of bags to means of classes, and what errors of the means and of the proportions do through it.

    Proportions (M, C) of bags of `sizes` (M,), with the covariance (M, C, C) of their noise or None.

    Examples:
        >>> Unmixing(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([10, 10])).matrix.round(2)
        array([[ 1.14, -0.29],
               [-0.14,  1.29]])
    """

    proportions: np.ndarray
    sizes: np.ndarray
    noise: np.ndarray | None = None

    @cached_property
    def matrix(self) -> np.ndarray:
        """B (M, C), so that sum_i B_iy mean_i is the mean of class y.

        B = N X (X'N X)^-1 with N = diag(sizes), least squares, weighted as the sampling errors of bags want it; its
        columns sum to 1. X = P, the proportions, without noise; for M = C, B is then the inverse of P. With noise P'NP
        is larger than it should be and class means shrink towards each other. X then holds the expected true
        proportions, which for equal noise is the same as taking the noise out of P'NP (Fuller 1987, Measurement Error
        Models). To second order in the noise, least squares over M bags is biased as if M - C - 1 of them had it, so
        that is corrected.
        """
        bags, classes = self.proportions.shape
        share = max(bags - classes - 1, 0) / bags
        noise = None if self.noise is None or share == 0 else self.noise * share
        expected = expected_proportions(self.proportions, self.sizes, noise)
        weighted = self.sizes[:, None] * expected
        return np.ascontiguousarray(np.linalg.solve(expected.T @ weighted, weighted.T).T)

    def squares(self, weights: np.ndarray | float) -> np.ndarray:
        """sum_i weights_i B_i B_i' (C, C)."""
        return np.asarray((self.matrix.T * weights) @ self.matrix)

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
        return np.asarray(np.diag(weights @ self.proportions) - squares)


def centred(quadratic: np.ndarray) -> np.ndarray:
    """H Q H (..., C, C) for H = I - 11'/C: the same form on vectors that sum to zero, and 0 along 1.

    Examples:
        >>> centred(np.array([[3.0, 1.0], [1.0, 1.0]]))
        array([[ 0.5, -0.5],
               [-0.5,  0.5]])
    """
    means = quadratic.mean(axis=-1)
    found = quadratic - means[..., :, None] - means[..., None, :] + means.mean(axis=-1)[..., None, None]
    return np.asarray((found + found.swapaxes(-1, -2)) / 2)


def positive(quadratic: np.ndarray) -> np.ndarray:
    """`quadratic` (..., C, C), made positive semidefinite on vectors that sum to zero by the least change.

    Differences of noisy terms can have negative eigenvalues there, which no products of means have.

    Examples:
        >>> positive(np.array([[1.0, 2.0], [2.0, 1.0]]))  # (1, -1) had a negative square
        array([[1.5, 1.5],
               [1.5, 1.5]])
    """
    values, vectors = np.linalg.eigh(centred(quadratic))
    return np.asarray(quadratic - (vectors * np.minimum(values, 0.0)[..., None, :]) @ vectors.swapaxes(-1, -2))


def tempered(corrected: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """As much of the way from `raw` products of means (..., C, C) to `corrected` ones as noise lets anybody know.

    A correction that takes more than all of them away along some vector that sums to zero, or nearly so, is itself
    noise, and the little that is left would decide about everything. So it is made in part only, the same part in all
    directions, such that `_LEAST_LEFT` of the raw products is left in each. Class means that are equal up to rounding
    stay so.
    """
    basis = contrasts(raw.shape[-1])
    values, vectors = np.linalg.eigh(basis.T @ centred(raw) @ basis)
    nothing = values[..., -1:] <= _ROUNDING * np.abs(raw).max(axis=(-1, -2))[..., None]
    scale = np.sqrt(np.where(nothing, 1.0, np.maximum(values, np.finfo(float).tiny + _NEGLIGIBLE * values[..., -1:])))
    units = vectors / scale[..., None, :]
    left = np.linalg.eigvalsh(units.swapaxes(-1, -2) @ (basis.T @ centred(corrected) @ basis) @ units)[..., :1]
    part = np.minimum(1.0, (1 - _LEAST_LEFT) / np.maximum(1 - left, _NEGLIGIBLE))[..., None]
    return np.asarray(np.where(nothing[..., None], positive(raw), raw + part * (corrected - raw)))


def undistorted(products: np.ndarray, distortion: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Products Q of class means (..., C, C) without what noise in the proportions added to them.

    Noise s_i T moves class means mu by -mu D, with E D'QD = tr(Q T) `distortion`; see `Unmixing`.

    Examples:
        >>> undistorted(np.eye(2), distortion=np.full((2, 2), 0.5), noise=np.array([[0.1, -0.1], [-0.1, 0.1]]))
        array([[ 0.9, -0.1],
               [-0.1,  0.9]])
    """
    added = np.einsum("...kl,kl->...", positive(products), noise)
    return np.asarray(products - added[..., None, None] * distortion)


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
    return np.asarray(products + np.minimum(excess, spread)[..., None, None] * sampling)
