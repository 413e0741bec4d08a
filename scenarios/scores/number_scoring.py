"""Scores of class ratio estimators and of regressions, with their baselines, for the results of a run.

Estimators of class ratios are scored on target sets with known proportions. Their baseline is `AdjustedCount`: a
classifier that is trained on labelled rows, and corrected for its confusion of classes.

Regressions are scored by their errors on test rows. Their baseline is least squares on all rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.releases.estimator_models import ReleasedRatios, ReleasedRegressions
from aggregator.releases.model_files import ReleasedFile
from federation.contract.errors import InputError
from federation.contract.randomness import digest
from federation.features.feature_map import FeatureMap
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
from scenarios.data.tables import Table
from scenarios.scores.results import at_share
from scenarios.scores.scoring import L1, MSE, Metrics, Scoring

_MOST_KEPT = 1 << 24  # features of all target sets that stay in memory
_KINDS_KEPT = 16  # of embeddings


class RatioScoring(Scoring):
    """Scores of estimators of class ratios: the L1 error on each target set, and its mean over them.

    The error is the L1 distance between the estimate and the sample proportions of the set (Iyer et al. 2016,
    Sec. 4.2). `targets` are the rows of each set in the table, by its share of one class. An embedding is costly and
    the same for most noise draws, so that it is found once for all of them.
    """

    def __init__(
        self,
        table: Table,
        private: NDArray[np.int64] | range,
        test: NDArray[np.int64],
        targets: Mapping[float, NDArray[np.int64]],
    ) -> None:
        super().__init__(table, private, test)
        self._targets = targets
        self._features: dict[str, list[NDArray[np.float64]]] = {}
        self._embeddings: dict[tuple[str, str], list[NDArray[np.float64]]] = {}

    def scored(self, models: ReleasedFile[Any], release: int) -> list[Metrics]:
        """L1 errors; of kinds of models that are not this project's own, by what they say of raw rows."""
        found = []
        for draw in range(models.draws(release)):
            if isinstance(models, ReleasedRatios):
                estimator = models.estimator(release, draw)
                embeddings = self._embedded(estimator, models.feature_maps[release])
                found.append(self._errors([estimator.estimate(embedding) for embedding in embeddings]))
            else:
                found.append(self._errors([models.predicted(release, draw, rows) for rows in self._raw()]))
        return found

    def pooled(self, feature_map: FeatureMap, classifier: Mapping[str, Any], random: np.random.Generator) -> Metrics:
        """Adjusted classify-and-count with the label of every private row (`AdjustedCount`)."""
        count = AdjustedCount.fit(*self.held(feature_map), len(self.table.classes), classifier, random)
        return self._errors([count.predict(feature_map.transform(rows)) for rows in self._raw()])

    def constant(self) -> Metrics:
        """Score the baseline `constant`: the class shares of the private rows for every set; NON-PRIVATE."""
        counts = self.table.class_counts(self.private)
        return self._errors([counts / len(self.private)] * len(self._targets))

    def _errors(self, estimates: Sequence[NDArray[np.float64]]) -> Metrics:
        errors = {}
        for (share, target), estimate in zip(self._targets.items(), estimates, strict=True):
            counts = self.table.class_counts(target)
            errors[at_share(share)] = float(np.abs(estimate - counts / len(target)).sum())
        return {L1.name: float(np.mean(list(errors.values()))), **errors}

    def _raw(self) -> Iterator[NDArray[np.float64]]:
        """The raw rows (n, columns) of each target set, read anew at each call."""
        return map(self.table.rows, self._targets.values())

    def _embedded(self, estimator: RatioEstimator, feature_map: FeatureMap) -> list[NDArray[np.float64]]:
        """The embeddings of all target sets behind a map."""
        name = digest(*feature_map.to_arrays())
        key = name, estimator.embedding_key()
        if key not in self._embeddings:
            if len(self._embeddings) >= _KINDS_KEPT:
                del self._embeddings[next(iter(self._embeddings))]
            self._embeddings[key] = [estimator.embed(rows) for rows in self._transformed(feature_map, name)]
        return self._embeddings[key]

    def _transformed(self, feature_map: FeatureMap, name: str) -> Iterator[NDArray[np.float64]]:
        """Features (n, D) of the target sets; those of the latest map are kept unless they are many."""
        if name not in self._features:
            if sum(map(len, self._targets.values())) * feature_map.dimension > _MOST_KEPT:
                yield from map(feature_map.transform, self._raw())
                return
            self._features = {name: [feature_map.transform(rows) for rows in self._raw()]}
        yield from self._features[name]


class RegressionScoring(Scoring):
    """Scores of models that predict numbers: the mean squared error on test rows and their true labels."""

    def scored(self, models: ReleasedFile[Any], release: int) -> list[Metrics]:
        """Mean squared errors; of kinds of models that are not this project's own, by what they say of raw rows."""
        draws = range(models.draws(release))
        if isinstance(models, ReleasedRegressions):
            test = self.tested(models.feature_maps[release])
            return [self._error(models.predict(release, draw, test)) for draw in draws]
        raw = self.tested_rows
        return [self._error(models.predicted(release, draw, raw)) for draw in draws]

    def pooled(self, feature_map: FeatureMap, classifier: Mapping[str, Any], random: np.random.Generator) -> Metrics:
        """Ordinary least squares on all private rows with their true labels, of least norm among equally good ones.

        Predictions are clipped to the declared range, as those of releases are. `classifier` and `random` play no part.
        There is no intercept but what the feature map appends.
        """
        weights = np.linalg.lstsq(*self.held(feature_map), rcond=None)[0]
        lowest, highest = self.table.label_range or (-np.inf, np.inf)
        return self._error(np.clip(self.tested(feature_map) @ weights, lowest, highest))

    def constant(self) -> Metrics:
        """Score the baseline `constant`: the mean label of the private rows, whatever the row; NON-PRIVATE.

        A private model can do worse: nobody who asks privately knows that mean.
        """
        mean = self.table.labels[self.private].mean()
        return self._error(np.full(len(self.test), mean))

    def _error(self, predictions: NDArray[np.float64]) -> Metrics:
        """Return the error of predictions (T,) for the test rows. Raises `InputError` when one is not finite."""
        if not np.isfinite(predictions).all():
            raise InputError("a released regression predicts numbers that are not finite: its training has diverged")
        return {MSE.name: float(np.mean((predictions - self.table.labels[self.test]) ** 2))}


_FOLDS = 5
_ALONE = np.zeros(1, dtype=np.int64)

Rows = NDArray[np.float64]
Probabilities = Callable[[Rows], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class AdjustedCount:
    """Probabilistic adjusted classify-and-count (Bella et al. 2010; Forman 2008 with votes).

    Where class shares alone differ, the mean class probabilities q of an unlabelled set are M rho. Column c of M
    contains the mean class probabilities of the rows of class c. M is cross-fitted: a row's probabilities come from a
    classifier that has not seen the row.

    `probabilities` maps rows (n, d) to those of the C classes (n, C); `confusion` is M (C, S), by classes `seen`.
    """

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
