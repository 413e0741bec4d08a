"""What parties are asked: counts and sums of the rows of each class, with noise that protects a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.query import Field, Noise, PrivateQuestion
from federation.features.feature_map import FeatureMap
from federation.mechanisms.noise.additive import AdditiveMechanism, calibrate

# A row of norm 1 with its one: of another class it moves two blocks by sqrt 2 each, of its own class one by 2.
SENSITIVITY = 2.0 * (1 + 1e-6)
LARGEST = 2.0**60


@dataclass(frozen=True)
class SumsNoise(Noise):
    """L2-Gamma or Gaussian noise, or none."""

    kind: Literal["pure", "gaussian", "off"]


@dataclass(frozen=True)
class ClassSumsQuestion(PrivateQuestion):
    """Send the number and the sum of your rows of either class, cut to norm 1 behind the feature map, with noise."""

    kind: ClassVar[str] = "class_sums"
    noise: SumsNoise
    feature_map: FeatureMap

    @property
    def width(self) -> int:
        """Numbers of either class."""
        return self.feature_map.dimension + 1

    def fields(self) -> dict[str, Field]:
        """One noisy vector for each draw."""
        return {"sums": Field((self.draws, 2 * self.width), minimum=-LARGEST, maximum=LARGEST)}

    def mechanism(self) -> AdditiveMechanism:
        """The noise on a party's vector."""
        noise = self.noise
        return calibrate(
            noise.kind, sensitivity=SENSITIVITY, dimension=2 * self.width, epsilon=noise.epsilon, delta=noise.delta
        )

    def _promised(self) -> Guarantee | NoGuarantee:
        if self.noise.kind == "off":
            return NoGuarantee("noise is off")
        return self.mechanism().guarantee(Unit.ROW, Adjacency.REPLACE)
