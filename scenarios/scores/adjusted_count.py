"""Class ratios by a classifier that was trained on labelled rows, corrected for how it confuses classes.

Probabilistic adjusted classify-and-count (Bella et al. 2010; Forman 2008 with votes): where class shares alone differ,
the mean class probabilities q of an unlabelled set are M rho, with those of the rows of class c as column c of M. M is
cross-fitted: a row's probabilities are those of a classifier that has not seen it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from federation.numerics.erm import attainable_tolerance, fit_labels
from federation.numerics.simplex import least_squares
from parties.party_data.isolation import ConstantGroup, Group
from parties.training.classifiers import (
    DEFAULT_REGULARISATION,
    GRADIENT_TOLERANCE,
    LOGISTIC,
    EstimatorGroup,
    fit_estimator,
)
from parties.training.linear import LinearGroup

_FOLDS = 5
_ALONE = np.zeros(1, dtype=np.int64)

Rows = NDArray[np.float64]
Probabilities = Callable[[Rows], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class AdjustedCount:
    """`probabilities` maps rows (n, d) to those of the C classes (n, C); `confusion` is M (C, S), by classes `seen`."""

    probabilities: Probabilities
    confusion: NDArray[np.float64]
    seen: NDArray[np.int64]

    @classmethod
    def fit(
        cls,
        rows: Rows,
        labels: NDArray[np.int64],
        classes: int,
        classifier: Mapping[str, Any],
        random: np.random.Generator,
    ) -> Self:
        """Train the classifier `{"name": str, "parameters": dict}`, no mixture, on rows (n, d) with class codes (n,).

        One that gives no probabilities counts with its votes. M comes from five folds with equal shares of classes.

        Examples:
            >>> rows, labels = np.array([[0.0, 1.0]] * 10 + [[1.0, 1.0]] * 10), np.repeat([0, 1], 10)
            >>> logistic = {"name": "logistic", "parameters": {}}
            >>> count = AdjustedCount.fit(rows, labels, 2, logistic, np.random.default_rng(0))
            >>> count.predict(rows[5:]).round(2).tolist()  # 5 rows of the first class and 10 of the other
            [0.33, 0.67]
        """
        whole = _trained(rows, labels, classes, classifier, random)
        seen = np.unique(labels)
        found = whole(rows)
        for chosen in _folds(labels, random) if len(seen) > 1 else ():
            found[chosen] = _trained(rows[~chosen], labels[~chosen], classes, classifier, random)(rows[chosen])
        confusion = np.stack([found[labels == label].mean(axis=0) for label in seen], axis=1)
        return cls(whole, confusion, seen)

    def predict(self, rows: Rows) -> NDArray[np.float64]:
        """Class ratios (C,) of the set of rows (n, d): those with the least |M rho - q|, 0 for unseen classes."""
        observed = self.probabilities(rows).mean(axis=0)
        ratios = np.zeros(len(self.confusion))
        ratios[self.seen] = least_squares(self.confusion.T @ self.confusion, self.confusion.T @ observed)
        return ratios


def _folds(labels: NDArray[np.int64], random: np.random.Generator) -> list[NDArray[np.bool_]]:
    """Which rows are held out together, boolean (n,) for each fold; the rows of a class are spread evenly."""
    order = random.permutation(len(labels))
    fold = np.empty(len(labels), dtype=np.int64)
    fold[order[np.argsort(labels[order], kind="stable")]] = np.arange(len(labels)) % _FOLDS
    return [fold == number for number in range(min(_FOLDS, len(labels)))]


def _trained(
    rows: Rows, labels: NDArray[np.int64], classes: int, classifier: Mapping[str, Any], random: np.random.Generator
) -> Probabilities:
    """A trained classifier's probabilities (n, C) of rows (n, d), by a group of one party that holds all rows."""
    seen, codes = np.unique(labels, return_inverse=True)
    group: Group
    if len(seen) == 1:
        group = ConstantGroup(_ALONE, seen, classes)
    elif classifier["name"] == LOGISTIC:
        regularisation = classifier["parameters"].get("regularisation", DEFAULT_REGULARISATION)
        tolerance = attainable_tolerance(GRADIENT_TOLERANCE, rows, regularisation)
        weights = fit_labels(rows, codes, len(seen), regularisation, tolerance)
        group = LinearGroup(_ALONE, seen[None], weights[None], classes)
    else:
        estimator = fit_estimator(rows, labels, classifier, random)
        group = EstimatorGroup(_ALONE, estimator, classes)
        if not hasattr(estimator, "predict_proba"):
            return lambda unlabelled: np.eye(classes)[group.votes(unlabelled)[0]]
    return lambda unlabelled: group.probabilities(unlabelled)[0]
