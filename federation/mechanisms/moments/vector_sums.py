"""Shares of the noise on a sum of one bounded vector per party, which hides all that one party holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Unit
from federation.contract.randomness import NoiseBits
from federation.features.ball import Ball
from federation.mechanisms.moments import shares
from federation.mechanisms.noise.additive import AdditiveMechanism, Noise, OnAdditive
from federation.mechanisms.noise.additive import calibrate as calibrate_additive
from federation.mechanisms.noise.checks import require_whole
from federation.mechanisms.noise.mechanism import Parameters
from federation.numerics.arrays import Floats

_MOST_STEPS = 2.0**51  # of the noise's grid, in a sum


@dataclass(frozen=True)
class VectorSumNoise(OnAdditive):
    """One share of the noise that makes a sum of vectors in a ball, one per party, (epsilon, delta)-private.

    So many shares as `contributors` are the whole noise; further ones only add independent noise. One party that holds
    something else moves the sum from one end of the ball to the other at most.
    """

    additive: AdditiveMechanism
    ball: Ball
    contributors: int

    units: ClassVar[tuple[Unit, ...]] = (Unit.PARTY,)

    @property
    def name(self) -> str:
        """The mechanism's name in its guarantee."""
        return f"vector_sum_{self.additive.name}"

    @property
    def parameters(self) -> Parameters:
        """Public numbers of the mechanism, as its guarantee lists them."""
        return {**self.additive.parameters, "contributors": self.contributors, "norm": self.ball.norm}

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on, but for why vectors are in the ball."""
        return shares.assumptions(self.additive, self.contributors)

    def release(self, vector: Floats, bits: NoiseBits, draws: int = 1) -> Floats:
        """A party's vector (D,), brought into the ball, with its shares: (draws, D) whole multiples of the grid's step.

        Raises `InputError` for another shape, NaN or infinities.
        """
        value = np.asarray(vector, dtype=np.float64)
        return shares.release(self.additive, self.contributors, self.ball.of(value[None])[0], bits, draws)


def calibrate(
    noise: Noise, *, ball: Ball, dimension: int, epsilon: float, delta: float = 0.0, contributors: int
) -> VectorSumNoise:
    """The least noise that makes a sum of vectors in a ball (epsilon, delta)-private, in `contributors` shares.

    `noise`: "pure" or "gaussian", `delta` and errors as for `federation.mechanisms.noise.additive.calibrate`; raises
    `InputError` also where a sum of so many vectors would not fit the grid. What double precision adds to the norm of a
    vector is charged, and the rounding to the grid.

    Examples:
        >>> noise = calibrate("pure", ball=Ball(1.0, scaled=True), dimension=10, epsilon=1.0, contributors=80)
        >>> noise.name, noise.additive.sensitivity, noise.additive.scale
        ('vector_sum_l2_gamma', 2.0, 2.0)
        >>> noise.release(np.arange(10.0), NoiseBits(1, "example", 0)).shape
        (1, 10)
    """
    require_whole("contributors", contributors, 1)
    require_whole("dimension", dimension, 1)
    if contributors > shares.MOST:
        raise InputError(f"contributors must be at most {shares.MOST}, got {contributors}; sum in groups")
    diameter = 2 * ball.norm * (1 + ball.excess(dimension))
    additive = calibrate_additive(noise, sensitivity=diameter, dimension=dimension, epsilon=epsilon, delta=delta)
    if contributors * diameter > additive.step * _MOST_STEPS:
        raise InputError(
            f"a sum over {contributors} parties does not fit the grid of noise as little as epsilon={epsilon:g} needs; "
            "lower epsilon or sum in groups"
        )
    shares.check(additive, contributors)
    return VectorSumNoise(additive, ball, contributors)
