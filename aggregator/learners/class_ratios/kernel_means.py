"""What estimators from kernel mean embeddings of bags share: the kernel, its bandwidth, and how sets are embedded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.bandwidth_selection import selected_bandwidth
from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.learners.inputs.feature_names import remember_names
from aggregator.learners.inputs.validation import checked_set, require_integer, require_number
from aggregator.learners.kernels.catalogue import WITH_BANDWIDTH, from_arrays, kernel
from aggregator.learners.kernels.distances import median_squared_distance
from aggregator.learners.kernels.exact import ExactSupport
from aggregator.learners.kernels.features import FeatureKernel
from aggregator.learners.kernels.interface import Kernel
from federation.contract.errors import InputError

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
            to select it by held-out bags (`bandwidth_selection`).
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
