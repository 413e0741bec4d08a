"""What estimators from kernel mean embeddings of bags share: the kernel, its bandwidth, and how sets are embedded."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.bandwidth_selection import selected_bandwidth
from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.learners.class_ratios.sample import thinned
from aggregator.learners.class_ratios.validation import checked, checked_set
from aggregator.learners.kernels.catalogue import WITH_BANDWIDTH, from_arrays, kernel
from aggregator.learners.kernels.exact import ExactSupport
from aggregator.learners.kernels.features import FeatureKernel
from aggregator.learners.kernels.interface import Kernel
from aggregator.learners.parameters import require_integer, require_number
from federation.contract.errors import InputError
from federation.numerics.distances import median_squared_distance


class KernelMeans(RatioEstimator):
    """An estimator that knows of a set U the mean phi_U of a kernel's features, or its mean kernels with the bags.

    Parameters: `kernel`, "exact", "fourier" or "nystrom" for the Gaussian kernel, by all pairs of rows, random features
    or landmarks, or "linear" for rows that are features already; `bandwidth` of a Gaussian kernel, gamma times the
    median squared distance of the bags' rows, or "auto" to select it by held-out bags (`bandwidth_selection`);
    `features`, the number of random features or landmarks; `seed` of those, and of the rows that the median is taken
    of. All are public.
    """

    kernels: ClassVar[tuple[str, ...]] = ("exact", "fourier", "nystrom", "linear")
    fitted: ClassVar[tuple[str, ...]] = (
        "n_features_in_",
        "bandwidth_",
        "operator_",
        "proportions_singular_values_",
    )

    kernel: str
    bandwidth: float | str
    features: int
    seed: int
    n_features_in_: int
    bandwidth_: float | None
    space_: FeatureKernel | ExactSupport  # what embeds
    operator_: np.ndarray  # (D, C) for kernels with features, (M, C) for others
    proportions_singular_values_: np.ndarray  # (C,), descending

    def fit(self, bags: Sequence[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None = None) -> Self:
        """As `RatioEstimator.fit` says; also raises `InputError` for parameters that cannot be used."""
        arrays, shares, covariance = checked(bags, proportions, noise)
        self._check_parameters()
        self._fit_bags(self._kernel(arrays, shares, covariance), arrays, shares, covariance)
        self.n_features_in_ = arrays[0].shape[1]
        return self

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

    @abstractmethod
    def _fit_bags(
        self, space: Kernel, bags: list[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None
    ) -> None:
        """Set what is fitted, from checked bags and proportions."""

    def _check_parameters(self) -> None:
        """Raises `InputError` for parameters that cannot be used."""
        if self.kernel not in self.kernels:
            raise InputError(f"kernel must be one of {', '.join(self.kernels)} for {self.name}, got {self.kernel!r}")
        if self.bandwidth != "auto":
            require_number("bandwidth, unless it is auto,", self.bandwidth, 1.0)
        require_integer("features", self.features, 1, 512)
        require_integer("seed", self.seed, 0, 0)

    def _kernel(self, bags: list[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None) -> Kernel:
        rows = np.concatenate(thinned(bags))
        if self.kernel not in WITH_BANDWIDTH:
            self.bandwidth_ = None
            return kernel(self.kernel, rows)
        self.bandwidth_ = (
            selected_bandwidth(self, bags, proportions, noise) if self.bandwidth == "auto" else float(self.bandwidth)
        )
        gamma = self.bandwidth_ / median_squared_distance(rows, int(self.seed))
        return kernel(self.kernel, rows, gamma, int(self.features), int(self.seed))
