"""Linear regressions that are easy to check: released ones, a file of such rows, and a scenario about it."""

from pathlib import Path

import numpy as np

from aggregator.releases.estimator_models import ReleasedRegressions, linear
from federation.features.feature_map import FeatureMap

SLOPES = np.array([2.0, -1.0])


def stored(path: Path, weights, guarantees, feature_map: FeatureMap, columns=("a", "b")) -> Path:
    """Save releases with models of these weights, a list of draws for each release."""
    epsilons = [guarantee.get("epsilon", np.inf) for guarantee in guarantees]
    models = tuple(tuple(linear(np.asarray(draw, dtype=float)) for draw in draws) for draws in weights)
    maps = (feature_map,) * len(weights)
    ReleasedRegressions("slope", (), columns, (), np.array(epsilons), models, maps, tuple(guarantees)).save(path)
    return path


def own_file(folder: Path, rng: np.random.Generator) -> Path:
    """Real labels of two features and six sites."""
    rows = rng.normal(size=(300, 2))
    labels = np.clip(rows @ SLOPES + 3.0 + 0.1 * rng.normal(size=300), -9, 15)
    lines = [
        f"{site},{a:.6f},{b:.6f},{y:.6f}\n" for site, (a, b), y in zip(np.arange(300) % 6, rows, labels, strict=True)
    ]
    (folder / "own.csv").write_text("site,a,b,y\n" + "".join(lines))
    return folder / "own.csv"


def lines_document(path, *kinds, **data):
    """A scenario about such a file."""
    return {
        "name": "lines",
        "data": {
            "source": str(path), "label": "y", "range": [-9, 15], "features": ["constant"], "auxiliary": 40, **data,
        },
        "parties": {"partition": {"by": "site"}},
        "protocols": [{"kind": kind} for kind in kinds],
        "baselines": False,
        "privacy": {"epsilon": [0.5, 1]},
        "trials": {"splits": 2, "noise": 3},
    }  # fmt: skip
