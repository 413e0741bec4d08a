"""A support vector machine that guesses the labels of rows so that every bag has its proportions: the baseline."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from aggregator.learners.class_ratios.bag_classifier import ScaledRows
from aggregator.learners.class_ratios.kernel_means import selected_bandwidth
from aggregator.learners.inputs.validation import require_integer, require_number
from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.numerics import simplex

_FIRST = 1e-5  # of the cost, with which the guessed labels begin to count
_GROWTH = 2.0
_ALTERNATIONS = 20  # at one cost; a few are usual


@dataclass(eq=False, repr=False)
class ProportionSVM(ScaledRows):
    """Counts of a classifier's predictions (Yu et al. 2013, "alter-pSVM"): what Iyer et al. 2016 compare with.

    For each class, against all others when there are more than two, minimises over w, b and the labels y of all rows

        |w|^2/2 + cost sum_rows max(0, 1 - y (w'x + b))^2 + proportion_cost sum_bags |share of y = 1 - proportion|

    by turns: labels by sorting within each bag, weights by a linear support vector machine. The cost grows from 1e-5 of
    its value (annealing), which keeps the first guess, drawn at random within the bags, from being the last. The best
    of `restarts` (at least 2, as single guesses mislead) is kept; those that come to guess one label for all rows are
    given up. A set gets the shares of the classes with the largest score: no correction for what the classifier
    confuses, so its errors grow with the distance between the set's ratios and those of the bags.

    Parameters:
        cost: C > 0 of the hinge losses of single rows.
        proportion_cost: > 0, of a bag whose guessed share misses its proportion.
        features: the number of random Fourier features, at least 2; None for the rows themselves.
        bandwidth: gamma of the Fourier features times the median squared distance of the rows, positive; or "auto" to
            select it by held-out bags (`selected_bandwidth`).
        restarts: first guesses to begin from, at least 2.
        seed: of guesses and features, at least 0.

    Noisy proportions are projected onto the simplex. `fit` raises `InputError` also where every restart guesses one
    label for all rows, from which nothing can be learnt.

    Attributes, besides those of `ScaledRows`:
        coefficients_: (C, D + 1), intercepts last; (1, D + 1) for two classes, positive for the second.
        classes_: C.

    Examples:
        >>> rng, shares = np.random.default_rng(0), np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
        >>> draw = lambda share, n: rng.normal(4.0 * (np.arange(n) < share * n))[:, None]  # share of class 1
        >>> bags = [draw(share, 200) for share in shares[:, 1]]
        >>> ProportionSVM().fit(bags, shares).predict(draw(0.7, 500)).round(2)
        array([0.3, 0.7])
    """

    name: ClassVar[str] = "proportion_svm"
    fitted: ClassVar[tuple[str, ...]] = (*ScaledRows.fitted, "coefficients_", "classes_")

    cost: float = 0.01
    proportion_cost: float = 100.0
    features: int | None = None
    bandwidth: float | str = 1.0
    restarts: int = 3
    seed: int = 0

    def embed(self, rows: np.ndarray) -> np.ndarray:
        """Shares (C,) of the rows that are predicted to be in each class."""
        check_is_fitted(self, "coefficients_")
        counts = np.zeros(self.classes_)
        for tile in self._tiles(rows):
            scores = tile @ self.coefficients_[:, :-1].T + self.coefficients_[:, -1]
            predicted = scores.argmax(axis=1) if self.classes_ > 2 else (scores[:, 0] > 0).astype(np.intp)
            counts += np.bincount(predicted, minlength=self.classes_)
        return np.asarray(counts / counts.sum())

    def _fit(self, bags: list[np.ndarray], proportions: np.ndarray, noise: np.ndarray | None) -> None:
        selected = self.bandwidth == "auto"
        bandwidth = selected_bandwidth(self, bags, proportions, noise) if selected else float(self.bandwidth)
        rows = self._fit_rows(bags, bandwidth)
        edges = np.cumsum([len(bag) for bag in bags])[:-1]
        proportions = simplex.project(proportions)
        self.classes_ = proportions.shape[1]
        ones = [1] if self.classes_ == 2 else range(self.classes_)
        self.coefficients_ = np.stack([self._one(rows, edges, proportions[:, y], y) for y in ones])

    def _one(self, rows: np.ndarray, edges: np.ndarray, shares: np.ndarray, y: int) -> np.ndarray:
        """Coefficients (D + 1,) of one class, which has `shares` (M,) of the bags that start at 0 and `edges`."""
        sizes = np.diff([0, *edges, len(rows)])
        best, least = None, np.inf
        for restart in range(self.restarts):
            random = generator(int(self.seed), "guessed labels", party=y, trial=restart)
            places = [random.permutation(n) for n in sizes]
            labels = guessed(-np.concatenate(places).astype(np.float64), edges, shares, 0.0, 1.0)
            found = self._annealed(rows, edges, shares, labels)
            if found is not None and found[1] < least:
                best, least = found
        if best is None:
            raise InputError(
                f"each of {self.restarts} restarts of proportion_svm guessed one label for all rows with respect to "
                f"class {y}; raise proportion_cost, lower cost, or use bags that hold more of that class"
            )
        return best

    def _annealed(
        self, rows: np.ndarray, edges: np.ndarray, shares: np.ndarray, labels: np.ndarray
    ) -> tuple[np.ndarray, float] | None:
        """Coefficients and their objective from the first guess; None where all labels become equal."""
        cost = _FIRST * self.cost
        while True:
            for _ in range(_ALTERNATIONS):
                if (labels == labels[0]).all():
                    return None
                machine = LinearSVC(C=cost, dual=False).fit(rows, labels)
                scores = machine.decision_function(rows)
                before, labels = labels, guessed(scores, edges, shares, cost, self.proportion_cost)
                if (before == labels).all():
                    break
            if cost == self.cost:
                weights = np.append(machine.coef_[0], machine.intercept_)
                value = objective(weights, scores, labels, edges, shares, cost, self.proportion_cost)
                return weights, value
            cost = min(_GROWTH * cost, self.cost)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_number("cost", self.cost, 0.01)
        require_number("proportion_cost", self.proportion_cost, 100.0)
        require_integer("restarts", self.restarts, 2, 3)
        if self.bandwidth != "auto":
            require_number("bandwidth, unless it is auto,", self.bandwidth, 1.0)
        elif self.features is None:
            raise InputError("bandwidth: auto is that of Fourier features; give features, an even number such as 512")


def guessed(
    scores: np.ndarray, edges: np.ndarray, shares: np.ndarray, cost: float, proportion_cost: float
) -> np.ndarray:
    """Labels -1 or 1 (N,) that minimise the objective for fixed `scores` w'x + b (N,), bag by bag.

    For so many positive labels in a bag it is best to give them to the rows that lose least by them; all such numbers
    are compared. With cost 0 the number is the one nearest to the bag's share and the largest scores are positive.
    """
    found = []
    for bag, share in zip(np.split(scores, edges), shares, strict=True):
        order = np.argsort(-bag, kind="stable")
        gains = np.maximum(0.0, 1.0 + bag[order]) ** 2 - np.maximum(0.0, 1.0 - bag[order]) ** 2
        numbers = np.arange(len(bag) + 1)
        values = proportion_cost * np.abs(numbers / len(bag) - share) - cost * np.append(0.0, np.cumsum(gains))
        found.append(np.full(len(bag), -1.0))
        found[-1][order[: int(np.argmin(values))]] = 1.0
    return np.concatenate(found)


def objective(
    weights: np.ndarray,
    scores: np.ndarray,
    labels: np.ndarray,
    edges: np.ndarray,
    shares: np.ndarray,
    cost: float,
    proportion_cost: float,
) -> float:
    """What `ProportionSVM` minimises; the intercept, last of the weights, counts as one, as in the solver."""
    losses = np.maximum(0.0, 1.0 - labels * scores) ** 2
    found = np.array([(bag > 0).mean() for bag in np.split(labels, edges)])
    return float(weights @ weights / 2 + cost * losses.sum() + proportion_cost * np.abs(found - shares).sum())
