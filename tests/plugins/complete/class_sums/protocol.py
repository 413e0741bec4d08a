"""The protocol: what it needs, what it asks, and what it learns."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from aggregator.collectors.one_query import OneQueryProtocol
from aggregator.contract.protocol import Requires, Rule
from aggregator.contract.worst_case import PrivateWorstCase, Rows
from aggregator.trial.trial import World
from class_sums.model import described
from class_sums.question import ClassSumsQuestion
from federation.contract.errors import InputError


@dataclass(frozen=True)
class ClassSums(OneQueryProtocol):
    """Parties send noisy numbers and sums of their rows of either class; a row belongs to the nearer mean.

    noise: `pure`, `gaussian` or `off` (NON-PRIVATE).
    shrinkage: rows at the origin that are added to either class.
    """

    requires: ClassVar[Requires] = Requires(two_classes=True, single_rows=True, features=("standardise", "unit_norm"))
    task: ClassVar[str] = "classification"
    model: ClassVar[str] = "nearest_mean"
    asks: ClassVar[type[ClassSumsQuestion]] = ClassSumsQuestion
    sends: ClassVar[str] = "numbers and sums of its rows of either class"
    why_default: ClassVar[tuple[Rule, ...]] = (
        Rule("noise: pure", "it needs no delta", "two clusters of 2 features, not beyond"),
    )

    shrinkage: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.shrinkage <= 1e9:
            raise InputError(f"shrinkage must be a number from 0 to 1e9, got {self.shrinkage}")

    def query(self, trial: World, noise: Any, **sent: Any) -> ClassSumsQuestion:
        trial.require_two_classes()
        return self.asks(noise, trial.feature_map, **sent)

    def learn(self, total: np.ndarray) -> Any:
        sums = total.reshape(2, -1)
        counts = np.maximum(sums[:, -1:], 0.0) + self.shrinkage
        return described(sums[:, :-1] / np.maximum(counts, 1.0))

    def worst_case(self, units: int, public: Any) -> PrivateWorstCase:
        world = {"largest_bag": 2, "rows": 2}
        one_column = np.array([[0.0], [1.0]])
        return WorstClassSums("one party, one row changes its class", one_column, 100_000, world=world, units=units)


@dataclass(frozen=True, eq=False)
class WorstClassSums(PrivateWorstCase):
    """Rows (1) of class 0 here, of which `units` are of class 1 there; a party holds two."""

    units: int = 1

    def side(self, there: bool, question: Any, runs: int) -> tuple[Rows, ...]:
        labels = ((np.arange(2) < self.units) & there).astype(np.int64)
        return (Rows(np.ones((2, 1)), labels),)
