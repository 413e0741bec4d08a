"""The default estimator of class ratios: it first tests whether bags differ in more than their ratios.

`Evidence` and `Candidate` describe estimators that are fitted to some of the bags and tested on the others. `stacked`
weights them by their errors on bags that they have not seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.bag_classifier import BagClassifier
from aggregator.learners.class_ratios.catalogue import MEAN, SIGNIFICANT, load, said
from aggregator.learners.class_ratios.class_means import ClassMeans, WhitenedMeans
from aggregator.learners.class_ratios.drift import Sketch, drift_test
from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.learners.class_ratios.kernel_means import DistributionRegression
from aggregator.learners.inputs.validation import (
    checked,
    checked_covariance,
    checked_means,
    checked_proportions,
    remember_names,
)
from federation.contract.errors import FederationError, InputError
from federation.contract.randomness import generator
from federation.numerics import simplex

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
            estimator._members[name] = load(one, kept)
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


_FEW, _FOLDS = 8, 6  # up to so many groups each is left out by itself; of more, about a sixth at a time
_LEAST_WEIGHT = 1e-3  # of a mixture: less is not worth the time to fit it


def folds(groups: np.ndarray, seed: int) -> list[Indices]:
    """Numbers of the bags in each fold, for bags that belong to `groups` (M,), which are never divided.

    As many folds as groups up to 8, and 6 of about equally many groups beyond.

    Examples:
        >>> sorted(part.tolist() for part in folds(np.array([0, 1, 0, 2]), seed=0))
        [[0, 2], [1], [3]]
    """
    names, numbers = np.unique(groups, return_inverse=True)
    count = len(names) if len(names) <= _FEW else _FOLDS
    dealt = np.empty(len(names), dtype=np.int64)
    dealt[generator(seed, "folds of bags").permutation(len(names))] = np.arange(len(names)) % count
    return [np.flatnonzero(dealt[numbers] == fold) for fold in range(count)]


def left_out(candidate: Candidate, part: Indices, bags: int) -> np.ndarray | None:
    """What a candidate that was fitted to the rest of the bags says (m, C) of the m bags of a part.

    None where it cannot, as where the rest do not tell the classes apart.
    """
    try:
        fitted = candidate.fit(np.setdiff1d(np.arange(bags), part))
        return candidate.estimate(fitted, part)
    except FederationError:
        return None


def left_out_of_all(candidate: Candidate, parts: Sequence[Indices], bags: int) -> np.ndarray | None:
    """What it says of the bags of all parts, one after another; None where it cannot without one of them."""
    found = [left_out(candidate, part, bags) for part in parts]
    known = [estimates for estimates in found if estimates is not None]
    return np.concatenate(known) if len(known) == len(found) else None


def mean_error(estimates: np.ndarray, proportions: np.ndarray) -> float:
    """Mean L1 distance of estimates (m, C) to released proportions (m, C), the noise of these included.

    Examples:
        >>> mean_error(np.array([[0.5, 0.5]]), np.array([[0.7, 0.3]])).__round__(3)
        0.4
    """
    return float(np.abs(estimates - proportions).sum(axis=1).mean())


def stacked(
    estimates: Mapping[str, np.ndarray], proportions: np.ndarray, leading: str, pull: float
) -> dict[str, float]:
    """Weights from 0 to 1, of sum 1, whose mixture of estimates (m, C) is nearest to the proportions (m, C).

    argmin_w |P - sum_k w_k p_k|^2 + pull |w - e|^2 |P - p_leading|^2 over the simplex, e being all weight on `leading`
    (stacking: Wolpert 1992, Breiman 1996). Weights below a thousandth become 0.

    Examples:
        >>> truth = np.array([[0.2, 0.8], [0.6, 0.4]])
        >>> stacked({"good": truth, "bad": truth[::-1]}, truth, leading="bad", pull=0.25)
        {'good': 0.667, 'bad': 0.333}
    """
    names = list(estimates)
    columns = np.stack([estimates[name].ravel() for name in names], axis=1)
    strength = pull * float(np.sum((proportions - estimates[leading]) ** 2))
    linear = columns.T @ proportions.ravel()
    linear[names.index(leading)] += strength
    found = simplex.least_squares(columns.T @ columns + strength * np.eye(len(names)), linear)
    found = np.where(found < _LEAST_WEIGHT, 0.0, found)
    return dict(zip(names, (found / found.sum()).tolist(), strict=True))


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
