"""Estimators of class ratios from a classifier that learns which bag each row came from.

No row has a label. The likelihood of the bag of a row teaches the classes. Rows of the pooled bags come from bag i with
probability pi_i and have class y with probability q_y = sum_i pi_i P_iy. A classifier f_y(x) = p(y | x) implies
p(bag i | x) = sum_y T_iy f_y(x). Here T_iy = p(bag i | y) = pi_i P_iy / q_y. The classifier can therefore be fitted to
the bags that the rows are known to come from (forward correction: Patrini et al. 2017; surrogate set classification: Lu
et al. 2021). f is a softmax of W x + b + log q, so that zero weights say q.

Classifiers are fitted to parts of the bags and tried on the rows that were left out. On these rows their probabilities
can be calibrated. The probabilities also say under which ratios of the classes a set is most likely.

- `BagClassifier` matches the classifier's mean scores on the simplex.
- `BagClassifierEM` uses the probabilities as they are.
- `ScaledRows` is their base, which prepares rows for a linear classifier.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.class_means import Unmixing, expected_proportions
from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.learners.inputs.validation import require_integer, require_number
from aggregator.learners.kernels.exact import median_squared_distance, tiles
from aggregator.learners.kernels.features import FeatureKernel, FourierKernel, LinearKernel
from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.numerics import simplex


class ScaledRows(RatioEstimator):
    """An estimator with the parameters `features` and `seed`, which scores rows one by one.

    It prepares rows for a linear classifier: optionally random Fourier features, centred, and of unit mean square.
    Columns keep their relative scales, so they should share a unit, as they do behind a feature map that scales them;
    a common shift and factor of all rows changes nothing.

    Attributes:
        centre_: mean (D,) of the rows, or of their random features.
        scale_: root mean square of what is left.
        frequencies_: of the random Fourier features; None for the rows themselves.
    """

    fitted: ClassVar[tuple[str, ...]] = ("centre_", "scale_", "frequencies_")

    features: int | None

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


@dataclass(eq=False, repr=False)
class BagClassifier(ScaledRows):
    """Softmax regression on the bags (see `risk`), and cross-fitted matching of its mean scores.

    K classifiers are fitted, each without one K-th of every bag. On the rows that it has not seen, the mean score of a
    bag is A P_i in expectation, so `Unmixing` finds A (C, C), the mean scores of the classes; a set with mean score phi
    then has the ratios argmin |A rho - phi|^2 over the simplex. Scores need to tell classes apart for that, not to be
    right (probabilistic adjusted count: Bella et al. 2010), and every row serves both ends.

    Of noisy proportions the classifier sees `expected_proportions`, projected onto the simplex.

    Parameters:
        regularisation: lam > 0 of `risk`, without unit; None to choose it on the rows left out.
        features: the number of random Fourier features, at least 2; None for the rows themselves.
        bandwidth: gamma of the Fourier features times the median squared distance of the rows, positive.
        folds: K, at least 2.
        seed: of folds and features, at least 0.

    Attributes, besides those of `ScaledRows`:
        weights_: of the classifiers (K, C, D + 1), intercepts last.
        priors_: of the classes among all rows (C,).
        class_scores_: A (C, C).
        regularisation_: the lam that was used.

    Examples:
        >>> rng, shares = np.random.default_rng(0), np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
        >>> draw = lambda share, n: rng.normal(4.0 * (np.arange(n) < share * n))[:, None]  # share of class 1
        >>> bags = [draw(share, 200) for share in shares[:, 1]]
        >>> estimator = BagClassifier().fit(bags, shares)
        >>> estimator.predict(draw(0.7, 500)).round(2)
        array([0.3, 0.7])
    """

    name: ClassVar[str] = "bag_classifier"
    fitted: ClassVar = (*ScaledRows.fitted, "weights_", "priors_", "class_scores_", "regularisation_")

    regularisation: float | None = None
    features: int | None = None
    bandwidth: float = 1.0
    folds: int = 5
    seed: int = 0

    def embed(self, rows: np.ndarray) -> np.ndarray:
        """Mean scores phi (C,)."""
        total, count = np.zeros(1), 0
        for scores in self._scores(rows):
            total = total + scores.sum(axis=0)
            count += len(scores)
        return total / count

    def estimate(self, embedding: np.ndarray) -> np.ndarray:
        """argmin |A rho - phi|^2 over the simplex."""
        check_is_fitted(self, "class_scores_")
        scores = self.class_scores_
        return simplex.least_squares(scores.T @ scores, embedding @ scores)

    def _fit(self, bags: list[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None) -> None:
        self._cross_fit(bags, proportions, noise)

    def _cross_fit(
        self, bags: list[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sets all that `BagClassifier` fits.

        Returns posteriors (N, C) by classifiers that have not seen the rows, likelihoods (N, C) of each class, of the
        bag that the row came from, and the proportions (M, C) as they are expected, given the noise.
        """
        rows, sizes = self._fit_rows(bags, self.bandwidth), np.array([len(bag) for bag in bags])
        expected = expected_proportions(proportions, sizes, noise)
        transition = Transition.of(expected, sizes)
        numbers = np.repeat(np.arange(len(bags)), sizes)
        parts = dealt(sizes, min(self.folds, len(rows)), generator(int(self.seed), "folds"))
        found = cross_fit(rows, numbers, transition, self.regularisation, parts)
        self.weights_, self.priors_, self.regularisation_ = found.weights, transition.priors, found.regularisation
        means = np.add.reduceat(found.held_out, np.cumsum(sizes) - sizes) / sizes[:, None]
        self.class_scores_ = means.T @ Unmixing(proportions, sizes, noise).matrix
        return found.held_out, transition.matrix[numbers], expected

    def _scores(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Mean scores (t, C) of the K classifiers for the rows of a set, a few at a time."""
        for tile in self._tiles(rows):
            yield posteriors(self.weights_, tile, self.priors_).mean(axis=0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.regularisation is not None:
            require_number("regularisation", self.regularisation, 1e-3)
        require_integer("folds", self.folds, 2, 5)


class BagClassifierEM(BagClassifier):
    """`BagClassifier`, whose probabilities are calibrated on the rows left out and then taken at their word.

    Sets get the ratios of largest likelihood (`most_likely_ratios`) in place of moment matching.

    Warning: it uses each row's probabilities and not only their means, so it needs fewer rows where they are right, and
    is wrong without a sign where they are not: on images of digits its mean L1 error was below that of moment matching,
    on sparse text it was .237. Prefer `BagClassifier` unless sets of known ratios say otherwise. `fit` warns of it
    (`UserWarning`).

    Parameters are those of `BagClassifier`.

    Attributes, besides those of `BagClassifier`:
        calibration_: temperature and biases (1 + C,).
        held_out_error_: a first check: the mean L1 error on the bags, by the classifiers that have not seen the rows.

    Examples:
        >>> rng, shares = np.random.default_rng(0), np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
        >>> draw = lambda share, n: rng.normal(4.0 * (np.arange(n) < share * n))[:, None]  # share of class 1
        >>> bags = [draw(share, 200) for share in shares[:, 1]]
        >>> with warnings.catch_warnings(action="ignore"):
        ...     estimator = BagClassifierEM().fit(bags, shares)
        >>> estimator.predict(draw(0.7, 500)).round(2)
        array([0.3, 0.7])
    """

    name: ClassVar[str] = "bag_classifier_em"
    fitted: ClassVar[tuple[str, ...]] = (*BagClassifier.fitted, "calibration_", "held_out_error_")

    def embed(self, rows: np.ndarray) -> np.ndarray:
        """The ratios (C,) themselves: they depend on every row's probabilities, not on a mean."""
        scores = np.concatenate(list(self._scores(rows)))
        return most_likely_ratios(recalibrated(scores, self.calibration_), self.priors_)

    def estimate(self, embedding: np.ndarray) -> np.ndarray:
        """The embedding."""
        return embedding

    def _fit(self, bags: list[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None) -> None:
        warnings.warn(
            "bag_classifier_em takes its classifier's probabilities for true and can be far off where they are not; "
            "compare it with bag_classifier before relying on it",
            stacklevel=3,
        )
        held_out, likelihoods, expected = self._cross_fit(bags, proportions, noise)
        self.calibration_ = calibration(held_out, likelihoods)
        ends = np.cumsum([len(bag) for bag in bags])[:-1]
        parts = np.split(recalibrated(held_out, self.calibration_), ends)
        estimates = np.array([most_likely_ratios(part, self.priors_) for part in parts])
        self.held_out_error_ = float(np.abs(estimates - expected).sum(axis=1).mean())


_LEAST_PROPORTION = 1e-6  # a class that a bag is said not to hold must not make its rows impossible
_ITERATIONS = 500
_STRENGTHS = tuple(float(f"{10 ** (-k / 2):.2g}") for k in range(2, 15))  # 0.1 to 1e-7
_ROUNDS = 10_000
_ACCURACY = 1e-7  # of the mean log-likelihood, certified
_OPTIONS = {"maxiter": _ITERATIONS, "maxfun": 2 * _ITERATIONS, "maxcor": 20, "ftol": 1e-8, "gtol": 1e-5}


class Transition(NamedTuple):
    """`priors` q (C,) of the classes among all rows, and `matrix` T (M, C), whose columns sum to 1; T q = pi."""

    priors: np.ndarray
    matrix: np.ndarray

    @classmethod
    def of(cls, proportions: np.ndarray, sizes: np.ndarray) -> "Transition":
        """For bags of `sizes` (M,) with `proportions` (M, C), which are projected to the simplex first."""
        inside = np.maximum(simplex.project(proportions), _LEAST_PROPORTION)
        joint = inside / inside.sum(axis=1, keepdims=True) * (sizes / sizes.sum())[:, None]
        priors = joint.sum(axis=0)
        return cls(priors, joint / priors)


def posteriors(weights: np.ndarray, rows: np.ndarray, priors: np.ndarray) -> np.ndarray:
    """f(x) of every row, (..., n, C), for `weights` (..., C, d + 1) with the intercepts last, and `rows` (n, d).

    Examples:
        >>> posteriors(np.zeros((2, 2)), np.array([[3.0]]), priors=np.array([0.2, 0.8]))  # zero weights say q
        array([[0.2, 0.8]])
    """
    scores = rows @ np.swapaxes(weights[..., :-1], -1, -2)
    scores += (weights[..., -1] + np.log(priors))[..., None, :]
    return softmax(scores)


def softmax(scores: np.ndarray) -> np.ndarray:
    """exp(s_y) / sum exp(s), over the last axis; `scores` are overwritten.

    Examples:
        >>> softmax(np.array([0.0, np.log(3.0)]))
        array([0.25, 0.75])
    """
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def surprise(posteriors: np.ndarray, likelihoods: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean of -log p(bag | x) over n rows, and its gradient (n, C) with respect to their scores.

    `likelihoods` (n, C) are the rows of T for the bags that the rows came from, `posteriors` (n, C) are f(x). The
    gradient is (f_y - p(y | x, bag)) / n.

    Examples:
        >>> value, gradient = surprise(np.array([[0.5, 0.5]]), np.array([[0.9, 0.1]]))
        >>> round(value, 3), gradient.round(2).tolist()
        (0.693, [[-0.4, 0.4]])
    """
    joint = posteriors * likelihoods
    evidence = joint.sum(axis=1)
    joint /= evidence[:, None]
    return -float(np.log(evidence).mean()), (posteriors - joint) / len(joint)


def risk(
    weights: np.ndarray, rows: np.ndarray, likelihoods: np.ndarray, priors: np.ndarray, regularisation: float
) -> tuple[float, np.ndarray]:
    """`surprise` + lam d/2 |W|^2 and its gradient (C, d + 1) at `weights` (C, d + 1); intercepts are not regularised.

    The d makes lam a number without unit for rows whose coordinates have mean square 1.

    Examples:
        >>> weights, likelihoods = np.zeros((2, 2)), np.array([[0.9, 0.1], [0.1, 0.9]])  # of two rows from two bags
        >>> value, gradient = risk(weights, np.array([[1.0], [-1.0]]), likelihoods, np.array([0.5, 0.5]), 0.1)
        >>> round(value, 3), gradient.round(2).tolist()
        (0.693, [[-0.4, 0.0], [0.4, 0.0]])
    """
    strength = regularisation * rows.shape[1]
    value, residuals = surprise(posteriors(weights, rows, priors), likelihoods)
    gradient = np.empty_like(weights)
    gradient[:, :-1] = residuals.T @ rows + strength * weights[:, :-1]
    gradient[:, -1] = residuals.sum(axis=0)
    return value + strength / 2 * float(np.sum(weights[:, :-1] ** 2)), gradient


def fitted_weights(
    rows: np.ndarray, likelihoods: np.ndarray, priors: np.ndarray, regularisation: float, start: np.ndarray
) -> np.ndarray:
    """Weights (C, d + 1) where the risk is stationary, by L-BFGS from `start`.

    The risk is a difference of convex functions: it is convex only where the bags are pure, and another start may end
    elsewhere.

    Examples:
        >>> likelihoods = np.array([[0.9, 0.1], [0.1, 0.9]])  # of two rows from two bags
        >>> rows, priors = np.array([[1.0], [-1.0]]), np.array([0.5, 0.5])
        >>> fitted_weights(rows, likelihoods, priors, regularisation=0.1, start=np.zeros((2, 2)))[:, 0].round(1)
        array([ 1., -1.])
    """

    def flat(values: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = risk(values.reshape(start.shape), rows, likelihoods, priors, regularisation)
        return value, gradient.ravel()

    found = minimize(flat, start.ravel(), jac=True, method="L-BFGS-B", options=_OPTIONS)
    return np.asarray(found.x.reshape(start.shape))


def calibration(posteriors: np.ndarray, likelihoods: np.ndarray) -> np.ndarray:
    """(t, b_1..b_C) such that softmax(t log f + b) surprises least on held-out rows, shape (1 + C,).

    Temperature scaling with a bias per class, which corrects both ways in which probabilities mislead an estimate of
    ratios (Alexandari, Kundaje and Shrikumar 2020), fitted to bags in place of labels.
    """
    logs = np.log(np.maximum(posteriors, np.finfo(float).tiny))

    def objective(values: np.ndarray) -> tuple[float, np.ndarray]:
        value, residuals = surprise(softmax(values[0] * logs + values[1:]), likelihoods)
        return value, np.append(np.sum(residuals * logs), residuals.sum(axis=0))

    start = np.append(1.0, np.zeros(logs.shape[1]))
    return np.asarray(minimize(objective, start, jac=True, method="L-BFGS-B", options=_OPTIONS).x)


def recalibrated(posteriors: np.ndarray, calibration: np.ndarray) -> np.ndarray:
    """softmax(t log f + b), for posteriors (..., C) and (t, b) as `calibration` finds them.

    Examples:
        >>> recalibrated(np.array([0.1, 0.9]), np.array([0.5, 0.0, 0.0])).round(2)  # a higher temperature
        array([0.25, 0.75])
    """
    logs = np.log(np.maximum(posteriors, np.finfo(float).tiny))
    return softmax(calibration[0] * logs + calibration[1:])


class CrossFit(NamedTuple):
    """K classifiers (K, C, d + 1), the posteriors (N, C) of every row by the one that has not seen it, and lam."""

    weights: np.ndarray
    held_out: np.ndarray
    regularisation: float


def dealt(sizes: np.ndarray, folds: int, random: np.random.Generator) -> np.ndarray:
    """Fold numbers (N,) of the rows of bags that lie one after another: folds are equal in every bag, up to one row.

    Examples:
        >>> dealt(np.array([4, 4]), folds=2, random=np.random.default_rng(0)).tolist()
        [1, 0, 0, 1, 1, 0, 1, 0]
    """
    starts = np.cumsum(sizes) - sizes
    order = np.concatenate([start + random.permutation(n) for start, n in zip(starts, sizes, strict=True)])
    found = np.empty(len(order), dtype=np.intp)
    found[order] = np.arange(len(order)) % folds
    return found


def cross_fit(
    rows: np.ndarray, bags: np.ndarray, transition: Transition, regularisation: float | None, parts: np.ndarray
) -> CrossFit:
    """Fits one classifier without each part, for rows (N, d) of bags (N,) that are dealt into `parts` (N,).

    With `regularisation` None it is the one that surprises least on the rows left out, looked for from strong to weak
    until the surprise rises; each classifier starts where the last of its own part ended, so that no row is seen by the
    one that is tried on it.
    """
    folds = int(parts.max()) + 1
    likelihoods = transition.matrix[bags]
    weights = np.zeros((folds, len(transition.priors), rows.shape[1] + 1))
    best, least = None, np.inf
    for strength in _STRENGTHS if regularisation is None else (regularisation,):
        held_out = np.empty_like(likelihoods)
        for part in range(folds):
            out = parts == part
            weights[part] = fitted_weights(rows[~out], likelihoods[~out], transition.priors, strength, weights[part])
            held_out[out] = posteriors(weights[part], rows[out], transition.priors)
        value, _ = surprise(held_out, likelihoods)
        if value >= least:
            break
        best, least = CrossFit(weights.copy(), held_out, strength), value
    assert best is not None
    return best


def most_likely_ratios(posteriors: np.ndarray, priors: np.ndarray) -> np.ndarray:
    """Maximiser rho (C,) over the simplex of mean log sum_y rho_y f_y(x) / q_y (Saerens et al. 2002).

    By expectation maximisation from `priors` q (C,), all positive, for `posteriors` f (n, C) that hold under q. Every
    round raises the likelihood, which is concave: max_y mean(f_y / (q_y sum_z rho_z f_z / q_z)) - 1 bounds what is
    missing to the maximum, and the rounds stop when that is below 1e-7.

    Examples:
        >>> posteriors = np.array([[0.95, 0.05], [0.9, 0.1], [0.1, 0.9], [0.95, 0.05]])
        >>> most_likely_ratios(posteriors, priors=np.array([0.5, 0.5])).round(2)
        array([1., 0.])
    """
    densities = posteriors / priors
    rho = np.asarray(priors / priors.sum())
    for _ in range(_ROUNDS):
        ratios = np.reciprocal(densities @ rho) @ densities / len(densities)
        if ratios.max() - 1 <= _ACCURACY:
            break
        rho = rho * ratios
        rho /= rho.sum()
    return rho
