"""Scores released classifiers, linear models and networks, and the baselines of their task, by whom they recognise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.contract.registry import model
from aggregator.releases.classifier_models import ReleasedClassifiers
from aggregator.releases.model_files import LINEAR, ReleasedFile, head
from aggregator.releases.models import ReleasedModels
from federation.contract.digest import digest
from federation.features.feature_map import FeatureMap
from parties.training.classifiers import fit as fit_classifier
from scenarios.scores.metrics import at_round
from scenarios.scores.scored import Metrics
from scenarios.scores.scoring import TestRows, hit_metrics, score, score_outputs
from scenarios.scores.tasks import ACCURACY
from scenarios.simulated.simulation import Split


class ClassificationScoring:
    """`scored.Scoring` of models that classify rows: accuracy, balanced accuracy and, with two classes, auc.

    What was learned in rounds has the accuracy after each round, too.
    """

    def __init__(self, split: Split) -> None:
        self._split = split
        self._tests: dict[str, TestRows] = {}

    def releases(self, path: Path) -> Iterator[tuple[Mapping[str, Any], list[Metrics]]]:
        """The guarantee of each release in a file, and the metrics of its noise draws. Raises `InputError`."""
        kind, _ = head(path)
        if kind == ReleasedClassifiers.kind:
            yield from self._networks(ReleasedClassifiers.load(path))
            return
        if kind != LINEAR:
            yield from self._others(model(kind).load(path))
            return
        models = ReleasedModels.load(path)
        for guarantee, weights, feature_map in zip(models.guarantees, models.weights, models.feature_maps, strict=True):
            scores = score(self._test(feature_map), weights)
            yield guarantee, [_at(scores, draw) for draw in range(len(weights))]

    def pooled(self, feature_map: FeatureMap, classifier: Mapping[str, Any], random: np.random.Generator) -> Metrics:
        """The classifier on the union of all private rows (Hamm's `batch`)."""
        table, held = self._split.table, self._split.cut.order
        predict = fit_classifier(feature_map.transform(table.rows(held)), table.labels[held], classifier, random)
        test = self._test(feature_map)
        return _at(hit_metrics(test, (predict(test.rows) == test.labels)[:, None]), 0)

    def _networks(self, models: ReleasedClassifiers) -> Iterator[tuple[Mapping[str, Any], list[Metrics]]]:
        for release, (guarantee, feature_map) in enumerate(zip(models.guarantees, models.feature_maps, strict=True)):
            test = self._test(feature_map)
            yield guarantee, [_network(models, release, draw, test) for draw in range(models.draws(release))]

    def _others(self, models: ReleasedFile[Any]) -> Iterator[tuple[Mapping[str, Any], list[Metrics]]]:
        """Of a kind of models that says only which class a row is of."""
        table, indices = self._split.table, self._split.cut.test
        raw, labels = table.rows(indices), table.labels[indices]
        for release, (guarantee, feature_map) in enumerate(zip(models.guarantees, models.feature_maps, strict=True)):
            test, by_label = self._test(feature_map), np.argsort(labels, kind="stable")
            found = [models.predicted(release, draw, raw) == labels for draw in range(models.draws(release))]
            scores = hit_metrics(test, np.column_stack([hit[by_label] for hit in found]))
            yield guarantee, [_at(scores, draw) for draw in range(len(found))]

    def _test(self, feature_map: FeatureMap) -> TestRows:
        """Labelled test rows behind a map; each map is applied once."""
        name = digest(*feature_map.to_arrays())
        if name not in self._tests:
            table, indices = self._split.table, self._split.cut.test
            rows = feature_map.transform(table.rows(indices))
            self._tests[name] = TestRows.of(rows, table.labels[indices], len(table.classes))
        return self._tests[name]


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


def _at(scores: Mapping[str, np.ndarray], draw: int) -> Metrics:
    return {metric: float(values[draw]) for metric, values in scores.items()}
