"""Scores of released classifiers, linear models and networks, and of the baselines of their task.

The features of `pooled` do not depend on what private releases can afford, since central data would not.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregator.releases.model_files import ReleasedFile
from aggregator.releases.models import ReleasedClassifiers, ReleasedModels
from federation.features.feature_map import FeatureMap
from parties.training.classifiers import LOGISTIC as LOGISTICClassifiers
from parties.training.classifiers import fit as fit_classifier
from parties.training.training import auc
from scenarios.data.tables import Table
from scenarios.scores.results import CONSTANT_CLASS, at_round
from scenarios.scores.scoring import ACCURACY, Metrics, Scoring
from scenarios.settings.parties import LOGISTIC

_BLOCK = 1 << 16  # scores held at a time: small enough to stay in the processor's cache
_ROWS, _OUTPUTS = 1 << 10, 1 << 25  # rows, and outputs (256 MiB), of which order is made at a time
Scores = dict[str, NDArray[np.float64]]  # metrics (m,) of m models


@dataclass(frozen=True, eq=False)
class TestRows:
    """Test rows (n, d) behind the feature map, sorted by label; `labels` (n,), and `sizes` (C,) rows per class.

    Each of them stands for as many test rows as `copies` (n,) says.
    """

    __test__ = False  # not a test case for pytest

    rows: NDArray[np.float64]
    labels: NDArray[np.int64]
    sizes: NDArray[np.int64]
    copies: NDArray[np.int64]


def hits(test: TestRows, weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether argmax_c <weights[m, c], x>, the smallest class on ties, is the row's label: bool (n, m).

    A row of class y is hit when its score beats every class before y and no class after y beats it, so each
    class needs one comparison and no argmax.
    """
    models, classes, _ = weights.shape
    by_class = np.ascontiguousarray(weights.transpose(1, 2, 0))
    out = np.ones((len(test.rows), models), dtype=bool)
    ends = np.cumsum(test.sizes)
    step = max(1, _BLOCK // models)
    for label, (end, size) in enumerate(zip(ends, test.sizes, strict=True)):
        for start in range(end - size, end, step):
            block = slice(start, min(start + step, end))
            own = test.rows[block] @ by_class[label]
            for other in range(classes):
                if other != label:
                    beats = np.greater if other < label else np.greater_equal
                    out[block] &= beats(own, test.rows[block] @ by_class[other])
    return out


def score(test: TestRows, weights: NDArray[np.float64]) -> Scores:
    """Metrics (m,) of m models, weights (m, C, d): accuracy, balanced_accuracy and, with two classes, auc.

    Balanced accuracy is the mean recall of the classes that occur among the test rows.

    Examples:
        >>> rows, labels = np.array([[1.0], [2.0], [3.0]]), np.array([0, 1, 1])
        >>> test = TestRows(rows, labels, np.bincount(labels), np.ones(3, dtype=int))
        >>> {name: float(value[0]) for name, value in score(test, np.array([[[0.0], [1.0]]])).items()}
        {'accuracy': 0.667, 'balanced_accuracy': 0.5, 'auc': 1.0}
    """
    metrics = hit_metrics(test, hits(test, weights))
    if len(test.sizes) == 2 and test.sizes.all():
        metrics["auc"] = _auc(test, _orderings(test, weights[:, 1] - weights[:, 0]))
    return metrics


def score_outputs(test: TestRows, outputs: NDArray[np.float64]) -> Scores:
    """The same metrics (m,) of m classifiers of two classes that say class 1 where their output (n, m) is 0 or more.

    An output that is no number is below all others.
    """
    ordered = np.where(np.isnan(outputs), -np.inf, outputs)
    metrics = hit_metrics(test, (ordered >= 0) == test.labels[:, None])
    return metrics | ({"auc": _auc(test, ordered.T)} if test.sizes.all() else {})


def hit_metrics(test: TestRows, hit: NDArray[np.bool_]) -> Scores:
    """Accuracy and balanced accuracy (m,) of m models from which rows they hit, bool (n, m)."""
    ends = np.cumsum(test.sizes).tolist()
    occurring = [slice(end - size, end) for end, size in zip(ends, test.sizes.tolist(), strict=True) if size]
    recalled = np.stack([np.einsum("n,nm->m", test.copies[some], hit[some]) for some in occurring])
    counted = np.array([test.copies[some].sum() for some in occurring])
    return {
        "accuracy": recalled.sum(axis=0) / counted.sum(),
        "balanced_accuracy": (recalled / counted[:, None]).mean(axis=0),
    }


def _orderings(test: TestRows, vectors: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """What each of m vectors (m, d) says of the rows, (n,): many of them pass over rows that are in cache.

    One product for each vector: a product of several would break ties by how it rounds.
    """
    together = max(1, _OUTPUTS // max(1, len(test.rows)))
    for first in range(0, len(vectors), together):
        some = vectors[first : first + together]
        out = np.empty((len(some), len(test.rows)))
        for start in range(0, len(test.rows), _ROWS):
            block = slice(start, start + _ROWS)
            for vector, found in zip(some, out, strict=True):
                np.dot(test.rows[block], vector, out=found[block])
        yield from out


def _auc(test: TestRows, outputs: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the AUC of each model's scores (n,)."""
    first = test.sizes[0]
    copies = test.copies[:first], test.copies[first:]
    return np.array([auc(scores[:first], scores[first:], copies) for scores in outputs])


class ClassificationScoring(Scoring):
    """Scores of models that classify rows: accuracy, balanced accuracy and, with two classes, auc.

    What was learned in rounds has the accuracy after each round, too. Test rows that are equal in all columns and in
    their label are scored once, and counted as often as they are there.
    """

    def __init__(self, table: Table, private: NDArray[np.int64] | range, test: NDArray[np.int64]) -> None:
        ordered = test[np.argsort(table.labels[test], kind="stable")]  # see `TestRows`
        different, self._copies = table.different(ordered)
        super().__init__(table, private, ordered[different])
        self._labels = table.labels[self.test]
        self._sizes = np.bincount(self._labels, minlength=len(table.classes))

    def scored(self, models: ReleasedFile[Any], release: int) -> list[Metrics]:
        """Score a release; other packages' kinds of models are scored by the classes that they predict for raw rows."""
        test = self._rows(self.tested(models.feature_maps[release]))
        draws = range(models.draws(release))
        if isinstance(models, ReleasedClassifiers):
            return [_network(models, release, draw, test) for draw in draws]
        if isinstance(models, ReleasedModels):
            scores = score(test, models.weights[release])
        else:
            raw = self.tested_rows
            found = [models.predicted(release, draw, raw) == test.labels for draw in draws]
            scores = hit_metrics(test, np.column_stack(found))
        return [_at(scores, draw) for draw in draws]

    def pooled(self, feature_map: FeatureMap, classifier: Mapping[str, Any], random: np.random.Generator) -> Metrics:
        """The classifier on the union of all private rows (Hamm's `batch`).

        A logistic regression is trained on different rows, each as often as it is there.
        """
        private, copies = self.private, None
        if classifier["name"] == LOGISTICClassifiers:
            different, counted = self.table.different(private)
            if len(different) < len(private):
                private, copies = np.asarray(private)[different], counted
        fitted = fit_classifier(*self.held(feature_map, private), classifier, random, copies)
        test = self._rows(self.tested(feature_map))
        metrics = hit_metrics(test, (fitted(test.rows) == test.labels)[:, None])
        if fitted.ordering is not None and len(test.sizes) == 2 and test.sizes.all():
            metrics["auc"] = _auc(test, [fitted.ordering(test.rows)])
        return _at(metrics, 0)

    def constant(self) -> Metrics:
        """Score the baseline `constant`: the most frequent class of the private rows, whatever the row; NON-PRIVATE.

        The class is the most frequent one of all private rows with their true labels, the first of equally frequent
        ones. Lacombe et al. 2021 call it h_0^*. Balanced accuracy is the mean recall of the classes that occur among
        the test rows; auc is 1/2.
        """
        guess = self.table.class_counts(self.private).argmax()
        metrics = _at(hit_metrics(self._rows(np.empty((len(self.test), 0))), (self._labels == guess)[:, None]), 0)
        return metrics | {CONSTANT_CLASS: float(guess)} | ({"auc": 0.5} if len(self._sizes) == 2 else {})

    def _rows(self, rows: NDArray[np.float64]) -> TestRows:
        return TestRows(rows, self._labels, self._sizes, self._copies)


def _network(models: ReleasedClassifiers, release: int, draw: int, test: TestRows) -> Metrics:
    """Metrics of one draw's classifier, and the accuracy after each round.

    A round in which nothing was learned any more is as good as the one before it, so that every release counts at
    every round.
    """
    chosen, learned = models.chosen(release, draw), models.hypotheses(release, draw)
    scores = score_outputs(test, np.column_stack([one.scores(test.rows) for one in (chosen, *learned)]))
    found = _at(scores, 0)
    for number in range(1, models.rounds(release, draw) + 1):
        found[at_round(number)] = float(scores[ACCURACY.name][min(number, len(learned))])
    return found


def _at(scores: Scores, draw: int) -> Metrics:
    return {metric: float(values[draw]) for metric, values in scores.items()}


Stages = Sequence[str | Mapping[str, Any]]

_CURVED = ("fourier", "polynomial")  # made for as many columns as they get
_FOR_RELEASES = ("whiten", "unit_norm", "max_norm")  # dimensions that noise affords, and norms that bound what it hides
_SCALING = ("scale", "standardise")


def reference_stages(stages: Stages, classifier: Mapping[str, Any] | None) -> list[str | Mapping[str, Any]]:
    """The stages of a scenario (`aggregator.trial.feature_fitting.fit`) as a reference on central data takes them.

    All columns stay: whitened directions and bounded norms are left out, unless random features or monomials are made
    of them; principal components are somebody's choice of features. Mixed units are scaled where the scenario says
    nothing of scales. Linear models get a constant column, as other classifiers have intercepts of their own. For
    logistic regression columns are standardised and rows of norm 1, which its regularisation is for; least squares
    (`classifier` None) depends on neither.

    Examples:
        >>> logistic = {"name": "logistic", "parameters": {}}
        >>> reference_stages(["impute", "scale", {"whiten": "auto"}, "constant", "unit_norm"], logistic)
        ['impute', 'scale', 'standardise', 'constant', 'unit_norm']
        >>> reference_stages([{"whiten": 60}], {"name": "GaussianNB", "parameters": {}})
        ['scale']
        >>> reference_stages(["standardise", {"pca": 5}, {"fourier": 64}], None)
        ['standardise', {'pca': 5}, {'fourier': 64}, 'constant']
    """
    names = [stage if isinstance(stage, str) else next(iter(stage)) for stage in stages]
    curved = max((i + 1 for i, name in enumerate(names) if name in _CURVED), default=0)
    kept = [stage for i, stage in enumerate(stages) if i < curved or names[i] not in (*_FOR_RELEASES, "constant")]
    if not curved and not any(name in _SCALING for name in names):
        kept.insert(names.count("impute") + names.count("signed_log"), "scale")
    if classifier is None:
        return [*kept, "constant"]
    if classifier["name"] != LOGISTIC:
        return kept
    even = () if curved or "standardise" in names else ("standardise",)
    return [*kept, *even, "constant", "unit_norm"]
