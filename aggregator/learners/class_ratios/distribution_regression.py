"""Class ratios predicted from the mean of a set, as bags and their proportions teach."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.kernel_means import KernelMeans
from aggregator.learners.inputs.validation import checked_means, checked_proportions
from aggregator.learners.kernels.exact import ExactSupport
from aggregator.learners.kernels.features import FeatureKernel, LinearKernel
from federation.numerics import simplex

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
