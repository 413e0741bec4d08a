"""Independent discrete Laplace noise on label counts, with the exact delta of the neighbouring pair."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.additive import AdditiveCounts, centred_l1
from federation.mechanisms.counts.lattice_laplace import least_scale, loss_beyond
from federation.mechanisms.noise import discrete_laplace
from federation.mechanisms.noise.checks import require_epsilon_from_zero
from federation.numerics.arrays import Floats, Integers


@dataclass(frozen=True)
class IndependentLaplace(AdditiveCounts):
    """Independent noise with P[k] ∝ exp(-|k|/scale) on every count; delta is that of the counts before centring."""

    name: ClassVar[str] = "count_laplace"
    law: ClassVar[str] = "the discrete Laplace of parameter `scale`, independent for each class"

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0, before centring, which can only lower it."""
        epsilon = require_epsilon_from_zero(epsilon)
        return exact_delta(epsilon, float(self.scale))

    def variance(self) -> float:
        """Of one released count: 2 q/(1 - q)² (1 - 1/C)."""
        return discrete_laplace.variance(self.scale) * (1 - 1 / self.classes)

    def expected_l1(self) -> float:
        """E sum_i |released count_i - count_i|, in records."""
        return centred_l1(_characteristic, float(self.scale), self.classes, tail=40.0)

    def escape(self, count: float) -> float:
        """2 C q^reach/(1 + q), q = e^{-1/scale}: some class's noise must reach count C/(2 (C-1)) for it."""
        reach = 0.5 * count * self.classes / (self.classes - 1)
        s = float(self.scale)
        return min(1.0, 2 * self.classes * math.exp(-reach / s) / (1 + math.exp(-1 / s)))

    def _noise(self, bits: NoiseBits, draws: int) -> Integers:
        return discrete_laplace.sample(bits, self.scale, draws * self.classes).reshape(draws, self.classes)


def exact_delta(epsilon: float, scale: float) -> float:
    """P[z_i <= 0] P[z_j >= 0] (1 - e^{epsilon - 2/s}), each probability 1/(1 + e^{-1/s}); 0 from epsilon = 2/s on.

    Examples:
        >>> exact_delta(0.5, scale=2.0), exact_delta(1.0, scale=2.0)
        (0.1525, 0.0)
    """
    return loss_beyond(epsilon, scale) / (1 + math.exp(-1 / scale)) ** 2


def calibrate(classes: int, epsilon: float, delta: float) -> IndependentLaplace:
    """The least noise on the grid whose exact delta at `epsilon` > 0 is at most `delta` in [0, 1); 2/epsilon for 0.

    Examples:
        >>> float(calibrate(classes=3, epsilon=1.0, delta=1e-3).scale)
        1.995
    """
    scale = least_scale(lambda scale: exact_delta(epsilon, scale), epsilon, delta)
    return IndependentLaplace(classes, epsilon, delta, scale)


def _characteristic(t: Floats, scale: float) -> Floats:
    """E cos(t z) = (1 - q)²/(1 - 2 q cos t + q²)."""
    q = math.exp(-1 / scale)
    return math.expm1(-1 / scale) ** 2 / (math.expm1(-1 / scale) ** 2 + 4 * q * np.square(np.sin(t / 2)))
