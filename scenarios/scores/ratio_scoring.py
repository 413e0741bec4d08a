"""Scores released estimators of class ratios on target sets whose proportions are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.releases.estimator_models import ReleasedRatios
from aggregator.releases.model_files import ReleasedFile
from federation.contract.randomness import digest
from federation.features.feature_map import FeatureMap
from scenarios.data.tables import Table
from scenarios.scores.adjusted_count import AdjustedCount
from scenarios.scores.metrics import at_share
from scenarios.scores.scoring import Metrics, Scoring
from scenarios.scores.tasks import L1

_MOST_KEPT = 1 << 24  # features of all target sets that stay in memory
_KINDS_KEPT = 16  # of embeddings


class RatioScoring(Scoring):
    """Of estimators of class ratios: the L1 error on each target set, and its mean over them.

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
        """Adjusted classify-and-count with the label of every private row (`adjusted_count.AdjustedCount`)."""
        count = AdjustedCount.fit(*self.held(feature_map), len(self.table.classes), classifier, random)
        return self._errors([count.predict(feature_map.transform(rows)) for rows in self._raw()])

    def constant(self) -> Metrics:
        """Of the baseline `constant`: the class shares of the private rows for every set; NON-PRIVATE."""
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
