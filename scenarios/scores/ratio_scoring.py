"""Scores released estimators of class ratios on target sets whose proportions are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.protocols.class_ratio.released_ratios import ReleasedRatios
from federation.contract.digest import digest
from federation.features.feature_map import FeatureMap
from scenarios.scores.adjusted_count import AdjustedCount
from scenarios.scores.metrics import at_share
from scenarios.scores.scored import Metrics
from scenarios.scores.tasks import L1
from scenarios.simulated.simulation import Split
from scenarios.simulated.targets import Target

_MOST_KEPT = 1 << 24  # features of all target sets that stay in memory
_KINDS_KEPT = 16  # of embeddings


class RatioScoring:
    """`scored.Scoring` of estimators of class ratios: the L1 error on each target set, and its mean over them.

    The error is the L1 distance between the estimate and the sample proportions of the set (Iyer et al. 2016,
    Sec. 4.2). An embedding is costly and the same for most noise draws, so that it is found once for all of them.
    """

    def __init__(self, split: Split, targets: Sequence[Target]) -> None:
        self._split, self._targets = split, targets
        self._features: dict[str, list[np.ndarray]] = {}
        self._embeddings: dict[tuple[str, str], list[np.ndarray]] = {}

    def releases(self, path: Path) -> Iterator[tuple[Mapping[str, Any], list[Metrics]]]:
        """The guarantee of each release in a file, and the metrics of its noise draws. Raises `InputError`."""
        models = ReleasedRatios.load(path)
        for release, (guarantee, feature_map) in enumerate(zip(models.guarantees, models.feature_maps, strict=True)):
            name = digest(*feature_map.to_arrays())
            found = []
            for draw in range(models.draws(release)):
                estimator = models.estimator(release, draw)
                embeddings = self._embedded(estimator, feature_map, name)
                found.append(self._errors([estimator.estimate(embedding) for embedding in embeddings]))
            yield guarantee, found

    def pooled(self, feature_map: FeatureMap, classifier: Mapping[str, Any], random: np.random.Generator) -> Metrics:
        """Adjusted classify-and-count with the label of every private row (`adjusted_count.AdjustedCount`)."""
        table, held = self._split.table, self._split.cut.order
        rows = feature_map.transform(table.rows(held))
        count = AdjustedCount.fit(rows, table.labels[held], len(table.classes), classifier, random)
        return self._errors([count.predict(feature_map.transform(target.rows)) for target in self._targets])

    def _errors(self, estimates: Sequence[np.ndarray]) -> Metrics:
        errors = {
            at_share(target.share): float(np.abs(estimate - target.proportions).sum())
            for target, estimate in zip(self._targets, estimates, strict=True)
        }
        return {L1.name: float(np.mean(list(errors.values()))), **errors}

    def _embedded(self, estimator: RatioEstimator, feature_map: FeatureMap, name: str) -> list[np.ndarray]:
        """The embeddings of all target sets behind the map called `name`."""
        key = name, estimator.embedding_key()
        if key not in self._embeddings:
            if len(self._embeddings) >= _KINDS_KEPT:
                del self._embeddings[next(iter(self._embeddings))]
            self._embeddings[key] = [estimator.embed(rows) for rows in self._transformed(feature_map, name)]
        return self._embeddings[key]

    def _transformed(self, feature_map: FeatureMap, name: str) -> Iterator[np.ndarray]:
        """Features (n, D) of the target sets; those of the latest map are kept unless they are many."""
        if name in self._features:
            yield from self._features[name]
            return
        rows = sum(len(target.indices) for target in self._targets)
        if rows * feature_map.dimension > _MOST_KEPT:
            yield from (feature_map.transform(target.rows) for target in self._targets)
            return
        self._features = {name: [feature_map.transform(target.rows) for target in self._targets]}
        yield from self._features[name]
