"""Discrete Laplace noise conditioned on sum zero: the K-norm mechanism of one replaced label.

P[z] ∝ exp(-|z|_1/s) on the integer vectors of sum 0. One replaced label moves the counts by e_i - e_j, whose L1
norm is 2, so the loss is one of 2/s, 0, -2/s (Hardt, Talwar 2010 for the K-norm; the sums over the lattice are
worked out here).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.additive import AdditiveCounts
from federation.mechanisms.counts.grid import smallest_scale
from federation.mechanisms.noise import discrete_laplace
from federation.mechanisms.noise.checks import require_epsilon_from_zero
from federation.mechanisms.noise.lazy_uniform import below_exp, collect
from federation.numerics.arrays import Integers

_SAFE = 1e-12  # relative distance to the safe side of delta: covers the rounding of its computation


@dataclass(frozen=True)
class LatticeLaplace(AdditiveCounts):
    """Noise with P[z] ∝ exp(-|z|_1/scale) over the integer vectors of sum 0."""

    name: ClassVar[str] = "lattice_laplace"
    law: ClassVar[str] = "the discrete Laplace of parameter `scale` for each class, conditioned on a sum of zero"

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0."""
        epsilon = require_epsilon_from_zero(epsilon)
        return exact_delta(epsilon, self.classes, float(self.scale))

    def variance(self) -> float:
        """E z_1² = (C-1)/(C+1) ((1+x) r_C/(1-x)² - 1), with x and r as in `ratio`."""
        c, x = self.classes, math.exp(-2 / float(self.scale))
        gap = math.expm1(-2 / float(self.scale))
        return (c - 1) / (c + 1) * ((1 + x) * ratio(c, float(self.scale)) / gap**2 - 1)

    def expected_l1(self) -> float:
        """E |z|_1 = (C-1) ((1+x)/(1-x) - (1-x)/r_{C-1}), with x and r as in `ratio`."""
        s = float(self.scale)
        gap = -math.expm1(-2 / s)
        return (self.classes - 1) * ((2 - gap) / gap - gap / ratio(self.classes - 1, s))

    def escape(self, count: float) -> float:
        """q^count/(1 - q), q = e^{-1/scale}: P[z_1 = k] is P[z_1 = 0] q^|k| times a ratio of at most 1."""
        s = float(self.scale)
        return min(1.0, math.exp(-count / s) / -math.expm1(-1 / s))

    def _noise(self, bits: NoiseBits, draws: int) -> Integers:
        return sample(bits, self.scale, self.classes, draws)


def sample(bits: NoiseBits, scale: int | Fraction, classes: int, size: int) -> Integers:
    """`size` independent exact draws, shape (size, classes) int64.

    All coordinates but the last are independent discrete Laplace; the last is what the sum leaves, kept with
    probability exp(-|z_C|/scale). Raises `InputError` for a scale that `discrete_laplace.sample` refuses.

    Examples:
        >>> sample(NoiseBits(1, "example"), 2, classes=3, size=4)
        array([[ 2,  0, -2],
               [-3,  6, -3],
               [-1, -1,  2],
               [ 0,  1, -1]])
    """

    def draw(count: int) -> Integers:
        first = discrete_laplace.sample(bits, scale, count * (classes - 1)).reshape(count, classes - 1)
        last: Integers = -first.sum(axis=1)
        kept = below_exp(np.abs(last), scale, bits)
        return np.column_stack([first, last])[kept]

    return collect(draw, size, 1 / math.sqrt(math.pi * classes), (classes,))


def exact_delta(epsilon: float, classes: int, scale: float) -> float:
    """The exact delta at `epsilon` >= 0: P[z_i <= 0 <= z_j | sum 0] (1 - e^{epsilon - 2/s}), 0 from 2/s on.

    With q = e^{-1/s}, x = q², the one-sided geometric series and the two-sided one, (1 - x)/((1 - q y)(1 - q/y)),
    multiply to that series' (C-1)-th power up to a factor, and the coefficient of y^0 of its k-th power is
    (1 - x)^{1-k} P_{k-1}(x), P_k(x) = sum_j binom(k, j)² x^j. So the probability is P_{C-2}(x)/P_{C-1}(x).

    Examples:
        >>> exact_delta(0.5, classes=3, scale=2.0), exact_delta(1.0, classes=3, scale=2.0)
        (0.2065, 0.0)
    """
    return loss_beyond(epsilon, scale) / ratio(classes - 1, scale)


def loss_beyond(epsilon: float, scale: float) -> float:
    """1 - e^{epsilon - 2/s} where the loss 2/s exceeds epsilon, else 0; without rounding in the difference."""
    return abs(math.expm1(min(Fraction(0), Fraction(epsilon) - 2 / Fraction(scale))))


def ratio(degree: int, scale: float) -> float:
    """r_k = P_k(x)/P_{k-1}(x) at x = e^{-2/scale}, for k = `degree` >= 1; it grows from 1 to 4 with x and k.

    P_k(x) = (1-x)^k Legendre_k((1+x)/(1-x)), whose three-term recurrence gives r_1 = 1 + x and
    (k+1) r_{k+1} = (2k+1) (1+x) - k (1-x)²/r_k.

    Examples:
        >>> [round(ratio(k, scale=2.0), 4) for k in (1, 2, 100)]
        [1.368, 1.906, 2.568]
    """
    x, gap = math.exp(-2 / scale), math.expm1(-2 / scale)
    value = 1 + x
    for k in range(1, degree):
        value = ((2 * k + 1) * (1 + x) - k * gap**2 / value) / (k + 1)
    return value


def calibrate(classes: int, epsilon: float, delta: float) -> LatticeLaplace:
    """The least noise on the grid whose exact delta at `epsilon` > 0 is at most `delta` in [0, 1); 2/epsilon for 0.

    Examples:
        >>> noise = calibrate(classes=3, epsilon=1.0, delta=1e-3)
        >>> float(noise.scale), noise.expected_l1()
        (1.996, 3.656)
    """
    scale = least_scale(lambda scale: exact_delta(epsilon, classes, scale), epsilon, delta)
    return LatticeLaplace(classes, epsilon, delta, scale)


def least_scale(delta_at: Callable[[float], float], epsilon: float, delta: float) -> Fraction:
    """The smallest scale of the grid at which noise with losses 2/s, 0 and -2/s has delta `delta` in [0, 1) or less."""
    limit = delta * (1 - _SAFE)
    near = 2 / (epsilon - math.log1p(-delta))  # what a probability of 1 would need; it is at least 1/4
    return smallest_scale(lambda scale: delta_at(float(scale)) <= limit, near)
