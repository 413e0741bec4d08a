"""Class ratios from kernel mean embeddings of bags: maximum mean discrepancy, and distribution regression.

- `MMD` is the estimator as published (Iyer, Nath and Sarawagi 2016).
- `DistributionRegression` predicts the ratios from the mean of a set, as bags and their proportions teach.

Both share the kernel, its bandwidth and the embedding of sets (`KernelMeans`). `selected_bandwidth` finds the bandwidth
that predicts held-out bags best.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.linalg import qr
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.learners.inputs.validation import (
    checked_means,
    checked_proportions,
    checked_set,
    remember_names,
    require_integer,
    require_number,
)
from aggregator.learners.kernels.exact import ExactSupport, Kernel, median_squared_distance
from aggregator.learners.kernels.features import (
    WITH_BANDWIDTH,
    FeatureKernel,
    FeatureSupport,
    LinearKernel,
    from_arrays,
    kernel,
)
from federation.contract.errors import InputError
from federation.numerics import simplex

_ROWS = 20_000
_BAGS = 1_000


def thinned(bags: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Evenly spaced rows of evenly spaced bags, in order: all of them up to 20,000 rows in 1,000 bags.

    For what needs no more: a bandwidth, landmarks, a covariance. Of more bags about 1,000 are kept, and then about
    every k-th row of each, so that those of at least two rows in the original have them here whenever the average bag
    has.

    Examples:
        >>> thinned([np.zeros((30_000, 1)), np.zeros((20_000, 1))])[0].shape
        (15000, 1)
    """
    kept = bags[:: -(-len(bags) // _BAGS)]
    step = max(1, sum(map(len, kept)) // _ROWS)
    return [bag[::step] for bag in kept]


@dataclass(eq=False, repr=False)
class KernelMeans(RatioEstimator):
    """An estimator that knows of a set U the mean phi_U of a kernel's features, or its mean kernels with the bags.

    Parameters:
        kernel: "exact", "fourier" or "nystrom" for the Gaussian kernel exp(-gamma |x-y|^2), by all pairs of rows,
            random features or landmarks, or "linear" for rows that are features already.
        bandwidth: of a Gaussian kernel, gamma times the median squared distance of the bags' rows, positive; or "auto"
            to select it by held-out bags (`selected_bandwidth`).
        features: the number D of random features or landmarks, at least 1.
        seed: of those, and of the rows that the median is taken of, at least 0.

    All are public.

    Attributes:
        n_features_in_: d, the columns of the rows.
        bandwidth_: the bandwidth that was used; None for kernels without.
        space_: what embeds, a kernel with features or the support of an exact one.
        operator_: linear map of embeddings, (D, C) for kernels with features, (M, C) for others.
        proportions_singular_values_: (C,), descending.
    """

    kernels: ClassVar[tuple[str, ...]] = ("exact", "fourier", "nystrom", "linear")
    fitted: ClassVar[tuple[str, ...]] = ("n_features_in_", "bandwidth_", "operator_", "proportions_singular_values_")

    kernel: str = "fourier"
    bandwidth: float | str = 1.0
    features: int = 512
    seed: int = 0
    space_: FeatureKernel | ExactSupport = field(init=False)

    def embed(self, rows: np.ndarray) -> np.ndarray:
        """Mean features (D,), or for exact kernels the mean kernels with each bag (M,)."""
        check_is_fitted(self, "operator_")
        rows = checked_set(rows, self.n_features_in_)
        return self.space_.mean(rows) if isinstance(self.space_, FeatureKernel) else self.space_.embed(rows)

    def embedding_key(self) -> str:
        """The digest of the kernel, and for exact ones of the bags."""
        check_is_fitted(self, "operator_")
        return self.space_.digest()

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """As `RatioEstimator.to_arrays` says."""
        description, arrays = super().to_arrays()
        space, kept = self.space_.to_arrays()
        return {**description, "space": space}, {**arrays, **{f"space_{name}": kept[name] for name in kept}}

    @classmethod
    def from_arrays(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """As `RatioEstimator.from_arrays` says."""
        estimator = super().from_arrays(description, arrays)
        kept = {name.removeprefix("space_"): array for name, array in arrays.items() if name.startswith("space_")}
        estimator.space_ = from_arrays(description["space"], kept)
        return estimator

    def _begin_means(self, means: np.ndarray) -> None:
        """What comes first where bags are given by mean features (M, D). Raises `InputError` for another kernel."""
        self._check_parameters()
        if self.kernel != "linear":
            raise InputError(f"fit_means needs kernel 'linear', which takes rows for features, got {self.kernel!r}")
        remember_names(self, [means])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.kernel not in self.kernels:
            raise InputError(f"kernel must be one of {', '.join(self.kernels)} for {self.name}, got {self.kernel!r}")
        if self.bandwidth != "auto":
            require_number("bandwidth, unless it is auto,", self.bandwidth, 1.0)
        require_integer("features", self.features, 1, 512)

    def _kernel(self, bags: list[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None) -> Kernel:
        """The kernel that the parameters name, with its bandwidth for these bags."""
        self.n_features_in_ = bags[0].shape[1]
        self.bandwidth_: float | None = None
        rows = np.concatenate(thinned(bags))
        if self.kernel not in WITH_BANDWIDTH:
            return kernel(self.kernel, rows)
        selected = self.bandwidth == "auto"
        self.bandwidth_ = selected_bandwidth(self, bags, proportions, noise) if selected else float(self.bandwidth)
        gamma = self.bandwidth_ / median_squared_distance(rows, int(self.seed))
        return kernel(self.kernel, rows, gamma, int(self.features), int(self.seed))


_STRENGTHS = np.geomspace(1e-4, 100.0, 25)  # of the ridge, in squares of the largest singular value of the examples


@dataclass(eq=False, repr=False)
class DistributionRegression(KernelMeans):
    """Ridge regression of the proportions of M bags on the means of their features, projected onto the simplex.

    Distribution regression (Szabo et al. 2016, with a linear kernel on mean embeddings): a bag is one example. It takes
    for granted only that what bags have in common with their ratios holds for other sets too; where the rows of a class
    look different in every bag, as they do in those of different persons or places, that may hold while no class looks
    the same twice. Where they look alike, the other estimators need far fewer bags. The ridge is chosen by leaving out
    one bag at a time.

    Parameters: see `KernelMeans`; `features` are fewer, for there are few bags.

    Attributes, besides those of `KernelMeans`:
        centre_: mean (D,) of the bags' means.
        mean_: mean (C,) of the bags' proportions.
        ridge_: that was chosen.

    Examples:
        >>> rng, shares = np.random.default_rng(0), np.linspace([0.1, 0.9], [0.9, 0.1], 8)
        >>> draw = lambda share, n: rng.normal(4.0 * (np.arange(n) < share * n))[:, None]  # share of class 1
        >>> bags = [draw(share, 200) for share in shares[:, 1]]
        >>> DistributionRegression().fit(bags, shares).predict(draw(0.7, 500)).round(2)
        array([0.32, 0.68])
    """

    name: ClassVar[str] = "regression"
    kernels: ClassVar[tuple[str, ...]] = ("fourier", "nystrom", "linear")
    fitted: ClassVar[tuple[str, ...]] = (*KernelMeans.fitted, "centre_", "mean_", "ridge_")

    features: int = 256

    def fit_means(
        self,
        means: np.ndarray,
        sizes: np.ndarray,
        proportions: np.ndarray,
        noise: np.ndarray | None = None,
        **unused: Any,
    ) -> Self:
        """Learn from the mean features (M, D) of bags instead of their rows; needs kernel "linear".

        Takes what `ClassMeans.fit_means` takes; nothing but `means` and `proportions` makes a difference. Raises
        `InputError` as `fit` does, and unless all are finite and of such shapes.
        """
        self._begin_means(means)
        means, *_ = checked_means(means, sizes, 0.0)
        proportions, _ = checked_proportions(proportions, noise, len(means))
        self.n_features_in_, self.bandwidth_ = means.shape[1], None
        self._learn(LinearKernel(), means, proportions)
        return self

    def learned_from(self, means: np.ndarray, proportions: np.ndarray) -> Self:
        """One with the same features that knows these bags only, by their mean features (m, D), as `embed` finds them.

        Proportions (m, C) need not tell the classes apart.
        """
        check_is_fitted(self, "operator_")
        found = copy(self)
        found._learn(self.space_, means, proportions)
        return found

    def estimate(self, embedding: np.ndarray) -> np.ndarray:
        """Proj(mean + operator'(embedding - centre))."""
        check_is_fitted(self, "operator_")
        return simplex.project(self.mean_ + (embedding - self.centre_) @ self.operator_)

    def _fit(self, bags: list[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None) -> None:
        space = self._kernel(bags, proportions, noise)
        assert isinstance(space, FeatureKernel)
        self._learn(space, space.support(bags).means, proportions)

    def _learn(self, space: FeatureKernel | ExactSupport, means: np.ndarray, proportions: np.ndarray) -> None:
        self.centre_, self.mean_ = means.mean(axis=0), proportions.mean(axis=0)
        found = ridge_regression(means - self.centre_, proportions)
        self.space_, self.ridge_, self.operator_ = space, found.ridge, found.slope
        self.proportions_singular_values_ = np.linalg.svd(proportions, compute_uv=False)


class Ridge(NamedTuple):
    """The `slope` (D, C), the `ridge`, and the residuals (M, C) of each example by all others."""

    slope: np.ndarray
    ridge: float
    left_out: np.ndarray


def ridge_regression(examples: np.ndarray, targets: np.ndarray) -> Ridge:
    """Ridge regression of targets (M, C) with an intercept on centred examples (M, D).

    The ridge is the one of 25, from 1e-4 to 100 times the largest eigenvalue of X X', whose predictions of every
    example by all others have the least squared error: residual / (1 - h_i), h_i = (X (X'X + ridge I)^-1 X')_ii + 1/M,
    which is exact for a ridge that stays as it is. Equal examples say nothing, and the slope is 0. In time and memory
    linear in M.

    Examples:
        >>> x, y = np.array([[-1.0], [0.0], [1.0]]), np.array([[0.2], [0.5], [0.8]])
        >>> found = ridge_regression(x, y)
        >>> round(found.ridge, 4), (x @ found.slope).round(2).ravel().tolist()
        (0.0002, [-0.3, 0.0, 0.3])
    """
    left, singular, right = np.linalg.svd(examples, full_matrices=False)
    values = singular**2
    centred = targets - targets.mean(axis=0)
    moments = left.T @ centred
    best: Ridge | None = None
    for ridge in _STRENGTHS * (values[0] or 1.0):
        shrunk = values / (values + ridge)
        leverage = left**2 @ shrunk + 1 / len(examples)
        residuals = centred - left @ (shrunk[:, None] * moments)
        left_out = residuals / np.maximum(1 - leverage, np.finfo(float).eps)[:, None]
        if best is None or np.sum(left_out**2) < np.sum(best.left_out**2):
            slope = right.T @ ((singular / (values + ridge))[:, None] * moments)
            best = Ridge(slope, float(ridge), left_out)
    assert best is not None
    return best


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

    def error(bandwidth: float, train: np.ndarray, held_out: np.ndarray) -> float:
        fresh = clone(estimator).set_params(bandwidth=bandwidth)
        fresh.fit([bags[i] for i in train], proportions[train], None if noise is None else noise[train])
        found = np.stack([fresh.predict(bags[i]) for i in held_out])
        return float(np.abs(found - simplex.project(proportions[held_out])).sum(axis=1).mean())

    try:
        errors = [error(bandwidth, *groups) + error(bandwidth, *groups[::-1]) for bandwidth in CANDIDATES]
    except InputError:  # of a few bags only: all of them together may well be fitted
        return 1.0
    return CANDIDATES[int(np.argmin(errors))]


def two_groups(proportions: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Indices of two disjoint groups of C bags with independent proportions (M, C), or None.

    Each is chosen among those left by pivoted QR, which takes the most different ones first, so it does not matter
    in which order bags come.

    Examples:
        >>> two_groups(np.array([[0.5, 0.5], [1.0, 0.0], [0.6, 0.4], [0.0, 1.0]]))
        (array([1, 3]), array([0, 2]))
    """
    left, groups, classes = np.arange(len(proportions)), [], proportions.shape[1]
    for _ in range(2):
        if len(left) < classes:
            return None
        triangle, pivots = qr(proportions[left].T, mode="r", pivoting=True)
        sizes = np.abs(np.diag(triangle))
        if sizes[-1] <= _INDEPENDENT * sizes[0]:
            return None
        groups.append(np.sort(left[pivots[:classes]]))
        left = np.delete(left, pivots[:classes])
    return groups[0], groups[1]
