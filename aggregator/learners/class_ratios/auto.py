"""The estimator of class ratios that looks first whether bags differ in more than their ratios."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.candidates import Candidate, Evidence, member, of_means, of_rows
from aggregator.learners.class_ratios.drift import Sketch, drift_test
from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.learners.class_ratios.findings import MEAN, SIGNIFICANT, said
from aggregator.learners.class_ratios.leaving_out import folds, left_out, left_out_of_all, mean_error, stacked
from aggregator.learners.inputs.feature_names import remember_names
from aggregator.learners.inputs.validation import checked, checked_covariance, checked_means, checked_proportions
from federation.contract.errors import InputError
from federation.contract.randomness import digest

_USEFUL = 0.95  # of the error of the mean of bags, which some estimator must pass to be of use
_PULL = 0.1  # of the weights to the default: few bags say little about weights


@dataclass(eq=False, repr=False)
class AutoRatios(RatioEstimator):
    """`BagClassifier` where bags differ in their class ratios alone; where they drift, what predicts other bags best.

    All other estimators take it that the rows of a class look alike in every bag. Bags of persons, places or days often
    do not keep to that, and then the best estimator can be worse than to say the mean ratios of the bags of every set.
    So two checks are made: `drift.drift_test`, and the error on bags that a fit has left out, beside that of the mean
    of the others. Where there is no sign of drift (p from .01, and an error below that of the mean), the estimator is
    `BagClassifier`, bit for bit. Elsewhere it is a mixture of estimators (`BagClassifier`, the mean of bags,
    `WhitenedMeans`, and `DistributionRegression` of rows and of random features), weighted by their errors on bags left
    out (`leaving_out.stacked`) or, where none of them passes the mean of bags, that mean. A warning (`UserWarning`)
    says which and why.

    Give at least two bags more than there are classes: with as many bags as classes nothing can be checked.

    Parameters:
        seed: of folds, random features and the estimators, at least 0.

    Attributes:
        weights_: by name, of the estimators in the mixture, and of `mean_of_bags`; their sum is 1.
        mean_: ratios (C,) of the bags together.
        diagnostics_: `bags` M; `drift_p_value` and `drift_ratio` (the statistic over its degrees of freedom) where M
            exceeds the number of classes; `noise_floor`, the mean L1 error that exact ratios would have beside the
            noisy proportions; `error_NAME` of every estimator that was tried, on bags left out, noise included, and
            `error_auto` of the mixture on the same; `weight_NAME` as `weights_`.
        warning_: what was warned of, None where there was no reason.

    Examples:
        >>> rng, shares = np.random.default_rng(0), np.linspace([0.1, 0.9], [0.9, 0.1], 6)
        >>> draw = lambda share, n: rng.normal(4.0 * (np.arange(n) < share * n))[:, None]  # share of class 1
        >>> bags = [draw(share, 100) for share in shares[:, 1]]
        >>> estimator = AutoRatios().fit(bags, shares)
        >>> estimator.predict(draw(0.7, 500)).round(2), estimator.weights_
        (array([0.3, 0.7]), {'bag_classifier': 1.0})
        >>> bags = [bag + shift for bag, shift in zip(bags, rng.normal(scale=4.0, size=6))]  # each bag its own
        >>> with warnings.catch_warnings(action="ignore"):
        ...     estimator = AutoRatios().fit(bags, shares)
        >>> estimator.weights_, estimator.diagnostics_["drift_p_value"] < 0.01
        ({'mean_of_bags': 1.0}, True)
    """

    name: ClassVar[str] = "auto"
    fitted: ClassVar[tuple[str, ...]] = ("weights_", "mean_", "diagnostics_", "warning_")

    seed: int = 0

    def fit(
        self,
        bags: Sequence[np.ndarray],
        proportions: np.ndarray,
        noise: np.ndarray | None = None,
        groups: Sequence[Any] | np.ndarray | None = None,
    ) -> Self:
        """As `RatioEstimator.fit`; bags of equal `groups` (M,), as those of one person, are left out together."""
        rows, shares, covariance = checked(bags, proportions, noise)
        remember_names(self, bags)
        self._check_parameters()
        evidence = Evidence(np.array([len(bag) for bag in rows]), shares, covariance)
        try:
            sketch = Sketch.of_rows(rows, int(self.seed))
        except InputError:  # of single rows nobody knows how rows of a bag differ
            sketch = None
        return self._weigh(of_rows(rows, evidence, int(self.seed)), sketch, evidence, _groups(groups, len(rows)))

    def fit_means(
        self,
        means: np.ndarray,
        sizes: np.ndarray,
        proportions: np.ndarray,
        noise: np.ndarray | None = None,
        covariance: np.ndarray | None = None,
        mean_noise: np.ndarray | float = 0.0,
        covariance_rows: int | None = None,
        groups: Sequence[Any] | np.ndarray | None = None,
    ) -> Self:
        """Learn from mean features (M, D) of bags instead of their rows, as `ClassMeans.fit_means`, which see.

        `WhitenedMeans` is then the default, which needs the covariance, beside the mean of bags, `ClassMeans` and
        `DistributionRegression`.
        """
        self._check_parameters()
        remember_names(self, [means])
        means, counts, variance = checked_means(means, sizes, mean_noise)
        shares, errors = checked_proportions(proportions, noise, len(means))
        sketch = None
        if covariance is not None:
            covariance = checked_covariance(covariance, means.shape[1], covariance_rows)
            sketch = Sketch.of_means(means, covariance, variance)
        evidence = Evidence(counts, shares, errors)
        known = {"covariance": covariance, "mean_noise": variance, "covariance_rows": covariance_rows}
        candidates = of_means(means, evidence, int(self.seed), **known)
        return self._weigh(candidates, sketch, evidence, _groups(groups, len(means)))

    def embed(self, rows: np.ndarray) -> np.ndarray:
        """The ratios (C,) themselves: what is mixed differs from fit to fit."""
        check_is_fitted(self, "weights_")
        members = {name: one.predict(rows) for name, one in self._members.items()}
        return np.asarray(sum(weight * members.get(name, self.mean_) for name, weight in self.weights_.items()))

    def embedding_key(self) -> str:
        """The digest of all that is fitted."""
        check_is_fitted(self, "weights_")
        description, arrays = self.to_arrays()
        return digest(json.dumps(description, sort_keys=True), arrays)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """As `RatioEstimator.to_arrays` says, with what is mixed."""
        description, arrays = super().to_arrays()
        description["members"] = {}
        for name, one in self._members.items():
            description["members"][name], kept = one.to_arrays()
            arrays |= {f"{name}|{key}": array for key, array in kept.items()}
        return description, arrays

    @classmethod
    def from_arrays(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """As `RatioEstimator.from_arrays` says."""
        estimator = super().from_arrays(description, arrays)
        estimator._members = {}
        for name, one in description["members"].items():
            kept = {key.removeprefix(f"{name}|"): array for key, array in arrays.items() if key.startswith(f"{name}|")}
            estimator._members[name] = member(one, kept)
        return estimator

    def _weigh(
        self, candidates: dict[str, Candidate], sketch: Sketch | None, evidence: Evidence, groups: np.ndarray
    ) -> Self:
        """Sets all that is fitted."""
        bags = len(groups)
        self.mean_ = evidence.mean
        self.diagnostics_ = {"bags": float(bags), "noise_floor": evidence.noise_floor}
        if sketch is not None and bags > evidence.proportions.shape[1]:
            found = drift_test(sketch, *evidence)
            self.diagnostics_ |= {"drift_p_value": found.p_value, "drift_ratio": found.ratio}
        self.weights_ = self._weights(candidates, evidence, folds(groups, int(self.seed)))
        self.diagnostics_ |= {f"weight_{name}": weight for name, weight in self.weights_.items()}
        self.weights_ = {name: weight for name, weight in self.weights_.items() if weight > 0}
        self._members = {name: candidates[name].fit(np.arange(bags)) for name in self.weights_ if name != MEAN}
        self.warning_ = said(self.diagnostics_)
        if self.warning_ is not None:
            warnings.warn(self.warning_, stacklevel=3)
        return self

    def _weights(
        self, candidates: dict[str, Candidate], evidence: Evidence, parts: list[np.ndarray]
    ) -> dict[str, float]:
        """Of the mixture, by name; adds errors to the diagnostics."""
        default, *others = candidates
        bags = len(evidence.sizes)
        if bags <= evidence.proportions.shape[1]:
            return {default: 1.0}
        tried = [(part, left_out(candidates[default], part, bags)) for part in parts]
        known = [(part, found) for part, found in tried if found is not None]
        if not known:
            return {default: 1.0}
        parts = [part for part, _ in known]
        order = np.concatenate(parts)
        truth = evidence.proportions[order]
        means = [np.tile(evidence.of(np.setdiff1d(np.arange(bags), part)).mean, (len(part), 1)) for part in parts]
        estimates = {default: np.concatenate([found for _, found in known]), MEAN: np.concatenate(means)}
        errors = {name: mean_error(found, truth) for name, found in estimates.items()}
        self._tell(errors)
        drifts = self.diagnostics_.get("drift_p_value", 1.0) < SIGNIFICANT
        # The noise of the proportions is in both errors, and in neither's favour.
        if not drifts and errors[default] < errors[MEAN]:
            return {default: 1.0}
        for name in others:
            found = left_out_of_all(candidates[name], parts, bags)
            if found is not None:
                estimates[name], errors[name] = found, mean_error(found, truth)
        self._tell(errors)
        if min(error for name, error in errors.items() if name != MEAN) >= _USEFUL * errors[MEAN]:
            return {MEAN: 1.0}
        weights = stacked(estimates, truth, default, _PULL)
        mixed = sum(weight * estimates[name] for name, weight in weights.items())
        self._tell({"auto": mean_error(np.asarray(mixed), truth)})
        return weights

    def _tell(self, errors: Mapping[str, float]) -> None:
        self.diagnostics_ = dict(self.diagnostics_) | {f"error_{name}": error for name, error in errors.items()}


def _groups(groups: Sequence[Any] | np.ndarray | None, bags: int) -> np.ndarray:
    if groups is None:
        return np.arange(bags)
    found = np.asarray(groups)
    if found.shape != (bags,):
        raise InputError(f"groups must be one name or number for each of {bags} bags, got shape {found.shape}")
    return found
