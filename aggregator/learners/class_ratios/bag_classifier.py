"""A classifier learned from which bag each row is in, and its mean scores matched on the simplex."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.bag_likelihood import Transition, posteriors
from aggregator.learners.class_ratios.cross_fitting import cross_fit, dealt
from aggregator.learners.class_ratios.measurement_error import expected_proportions
from aggregator.learners.class_ratios.scaled_rows import ScaledRows
from aggregator.learners.class_ratios.unmixing import unmixing
from aggregator.learners.class_ratios.validation import checked
from aggregator.learners.parameters import require_integer, require_number
from federation.contract.randomness import generator
from federation.numerics import simplex


class HeldOut(NamedTuple):
    """Rows of all bags, by classifiers that have not seen them."""

    posteriors: np.ndarray  # (N, C)
    likelihoods: np.ndarray  # (N, C) of each class, of the bag that the row came from
    proportions: np.ndarray  # (M, C) as they are expected, given the noise


class BagClassifier(ScaledRows):
    """Softmax regression on the bags (see `bag_likelihood`), and cross-fitted matching of its mean scores.

    K classifiers are fitted, each without one K-th of every bag. On the rows that it has not seen, the mean score of a
    bag is A P_i in expectation, so `unmixing` finds A (C, C), the mean scores of the classes; a set with mean score phi
    then has the ratios argmin |A rho - phi|^2 over the simplex. Scores need to tell classes apart for that, not to be
    right (probabilistic adjusted count: Bella et al. 2010), and every row serves both ends.

    Of noisy proportions the classifier sees `measurement_error.expected_proportions`, projected onto the simplex.

    Parameters: `regularisation`, the lam of `bag_likelihood.risk`, None to choose it on the rows left out; `features`,
    the number of random Fourier features, None for the rows themselves, and `bandwidth`, their gamma times the median
    squared distance; `folds` K; `seed` of folds and features.
    """

    name: ClassVar[str] = "bag_classifier"
    fitted = (
        *ScaledRows.fitted,
        "weights_",
        "priors_",
        "class_scores_",
        "regularisation_",
    )

    weights_: np.ndarray  # (K, C, D + 1)
    priors_: np.ndarray  # (C,)
    class_scores_: np.ndarray  # (C, C), A
    regularisation_: float

    def __init__(
        self,
        regularisation: float | None = None,
        features: int | None = None,
        bandwidth: float = 1.0,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.regularisation = regularisation
        self.features = features
        self.bandwidth = bandwidth
        self.folds = folds
        self.seed = seed

    def fit(self, bags: Sequence[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None = None) -> Self:
        """As `RatioEstimator.fit` says; also raises `InputError` for parameters that cannot be used."""
        self._cross_fit(bags, proportions, noise)
        return self

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
        return simplex.least_squares(scores.T @ scores, scores.T @ embedding)

    def _cross_fit(self, bags: Sequence[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None) -> HeldOut:
        """Sets all that `BagClassifier` fits; what the classifiers say of rows that they have not seen."""
        bags, proportions, noise = checked(bags, proportions, noise)
        self._check_parameters()
        rows, sizes = self._fit_rows(bags), np.array([len(bag) for bag in bags])
        expected = expected_proportions(proportions, sizes, noise)
        transition = Transition.of(expected, sizes)
        numbers = np.repeat(np.arange(len(bags)), sizes)
        parts = dealt(sizes, min(self.folds, len(rows)), generator(int(self.seed), "folds"))
        found = cross_fit(rows, numbers, transition, self.regularisation, parts)
        self.weights_, self.priors_, self.regularisation_ = found.weights, transition.priors, found.regularisation
        means = np.add.reduceat(found.held_out, np.cumsum(sizes) - sizes) / sizes[:, None]
        self.class_scores_ = means.T @ unmixing(proportions, sizes, noise)
        return HeldOut(found.held_out, transition.matrix[numbers], expected)

    def _scores(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Mean scores (t, C) of the K classifiers for the rows of a set, a few at a time."""
        for tile in self._tiles(rows):
            yield posteriors(self.weights_, tile, self.priors_).mean(axis=0)

    def _check_parameters(self) -> None:
        if self.regularisation is not None:
            require_number("regularisation", self.regularisation, 1e-3)
        require_integer("folds", self.folds, 2, 5)
        require_integer("seed", self.seed, 0, 0)
