"""An estimator of two class ratios that is easy to check, for tests of what is made of released estimators."""

from typing import Any, ClassVar

import numpy as np

from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.releases.estimator_models import ReleasedRatios


class FirstColumn(RatioEstimator):
    """The first class has the mean of the first column as its share, plus `offset`."""

    name: ClassVar[str] = "first_column"
    fitted: ClassVar[tuple[str, ...]] = ("offset_",)
    embedded: ClassVar[list[tuple[int, ...]]] = []  # the shape of every set of rows that was embedded

    def __init__(self, key: str = "mean") -> None:
        self.key = key

    def fit(self, bags: Any, proportions: np.ndarray, noise: np.ndarray | None = None) -> "FirstColumn":
        self.offset_ = np.array(float(proportions[0, 0]))
        return self

    def embed(self, rows: np.ndarray) -> np.ndarray:
        self.embedded.append(rows.shape)
        return rows.mean(axis=0)

    def estimate(self, embedding: np.ndarray) -> np.ndarray:
        share = float(np.clip(embedding[0] + self.offset_, 0, 1))
        return np.array([share, 1 - share])

    def embedding_key(self) -> str:
        return self.key


def described(offset: float, key: str = "mean") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A fitted estimator as `ReleasedRatios` keeps it."""
    return FirstColumn(key).fit([], np.array([[offset, 1 - offset]])).to_arrays()


def released(offsets, feature_maps, guarantees, columns=("a", "b"), key="mean") -> ReleasedRatios:
    """Releases with estimators of these offsets, a list of draws for each release."""
    epsilons = [g["claimed"][0] if "claimed" in g else g.get("epsilon", np.inf) for g in guarantees]
    estimators = tuple(tuple(described(offset, key) for offset in draws) for draws in offsets)
    return ReleasedRatios(
        "class_ratio",
        ("no", "yes"),
        columns,
        (),
        np.array(epsilons),
        estimators,
        tuple(feature_maps),
        tuple(guarantees),
    )
