"""What scores the releases of a world, whatever its task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from federation.features.feature_map import FeatureMap

Metrics = dict[str, float]


class Scoring(Protocol):
    """Scores on test rows of one world, which neither app ever sees."""

    def releases(self, path: Path) -> Iterator[tuple[Mapping[str, Any], list[Metrics]]]:
        """The guarantee of each release in a file, and the metrics of its noise draws. Raises `InputError`."""
        ...

    def pooled(self, feature_map: FeatureMap, classifier: Mapping[str, Any], random: np.random.Generator) -> Metrics:
        """What the scenario's classifier can do with all private rows and labels, without any privacy.

        The rows are those that the parties hold: nobody drops out or attacks.
        """
        ...
