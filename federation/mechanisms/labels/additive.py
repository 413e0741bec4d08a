"""Integer noise on labels that are rounded to a public grid whose ends are those of the declared range.

A label is the number of the nearest of 2^20 + 1 evenly spaced points, so one replaced label moves it by 2^20 steps at
most: rounding comes first, and nothing is left to be charged for it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from federation.contract.guarantee import Assumption, Check
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels.label_range import LabelRange
from federation.mechanisms.labels.mechanism import LabelReplacement
from federation.mechanisms.noise import discrete_gaussian, discrete_laplace

STEPS = 2**20


@dataclass(frozen=True)
class AdditiveLabels(LabelReplacement):
    """Exact integer noise of the given scale, in steps of the grid; unbiased, but for rounding by half a step at most.

    `epsilon` and `delta` are what one release claims.
    """

    labels: LabelRange
    epsilon: float
    delta: float
    scale: int

    name: ClassVar[str]
    law: ClassVar[str]  # of the noise, as a guarantee puts it

    @property
    def parameters(self) -> dict[str, float | int | str]:
        """Public numbers. Composition reads `dimension` and `grid_scale`, the scale in steps."""
        return {
            "low": self.labels.low,
            "high": self.labels.high,
            "step": self._step,
            "scale": self.scale * self._step,
            "grid_scale": self.scale,
            "dimension": 1,
        }

    def release(self, labels: np.ndarray, bits: NoiseBits) -> np.ndarray:
        """Noisy labels (n,), which may lie outside the range. Raises `InputError` as `LabelRange.checked`."""
        positions = self.labels.positions(labels, STEPS)
        return self.labels.points(positions + self._noise(bits, len(positions)), STEPS)

    def variance(self, labels: np.ndarray | None = None) -> np.ndarray | float:
        """The same for all labels: (n,) copies of it, or the number."""
        value = self._variance() * self._step**2
        return value if labels is None else np.full(len(self.labels.checked(labels)), value)

    def bias(self, labels: np.ndarray | None = None) -> np.ndarray | float:
        """That of rounding: half a step at most."""
        if labels is None:
            return self._step / 2
        return self.labels.points(self.labels.positions(labels, STEPS), STEPS) - self.labels.checked(labels)

    @property
    def _own_assumptions(self) -> tuple[Assumption, ...]:
        noise = Assumption(
            f"labels are rounded to {STEPS + 1} points of the range, and the noise is {self.law}, independent for each "
            "label and drawn exactly in integer arithmetic",
            Check.ENFORCED,
        )
        return (noise,)

    @abstractmethod
    def delta_at(self, epsilon: float) -> float:
        """The delta of one release at another epsilon >= 0."""

    @abstractmethod
    def _variance(self) -> float:
        """In squared steps."""

    @abstractmethod
    def _noise(self, bits: NoiseBits, size: int) -> np.ndarray:
        """Integer noise, (size,) int64."""

    @property
    def _step(self) -> float:
        return self.labels.width / STEPS


@dataclass(frozen=True)
class LaplaceLabels(AdditiveLabels):
    """Noise with P[k] ∝ exp(-|k|/scale): pure."""

    name: ClassVar[str] = "label_laplace"
    law: ClassVar[str] = "the discrete Laplace of parameter `grid_scale` steps"

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0."""
        return discrete_laplace.delta(epsilon, STEPS, self.scale)

    def _variance(self) -> float:
        return 0.5 / math.sinh(0.5 / self.scale) ** 2

    def _noise(self, bits: NoiseBits, size: int) -> np.ndarray:
        return discrete_laplace.sample(bits, self.scale, size)


@dataclass(frozen=True)
class GaussianLabels(AdditiveLabels):
    """Noise with P[k] ∝ exp(-k²/(2 scale²))."""

    name: ClassVar[str] = "label_gaussian"
    law: ClassVar[str] = "the discrete Gaussian of standard deviation `grid_scale` steps"

    @property
    def gaussian_mu(self) -> float:
        """Width of the range over standard deviation, for composition."""
        return STEPS / self.scale

    def delta_at(self, epsilon: float) -> float:
        """A proved bound, exact but for about 1e-9 of itself, at another epsilon >= 0."""
        return discrete_gaussian.delta_bound(epsilon, self.gaussian_mu, 1, self.scale)

    def _variance(self) -> float:
        return float(self.scale) ** 2  # but for e^{-2 pi² scale²} of it

    def _noise(self, bits: NoiseBits, size: int) -> np.ndarray:
        return discrete_gaussian.sample(bits, self.scale, size)


def laplace(labels: LabelRange, epsilon: float) -> LaplaceLabels:
    """The least discrete Laplace noise that makes a label epsilon-private."""
    return LaplaceLabels(labels, epsilon, 0.0, discrete_laplace.calibrate(STEPS, epsilon))


def gaussian(labels: LabelRange, epsilon: float, delta: float) -> GaussianLabels:
    """The least discrete Gaussian noise that makes a label (epsilon, delta)-private."""
    return GaussianLabels(labels, epsilon, delta, discrete_gaussian.calibrate(float(STEPS), 1, epsilon, delta))
