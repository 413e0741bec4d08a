"""What `auto` chooses among: estimators that can be fitted to some of the bags, and asked about the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aggregator.learners.class_ratios.bag_classifier import BagClassifier
from aggregator.learners.class_ratios.class_means import ClassMeans, WhitenedMeans
from aggregator.learners.class_ratios.distribution_regression import DistributionRegression
from aggregator.learners.class_ratios.estimator import RatioEstimator
from federation.numerics import simplex

Indices = NDArray[np.int64]


class Evidence(NamedTuple):
    """What is known of M bags: `sizes` (M,), `proportions` (M, C), the covariance (M, C, C) of their noise or None."""

    sizes: np.ndarray
    proportions: np.ndarray
    noise: np.ndarray | None

    def of(self, bags: Indices) -> Evidence:
        """Of some of them."""
        noise = None if self.noise is None else self.noise[bags]
        return Evidence(self.sizes[bags], self.proportions[bags], noise)

    @property
    def mean(self) -> np.ndarray:
        """Ratios (C,) of the bags together."""
        return simplex.project(self.sizes @ self.proportions / self.sizes.sum())

    @property
    def noise_floor(self) -> float:
        """The mean L1 error that the true ratios would have beside noisy proportions, reckoned as Gaussian noise."""
        if self.noise is None:
            return 0.0
        deviations = np.sqrt(np.diagonal(self.noise, axis1=1, axis2=2))
        return float(np.sqrt(2 / np.pi) * deviations.sum(axis=1).mean())


class Candidate(NamedTuple):
    """An estimator that can be fitted to some of the bags, and asked about others.

    `fit` takes the numbers of the bags (m,) and raises `InputError` where these do not tell the classes apart; what it
    returns goes into `estimate` with the numbers of n bags, for ratios (n, C).
    """

    fit: Callable[[Indices], RatioEstimator]
    estimate: Callable[[RatioEstimator, Indices], np.ndarray]


def of_rows(bags: list[np.ndarray], evidence: Evidence, seed: int) -> dict[str, Candidate]:
    """For bags of rows (n_i, d), by name; the default first."""

    def whitened(kept: Indices) -> RatioEstimator:
        return WhitenedMeans(seed=seed).fit([bags[bag] for bag in kept], *evidence.of(kept)[1:])

    def estimated(estimator: RatioEstimator, some: Indices) -> np.ndarray:
        return estimator.estimate(np.stack([estimator.embed(bags[bag]) for bag in some]))

    by_rows = _Regression(DistributionRegression("linear", seed=seed), bags, evidence)
    by_features = _Regression(DistributionRegression("fourier", seed=seed), bags, evidence)
    return {
        BagClassifier.name: Candidate(_Classifier(seed, bags, evidence).fitted, estimated),
        WhitenedMeans.name: Candidate(whitened, estimated),
        "regression": by_rows.candidate,
        "regression_fourier": by_features.candidate,
    }


def of_means(means: np.ndarray, evidence: Evidence, seed: int, **known: Any) -> dict[str, Candidate]:
    """For bags of which only mean features (M, D) are known, by name; the default first.

    `known` are the arguments of `ClassMeans.fit_means`, `mean_noise` (M,) among them.
    """

    def fitted(kind: type[ClassMeans], kept: Indices) -> RatioEstimator:
        some = {**known, "mean_noise": known["mean_noise"][kept]}
        return kind("linear", seed=seed).fit_means(means[kept], *evidence.of(kept), **some)

    def estimated(estimator: RatioEstimator, some: Indices) -> np.ndarray:
        return estimator.estimate(means[some])

    found = {kind.name: Candidate(partial(fitted, kind), estimated) for kind in (WhitenedMeans, ClassMeans)}
    single = [mean[None] for mean in means]
    return {**found, "regression": _Regression(DistributionRegression("linear"), single, evidence).candidate}


@dataclass(frozen=True, eq=False)
class _Classifier:
    """A bag classifier that chooses its regularisation once, with all bags; to look for it again takes five times."""

    seed: int
    bags: list[np.ndarray]
    evidence: Evidence

    def fitted(self, kept: Indices) -> BagClassifier:
        if len(kept) == len(self.bags):
            return self._whole
        one = BagClassifier(self._whole.regularisation_, seed=self.seed)
        return one.fit([self.bags[bag] for bag in kept], *self.evidence.of(kept)[1:])

    @cached_property
    def _whole(self) -> BagClassifier:
        return BagClassifier(seed=self.seed).fit(self.bags, self.evidence.proportions, self.evidence.noise)


@dataclass(frozen=True, eq=False)
class _Regression:
    """A regression whose features of the bags are found once, and which then learns from some of them again."""

    unfitted: DistributionRegression
    bags: list[np.ndarray]
    evidence: Evidence

    @property
    def candidate(self) -> Candidate:
        return Candidate(self._fitted, self._estimated)

    @cached_property
    def _whole(self) -> DistributionRegression:
        return self.unfitted.fit(self.bags, self.evidence.proportions, self.evidence.noise)

    @cached_property
    def _means(self) -> np.ndarray:
        return np.stack([self._whole.embed(bag) for bag in self.bags])

    def _fitted(self, kept: Indices) -> DistributionRegression:
        return self._whole.learned_from(self._means[kept], self.evidence.proportions[kept])

    def _estimated(self, estimator: RatioEstimator, some: Indices) -> np.ndarray:
        return estimator.estimate(self._means[some])


def member(description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> RatioEstimator:
    """A fitted candidate from what its `to_arrays` returned."""
    kinds: tuple[type[RatioEstimator], ...] = (BagClassifier, WhitenedMeans, ClassMeans, DistributionRegression)
    return {kind.name: kind for kind in kinds}[description["estimator"]].from_arrays(description, arrays)
