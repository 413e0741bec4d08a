"""Shares of one noise on sums over all parties: of one bounded vector per party, or of counts and rows per bag.

`SharedBagNoise` is for bags that are common to all parties. Each party has some of the rows of a bag, or none. So the
label counts of a bag, and the sums of its rows, are sums over the parties. Whatever one unit moves is at one party:

- A changed label takes a row from one count of its bag to another: 2 in the L1 norm, sqrt(2) in the L2 norm.
- r rows of a person in r bags move 2r counts by one each.
- A replaced row may come to lie in another bag. Two counts move by one wherever they are. The sums of rows of norm 1
  move by 2 in the L2 norm where both are of one bag, by sqrt(2) otherwise.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Unit
from federation.contract.query import MOST_BAGS, MOST_ROWS
from federation.contract.randomness import NoiseBits
from federation.features.feature_map import Ball
from federation.mechanisms.noise.additive import AdditiveMechanism, Noise, OnAdditive, calibrate_laplace
from federation.mechanisms.noise.additive import calibrate as calibrate_additive
from federation.mechanisms.noise.mechanism import Parameters, require_positive, require_wanted, require_whole
from federation.mechanisms.sums import shares
from federation.numerics.rows import Floats

SharedKind = Literal["auto", "pure", "gaussian"]

_FREE = 1.001  # at so little more deviation than with delta, a pure guarantee is preferred
_MOST_STEPS = 2.0**52  # of the noise's grid, in a count
_ROUNDING = 1e-6  # charged for, relative: norms and sums of rows, and products with the label weight, are rounded


@dataclass(frozen=True)
class SharedBagNoise(OnAdditive):
    """Shares of the noise on each number of all bags, `contributors` of which are the whole; a share hides nothing.

    The sum over so many parties or more claims epsilon and delta for one unit. `additive` is the whole noise on the
    numbers that one unit moves at most. Made by `calibrate_bag_totals` and `calibrate_rows`.
    """

    additive: AdditiveMechanism
    contributors: int

    units: ClassVar[tuple[Unit, ...]] = (Unit.LABEL, Unit.PERSON, Unit.ROW)

    @property
    def name(self) -> str:
        """The mechanism's name in its guarantee."""
        return f"bag_shares_{self.additive.name}"

    @property
    def parameters(self) -> Parameters:
        """Public numbers of the mechanism, as its guarantee lists them."""
        return {**self.additive.parameters, "contributors": self.contributors}

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on, but for why the sensitivity holds."""
        return shares.assumptions(self.additive, self.contributors)

    @property
    def step(self) -> float:
        """Of the grid: a power of two, and what is sent is whole multiples of it."""
        return self.additive.step

    def variance(self) -> float:
        """Of the whole noise on each number: of the shares of `contributors` parties."""
        return shares.variance(self.additive, self.contributors)

    def release(self, values: Floats, bits: NoiseBits, draws: int = 1) -> Floats:
        """One party's numbers (N,) of all bags, absent ones zero, with its shares: (draws, N), in multiples of `step`.

        Raises `InputError` for what is not finite, or beyond 2^52 steps.
        """
        given = np.asarray(values, dtype=np.float64)
        return shares.release(replace(self.additive, dimension=given.size), self.contributors, given, bits, draws)


def calibrate_bag_totals(
    noise: SharedKind, *, epsilon: float, delta: float, contributors: int, rows_per_person: int = 1
) -> SharedBagNoise:
    """The least noise of a kind, to be shared, that makes the label counts of all bags (epsilon, delta)-private.

    `noise`: "pure" (discrete Laplace), "gaussian" (discrete Gaussian), or "auto", which of these has the lesser
    deviation and within 0.1 % is pure. Protected is one label, or those of `rows_per_person` rows in as many bags
    together. `contributors`: how many honest parties share it, 1 or more. `delta` in [0, 1); pure noise claims 0
    whatever it is. Raises `InputError` for arguments out of range, and where counts of up to 10^9 rows would not fit
    the grid.

    Examples:
        >>> noise = calibrate_bag_totals("auto", epsilon=1.0, delta=1e-6, contributors=40)
        >>> noise.name, math.sqrt(noise.variance())
        ('bag_shares_discrete_laplace', 2.828)
        >>> parts = [noise.release(np.array([3, 0, 1, 1]), NoiseBits(1, "example", party)) for party in range(40)]
        >>> (sum(parts) - np.array([120, 0, 40, 40])).round(2)
        array([[-2.67,  2.63, -0.43, -0.8 ]])
    """
    require_wanted(noise, epsilon, delta, known=("auto", "pure", "gaussian"), with_delta=("gaussian",), pure="pure")
    require_whole("rows_per_person", rows_per_person, 1, MOST_BAGS)
    require_whole("contributors", contributors, 1, shares.MOST)
    cells = 2 * rows_per_person
    laplace = calibrate_laplace(l1_sensitivity=float(cells), dimension=cells, epsilon=epsilon)
    chosen = pure = SharedBagNoise(laplace, contributors)
    if noise != "pure" and delta > 0:
        moved = math.sqrt(cells)
        normal = calibrate_additive("gaussian", sensitivity=moved, dimension=cells, epsilon=epsilon, delta=delta)
        chosen = SharedBagNoise(normal, contributors)
        if noise == "auto" and pure.variance() <= _FREE**2 * chosen.variance():
            chosen = pure
    return _fitting(chosen)


def calibrate_rows(
    *, label_weight: float, numbers: int, epsilon: float, delta: float, contributors: int
) -> SharedBagNoise:
    """The least Gaussian noise, to be shared, on counts times `label_weight` beside sums of rows of norm at most 1.

    Protected is one row, which may come to lie in another bag. `numbers`: of one bag, its counts and the features of
    its sum. Raises `InputError` for arguments out of range, and where bags of up to 10^9 rows would not fit the grid.

    Examples:
        >>> noise = calibrate_rows(label_weight=1.0, numbers=34, epsilon=1.0, delta=1e-6, contributors=40)
        >>> noise.name, noise.additive.sensitivity, noise.additive.dimension
        ('bag_shares_discrete_gaussian', 2.449, 68)
    """
    require_positive("label_weight", label_weight)
    require_whole("numbers", numbers, 1)
    require_whole("contributors", contributors, 1, shares.MOST)
    sensitivity = (1 + _ROUNDING) * math.hypot(math.sqrt(2) * label_weight, 2)
    known = {"dimension": 2 * numbers}
    additive = calibrate_additive("gaussian", sensitivity=sensitivity, epsilon=epsilon, delta=delta, **known)
    return _fitting(SharedBagNoise(additive, contributors), max(1.0, label_weight))


def _fitting(noise: SharedBagNoise, largest: float = 1.0) -> SharedBagNoise:
    """The same noise, refused by public numbers where a release would not fit the grid: a late refusal would tell."""
    if noise.step * _MOST_STEPS < MOST_ROWS * largest:
        raise InputError(
            f"bags of up to {MOST_ROWS} rows do not fit the grid of noise as little as epsilon="
            f"{noise.additive.epsilon:g} needs; lower epsilon"
        )
    shares.check(noise.additive, noise.contributors)
    return noise


_MOST_VECTOR_STEPS = 2.0**51  # of the noise's grid, in a sum


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


def calibrate_vector_sums(
    noise: Noise, *, ball: Ball, dimension: int, epsilon: float, delta: float = 0.0, contributors: int
) -> VectorSumNoise:
    """The least noise that makes a sum of vectors in a ball (epsilon, delta)-private, in `contributors` shares.

    `noise`: "pure" or "gaussian", `delta` and errors as for `federation.mechanisms.noise.additive.calibrate`; raises
    `InputError` also where a sum of so many vectors would not fit the grid. What double precision adds to the norm of a
    vector is charged, and the rounding to the grid.

    Examples:
        >>> noise = calibrate_vector_sums("pure", ball=Ball(1.0, scaled=True), dimension=10, epsilon=1.0,
        ...                               contributors=80)
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
    if contributors * diameter > additive.step * _MOST_VECTOR_STEPS:
        raise InputError(
            f"a sum over {contributors} parties does not fit the grid of noise as little as epsilon={epsilon:g} needs; "
            "lower epsilon or sum in groups"
        )
    shares.check(additive, contributors)
    return VectorSumNoise(additive, ball, contributors)
