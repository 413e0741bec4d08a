"""What parties are asked: counts and sums of the rows of each class, with noise that protects a row."""

from dataclasses import dataclass
from typing import ClassVar

from federation.contract.guarantee import Unit
from federation.features.feature_map import FeatureMap
from federation.queries.additive import AdditiveQuestion


@dataclass(frozen=True)
class ClassSumsQuestion(AdditiveQuestion):
    """Send the number and the sum of your rows of either class, cut to norm 1 behind the feature map, with noise."""

    kind: ClassVar[str] = "class_sums"
    unit: ClassVar[Unit] = Unit.ROW

    feature_map: FeatureMap

    @property
    def numbers(self) -> int:
        """A sum and a count for either class."""
        return 2 * (self.feature_map.dimension + 1)

    @property
    def sensitivity(self) -> float:
        """A row of norm 1 with its one moves one block by 2, or two by sqrt 2 each."""
        return 2.0 * (1 + 1e-6)
