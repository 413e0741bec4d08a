"""Fits the estimator that `class_ratio` was asked for to the answers of parties."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from aggregator.learners.class_ratios import catalogue
from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.protocols.class_ratio.conditioning import conditioning
from aggregator.protocols.class_ratio.ratio_options import RatioOptions
from federation.features.feature_map import FeatureMap
from federation.numerics.rows import Floats

KERNEL_ESTIMATORS = ("whitened", "class_means", "mmd", "regression")  # of which the kernel can be chosen
CORRECTED_ESTIMATORS = ("whitened", "class_means", "energy")  # for the known noise of proportions


def least_rows(options: RatioOptions) -> int:
    """The rows that a bag must have to be of use: two where kernels of different rows of a bag are averaged."""
    pairs = options.estimator == "energy" or (options.estimator, options.kernel) == ("class_means", "exact")
    return 2 if pairs else 1


@dataclass(frozen=True, eq=False)
class Labelled:
    """What is known of M bags: `sizes` (M,), noisy label `counts` (draws, M, C), and what the bags look like.

    `features` are the rows (n_i, d) of each bag, or mean embeddings (draws, M, D), or (1, M, D) for all draws.
    `count_noise` (M, C, C) are covariances of the bags' counts, None when unknown or without noise, and `sum_variance`
    is the variance per coordinate of a bag's sum of rows. Bags of equal `groups` (M,) may have rows of the same person
    or place.
    """

    sizes: Floats
    counts: Floats
    count_noise: Floats | None
    features: list[Floats] | Floats
    sum_variance: float
    groups: np.ndarray

    @property
    def draws(self) -> int:
        """How many noisy versions there are."""
        return len(self.counts)

    def proportions(self, draw: int) -> Floats:
        """Label proportions (M, C), unbiased, so that noisy ones may leave the simplex."""
        return np.asarray(self.counts[draw] / self.sizes[:, None])

    def noise(self) -> Floats | None:
        """Covariance (M, C, C) of the proportions, None without noise."""
        if self.count_noise is None:
            return None
        return self.count_noise / (self.sizes**2)[:, None, None]

    def conditioning(self) -> dict[str, float]:
        """How well the proportions of the first draw tell the classes apart; metrics of results.csv."""
        found = {name.replace(" ", "_"): value for name, value in conditioning(self.proportions(0)).items()}
        if self.count_noise is None:
            return found
        deviations = np.sqrt(np.diagonal(self.count_noise, axis1=1, axis2=2)).sum(axis=1) / self.sizes
        # Expected L1 distance by Gaussian noise over 2, that of the two proportions that are furthest apart.
        return {**found, "noise_to_signal": float(np.sqrt(2 / np.pi) * deviations.mean() / 2)}


class Fitting:
    """Estimators as the options say, behind `feature_map`; `public` are the public rows (N, d) before the Fourier step.

    `seed` is public: it draws random features and folds.
    """

    def __init__(self, options: RatioOptions, feature_map: FeatureMap, public: np.ndarray, seed: int) -> None:
        self._options, self._feature_map, self._public, self._seed = options, feature_map, public, seed

    def fit(self, labelled: Labelled, draw: int) -> RatioEstimator:
        """The estimator of one noise draw. Raises `InputError` when the bags cannot tell the classes apart."""
        estimator = catalogue.estimator_class(self._options.estimator)(**self._parameters())
        known = {"groups": labelled.groups} if self._options.estimator == "auto" else {}
        proportions, noise, features = labelled.proportions(draw), labelled.noise(), labelled.features
        with warnings.catch_warnings():  # what an estimator warns of stands in the options, or in its diagnostics
            warnings.simplefilter("ignore", UserWarning)
            if isinstance(features, list):
                return estimator.fit(features, proportions, noise, **known)
            found: RatioEstimator = estimator.fit_means(
                features[draw if len(features) > 1 else 0],
                labelled.sizes,
                proportions,
                noise,
                covariance=self._covariance,
                mean_noise=labelled.sum_variance / labelled.sizes**2,
                covariance_rows=len(self._public),
                **known,
            )
            return found

    def _parameters(self) -> dict[str, Any]:
        """The estimator's own parameters among the options."""
        options, found = self._options, {}
        if options.estimator in KERNEL_ESTIMATORS:
            kernel = "linear" if options.submit == "embedding" else options.kernel
            automatic = "auto" if options.estimator == "mmd" else 1.0
            found = {"kernel": kernel, "bandwidth": options.bandwidth or automatic, "features": options.dimensions}
        if options.estimator == "proportion_svm" and options.bandwidth is not None:
            found = {"bandwidth": options.bandwidth, "features": options.dimensions}
        if options.estimator in CORRECTED_ESTIMATORS:
            found["corrected"] = options.corrected
        if options.estimator == "whitened":
            found["ridge"] = options.ridge
        return found if options.estimator == "energy" else {**found, "seed": self._seed}

    @cached_property
    def _covariance(self) -> np.ndarray:
        """Covariance (D, D) of random features among the public rows, whose class shares are like a bag's or not."""
        features = self._feature_map.steps[-1].apply(self._public)
        return np.cov(features, rowvar=False)
