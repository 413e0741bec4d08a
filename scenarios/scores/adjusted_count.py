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

from federation.numerics.erm import attainable_tolerance, fit_labels
from federation.numerics.simplex import least_squares
from parties.holdings.groups import ConstantGroup, Group
from parties.training.classifiers import DEFAULT_REGULARISATION, GRADIENT_TOLERANCE, LOGISTIC
from parties.training.estimators import EstimatorGroup, fit_estimator
from parties.training.linear import LinearGroup

_FOLDS = 5
_ALONE = np.zeros(1, dtype=np.int64)

Probabilities = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class AdjustedCount:
    """`probabilities` maps rows (n, d) to those of the C classes (n, C); `confusion` is M (C, S), by classes `seen`."""

    probabilities: Probabilities
    confusion: np.ndarray
    seen: np.ndarray

    @classmethod
    def fit(
        cls,
        rows: np.ndarray,
        labels: np.ndarray,
        classes: int,
        classifier: Mapping[str, Any],
        random: np.random.Generator,
    ) -> Self:
        """Train the classifier `{"name": str, "parameters": dict}`, no mixture, on rows (n, d) with class codes (n,).

        One that gives no probabilities counts with its votes. M comes from five folds with equal shares of classes.
        """
        whole = _trained(rows, labels, classes, classifier, random)
        seen = np.unique(labels)
        found = whole(rows)
        for chosen in _folds(labels, random) if len(seen) > 1 else ():
            found[chosen] = _trained(rows[~chosen], labels[~chosen], classes, classifier, random)(rows[chosen])
        confusion = np.stack([found[labels == label].mean(axis=0) for label in seen], axis=1)
        return cls(whole, confusion, seen)

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """Class ratios (C,) of the set of rows (n, d): those with the least |M rho - q|, 0 for unseen classes."""
        observed = self.probabilities(rows).mean(axis=0)
        ratios = np.zeros(len(self.confusion))
        ratios[self.seen] = least_squares(self.confusion.T @ self.confusion, self.confusion.T @ observed)
        return ratios


def _folds(labels: np.ndarray, random: np.random.Generator) -> list[np.ndarray]:
    """Which rows are held out together, boolean (n,) for each fold; the rows of a class are spread evenly."""
    order = random.permutation(len(labels))
    fold = np.empty(len(labels), dtype=np.int64)
    fold[order[np.argsort(labels[order], kind="stable")]] = np.arange(len(labels)) % _FOLDS
    return [fold == number for number in range(min(_FOLDS, len(labels)))]


def _trained(
    rows: np.ndarray, labels: np.ndarray, classes: int, classifier: Mapping[str, Any], random: np.random.Generator
) -> Probabilities:
    """A trained classifier's probabilities (n, C) of rows (n, d)."""
    group = _group(rows, labels, classes, classifier, random)
    if isinstance(group, EstimatorGroup) and not hasattr(group.estimator, "predict_proba"):
        return lambda unlabelled: np.eye(classes)[group.votes(unlabelled)[0]]
    return lambda unlabelled: group.probabilities(unlabelled)[0]


def _group(
    rows: np.ndarray, labels: np.ndarray, classes: int, classifier: Mapping[str, Any], random: np.random.Generator
) -> Group:
    """A classifier of all rows, in the form of a group of one party."""
    seen, codes = np.unique(labels, return_inverse=True)
    if len(seen) == 1:
        return ConstantGroup(_ALONE, seen, classes)
    if classifier["name"] != LOGISTIC:
        return EstimatorGroup(_ALONE, fit_estimator(rows, labels, classifier, random), classes)
    regularisation = classifier["parameters"].get("regularisation", DEFAULT_REGULARISATION)
    tolerance = attainable_tolerance(GRADIENT_TOLERANCE, rows, regularisation)
    weights = fit_labels(rows, codes, len(seen), regularisation, tolerance)
    return LinearGroup(_ALONE, seen[None], weights[None], classes)
