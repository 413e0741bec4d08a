"""Rows as linear classifiers take them: optionally random Fourier features, centred, and of unit mean square."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.learners.inputs.validation import require_integer, require_number
from aggregator.learners.kernels.distances import median_squared_distance, tiles
from aggregator.learners.kernels.features import FeatureKernel, FourierKernel, LinearKernel
from federation.contract.errors import InputError
from federation.contract.randomness import digest


class ScaledRows(RatioEstimator):
    """An estimator with the parameters `features` and `seed`, which scores rows one by one.

    Columns keep their relative scales, so they should share a unit, as they do behind a feature map that scales them;
    a common shift and factor of all rows changes nothing.

    Attributes:
        centre_: mean (D,) of the rows, or of their random features.
        scale_: root mean square of what is left.
        frequencies_: of the random Fourier features; None for the rows themselves.
    """

    fitted: ClassVar[tuple[str, ...]] = ("centre_", "scale_", "frequencies_")

    features: int | None

    def embedding_key(self) -> str:
        """The digest of all that is fitted: no other fit gives the same scores."""
        check_is_fitted(self, "centre_")
        description, arrays = self.to_arrays()
        return digest(json.dumps(description, sort_keys=True), arrays)

    def _fit_rows(self, bags: Sequence[np.ndarray], bandwidth: float) -> np.ndarray:
        """Learns the scaling from the bags; their scaled rows (N, D), bag after bag.

        `bandwidth` is gamma of the Fourier features times the median squared distance of the rows, if there are any.
        """
        rows = np.concatenate(bags)
        self.frequencies_: np.ndarray | None = None
        if self.features is not None:
            require_integer("features", self.features, 2, 512)
            require_number("bandwidth", bandwidth, 1.0)
            gamma = bandwidth / median_squared_distance(rows, int(self.seed))
            self.frequencies_ = FourierKernel.draw(rows.shape[1], gamma, int(self.features), int(self.seed)).frequencies
        rows = self._kernel().features(rows)
        self.centre_ = rows.mean(axis=0)
        rows -= self.centre_
        with np.errstate(over="ignore"):
            self.scale_ = float(np.sqrt(np.mean(rows**2)))
        if not 0 < self.scale_ < np.inf:
            raise InputError(
                f"the rows of the bags must differ, by numbers that can be squared; got spread {self.scale_}"
            )
        rows /= self.scale_
        return rows

    def _tiles(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Scaled rows (t, D) of a set (n, d), a few at a time. Raises `InputError` for rows of another kind."""
        check_is_fitted(self, "centre_")
        columns = len(self.centre_) if self.frequencies_ is None else len(self.frequencies_)
        kernel = self._kernel()
        for tile in tiles(rows, "rows", columns):
            yield (kernel.features(tile) - self.centre_) / self.scale_

    def _kernel(self) -> FeatureKernel:
        return LinearKernel() if self.frequencies_ is None else FourierKernel(self.frequencies_)
