"""A classifier learned from which bag each row is in: its scores matched on the simplex, or taken at their word."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.bag_likelihood import (
    Transition,
    calibration,
    cross_fit,
    dealt,
    most_likely_ratios,
    posteriors,
    recalibrated,
)
from aggregator.learners.class_ratios.scaled_rows import ScaledRows
from aggregator.learners.class_ratios.unmixing import Unmixing, expected_proportions
from aggregator.learners.inputs.validation import require_integer, require_number
from federation.contract.randomness import generator
from federation.numerics import simplex


@dataclass(eq=False, repr=False)
class BagClassifier(ScaledRows):
    """Softmax regression on the bags (see `bag_likelihood`), and cross-fitted matching of its mean scores.

    K classifiers are fitted, each without one K-th of every bag. On the rows that it has not seen, the mean score of a
    bag is A P_i in expectation, so `Unmixing` finds A (C, C), the mean scores of the classes; a set with mean score phi
    then has the ratios argmin |A rho - phi|^2 over the simplex. Scores need to tell classes apart for that, not to be
    right (probabilistic adjusted count: Bella et al. 2010), and every row serves both ends.

    Of noisy proportions the classifier sees `unmixing.expected_proportions`, projected onto the simplex.

    Parameters:
        regularisation: lam > 0 of `bag_likelihood.risk`, without unit; None to choose it on the rows left out.
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

    Sets get the ratios of largest likelihood (`bag_likelihood.most_likely_ratios`) in place of moment matching.

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
