"""Released linear regressions that are easy to check, for tests of what is made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from aggregator.releases.regression_models import ReleasedRegressions, linear
from federation.features.feature_map import FeatureMap


def stored(path: Path, weights, guarantees, feature_map: FeatureMap, columns=("a", "b")) -> Path:
    """Save releases with models of these weights, a list of draws for each release."""
    epsilons = [guarantee.get("epsilon", np.inf) for guarantee in guarantees]
    models = tuple(tuple(linear(np.asarray(draw, dtype=float)) for draw in draws) for draws in weights)
    maps = (feature_map,) * len(weights)
    ReleasedRegressions("slope", (), columns, (), np.array(epsilons), models, maps, tuple(guarantees)).save(path)
    return path
