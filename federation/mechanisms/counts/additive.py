"""Integer noise on the label counts of a bag, centred to the bag's public size.

`CountMechanism` is the interface of all mechanisms for counts. Noise scales lie on a dyadic grid, so that doubles, JSON
and the exact samplers all mean the same rational number.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check, Keeper, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.mechanism import (
    NOISE_KEY,
    Mechanism,
    Parameters,
    Replacement,
    first_between,
    require_draws,
)
from federation.numerics.rows import Floats, Integers

_HALF_LAW = 2**15  # terms of a law on one side of zero up to which it is summed at its own scale
_SMOOTH_SCALE = 64.0  # from here on an expectation grows as the scale, but for less than a part of 10^4

PUBLIC_BAG = Assumption(
    "which records form the bag, how many they are and their features are public: only labels are protected",
    Check.DECLARED,
    Keeper.HOLDER,
)
WHOLE_COUNTS = Assumption(
    "the counts are whole numbers; replacing one label moves one class by +1, another by -1 and no other", Check.CHECKED
)


class CountReplacement(Replacement):
    """The guarantee of counts, also for all labels of a person who is in the bag with one record."""

    units: ClassVar[tuple[Unit, ...]] = (Unit.LABEL, Unit.PERSON)


@dataclass(frozen=True)
class AdditiveCounts(CountReplacement, ABC):
    """Exact integer noise of a rational scale on the counts (C,) of a bag; then all classes move by the same amount.

    That amount restores the bag's public size. It is computed from the noisy counts, so it is post-processing.
    `epsilon` and `delta` are what one release claims.
    """

    classes: int
    epsilon: float
    delta: float
    scale: Fraction

    name: ClassVar[str]
    law: ClassVar[str]  # of the noise, as a guarantee puts it

    @property
    def parameters(self) -> Parameters:
        """Public numbers. The scale is dyadic, so its double is exact."""
        return {"classes": self.classes, "scale": float(self.scale)}

    def release(self, counts: Integers, bits: NoiseBits, draws: int = 1) -> Floats:
        """Noisy counts of the bag's public size, shape (draws, C) float64; entries may be negative.

        Raises `InputError` as `checked_counts` does.
        """
        noisy = self.noisy(counts, bits, draws)
        sums: Integers = noisy.sum(axis=1, keepdims=True)
        return noisy + (int(np.sum(counts)) - sums) / self.classes

    def noisy(self, counts: Integers, bits: NoiseBits, draws: int = 1) -> Integers:
        """Counts plus noise, shape (draws, C) int64: as private as the release. Raises as `checked_counts` does."""
        require_draws(draws)
        return checked_counts(counts, self.classes) + self._noise(bits, draws)

    def covariance(self, size: int) -> Floats:
        """Covariance (C, C) of the released counts; the same for every bag."""
        return exchangeable(self.variance(), self.classes)

    def log_ratio(self, released: Floats, here: Floats, there: Floats) -> Floats:
        """As `CountMechanism.log_ratio`, of Laplace noise."""
        return np.asarray((np.abs(released - here) - np.abs(released - there)).sum(axis=1) / float(self.scale))

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on, but for why bags are disjoint."""
        noise = Assumption(f"the noise is {self.law}, drawn exactly in integer arithmetic", Check.ENFORCED)
        return PUBLIC_BAG, WHOLE_COUNTS, noise, NOISE_KEY

    @abstractmethod
    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0."""

    @abstractmethod
    def variance(self) -> float:
        """Variance of one released count, in records squared."""

    @abstractmethod
    def expected_l1(self) -> float:
        """E sum_i |released count_i - count_i|, in records."""

    @abstractmethod
    def escape(self, count: float) -> float:
        """An upper bound on the probability that a class is released `count` or more below its true count."""

    @abstractmethod
    def _noise(self, bits: NoiseBits, draws: int) -> Integers:
        """Integer noise, shape (draws, C) int64."""


def checked_counts(counts: Integers, classes: int) -> Integers:
    """The counts as int64, shape (classes,).

    Raises `InputError` for another shape, entries that are not whole numbers from 0 to 2^52, or an empty bag.

    Examples:
        >>> checked_counts(np.array([3.0, 0.0, 5.0]), classes=3)
        array([3, 0, 5])
    """
    given = np.asarray(counts)
    if given.shape != (classes,):
        raise InputError(f"counts must have shape ({classes},), one per class, got {given.shape}")
    if given.dtype.kind not in "iuf" or not np.all((given >= 0) & (given <= 2**52) & (given == np.floor(given))):
        raise InputError("counts must be whole numbers >= 0; count each record's label once, without weights")
    if not given.any():
        raise InputError("counts must not all be zero: a bag without records has no class proportions; leave it out")
    return given.astype(np.int64)


def equal_counts(classes: int, size: int) -> Integers:
    """The counts (C,) int64 of a bag of that size that are equal, or differ by at most 1.

    Examples:
        >>> equal_counts(classes=3, size=11)
        array([4, 4, 3])
    """
    least, rest = divmod(size, classes)
    return least + (np.arange(classes) < rest)


def exchangeable(variance: float, classes: int) -> Floats:
    """The covariance (C, C) of exchangeable entries of constant sum that have this variance each.

    Examples:
        >>> exchangeable(2.0, classes=3)
        array([[ 2., -1., -1.],
               [-1.,  2., -1.],
               [-1., -1.,  2.]])
    """
    return variance * (classes * np.eye(classes) - 1) / (classes - 1)


def centred_l1(characteristic: Callable[[Floats, float], Floats], scale: float, classes: int, tail: float) -> float:
    """E sum_i |z_i - mean z| of C independent integers with the characteristic function (t, scale) -> real.

    It is E|(C-1) z_1 - S|, where S, the sum of the others, has the Fourier transform of the characteristic function's
    (C-1)-th power for its law: (C-1) E|z_1| + 2 E max(0, S - (C-1) |z_1|), of which few values of z_1 matter for many
    classes. z has a variance of at most 2 scale², and |z| <= `tail` scale but for a negligible probability. Very wide
    noise is summed at a smaller scale, 64 or more, and the result scaled up: relative error below 1e-4.
    """
    reach = tail + 9 * math.sqrt(2 * (classes - 1))  # of S, in units of the scale
    summed = min(scale, max(_SMOOTH_SCALE, _HALF_LAW / reach))
    points = 2 ** math.ceil(math.log2(2 * reach * summed + 64))
    transform = characteristic(2 * math.pi * np.arange(points // 2 + 1) / points, summed)
    one, others = np.fft.irfft(transform), np.fft.irfft(transform ** (classes - 1))
    one = one[: math.ceil(tail * summed) + 2]  # from z_1 = 0
    distance = np.arange(len(one))
    beyond = np.cumsum(others[: points // 2][::-1])[::-1]  # P[S >= n]
    excess = np.append(np.cumsum(beyond[:0:-1])[::-1], 0.0)  # E max(0, S - n)
    met = excess[np.minimum((classes - 1) * distance, len(excess) - 1)]
    found = 2 * float(one @ ((classes - 1) * distance + 2 * met)) - 2 * float(one[0] * met[0])
    return found * scale / summed


_RELATIVE_BITS = 20  # the grid's step is between 2^-20 and 2^-19 of the scale
_MAX_BITS = 40  # of a numerator or denominator: the samplers' limit


def smallest_scale(enough: Callable[[Fraction], bool], near: float) -> Fraction:
    """The smallest scale n / 2^k with `enough(scale)`, searched from `near` > 0.

    The step 2^-k is at most 2^-19 of `near`, within 2^-40 and 1. `enough` is false below some scale and true above;
    where it is not, the result is still enough and the next smaller one is not. Raises `InputError` when `near`
    exceeds 2^39.

    Examples:
        >>> float(smallest_scale(lambda scale: scale**2 >= 2, near=1.5))
        1.414
    """
    if not near < 2.0 ** (_MAX_BITS - 1):
        raise InputError(f"the noise would need a scale of {near:g} counts, allowed is 2^39; choose a larger epsilon")
    exponent = _RELATIVE_BITS - math.frexp(near)[1] if near > 0 else _MAX_BITS
    denominator = 2 ** min(max(exponent, 0), _MAX_BITS)

    def reached(numerator: int) -> bool:
        return numerator > 0 and enough(Fraction(numerator, denominator))

    low = high = max(1, round(near * denominator))
    step = 1
    if reached(high):
        while reached(low := max(high - step, 0)):
            high, step = low, 2 * step
    else:
        while not reached(high := low + step):
            low, step = high, 2 * step
    return Fraction(first_between(reached, low, high), denominator)


class CountMechanism(Mechanism, Protocol):
    """Releases of the label counts (C,) of a bag of public size m, (epsilon, delta)-private for one replaced label.

    Neighbouring counts differ by +1 in one class and -1 in another. Nothing in a mechanism depends on counts.
    """

    @property
    def classes(self) -> int:
        """C, how many classes there are."""

    def release(self, counts: Integers, bits: NoiseBits, draws: int = 1) -> Floats:
        """Estimates of the counts, shape (draws, C) float64; each row sums to m and may have negative entries."""

    def covariance(self, size: int) -> Floats:
        """Covariance (C, C) of the released counts of a bag of that size; at equal counts where it depends on them.

        Rows and columns sum to zero.
        """

    def log_ratio(self, released: Floats, here: Floats, there: Floats) -> Floats:
        """The logarithm of how much likelier releases (n, k) are from counts `there` than from `here`, (n,).

        Both are (1, k), the counts of all bags side by side. Up to a positive factor, and by the noise before centring.
        """
