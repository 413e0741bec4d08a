"""What stands for scores where a scenario holds out no test rows: nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aggregator.releases.model_files import ReleasedFile
from federation.features.feature_map import FeatureMap
from scenarios.scores.metrics import primary
from scenarios.scores.results import Row
from scenarios.scores.scoring import Metrics, Scoring

UNSCORED = "There are no test rows (data.test: 0), so that nothing was scored; the models were learned from all rows."


class Unscored(Scoring):
    """Of every model, whatever it predicts: no metric, for there is no row that it has not learned from."""

    def scored(self, models: ReleasedFile[Any], release: int) -> list[Metrics]:
        """An empty entry for each noise draw."""
        return [{} for _ in range(models.draws(release))]

    def pooled(self, feature_map: FeatureMap, classifier: Mapping[str, Any], random: np.random.Generator) -> Metrics:
        """No metric; nothing is trained."""
        return {}


def unscored(rows: Sequence[Row]) -> list[str]:
    """A line where rows say nothing that variants are compared by, as without test rows."""
    measured = {row["metric"] for row in rows}
    return [UNSCORED] if rows and primary(rows).name not in measured else []
