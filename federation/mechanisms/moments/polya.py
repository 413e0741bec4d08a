"""Shares of discrete Laplace noise: the difference of two Pólya variables, drawn exactly.

A geometric variable, P[k] = (1 - q) q^k, is the sum of n independent Pólya (negative binomial) ones of shape r = 1/n,
P[k] = (1 - q)^r w_k q^k, w_k = Γ(k + r) / (Γ(r) k!), and the discrete Laplace law is that of the difference of two
geometric variables. So n differences add up to discrete Laplace noise of parameter t, q = e^{-1/t}, exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.lazy_uniform import collect
from federation.numerics.arrays import Booleans, Floats, Integers

_WEIGHT_BITS = 40  # of the heaviest bucket's integer weight
_ABOVE = 1 + 1e-6  # a bucket's weight exceeds its largest value by so much, which hides the rounding of the weights
_RELATIVE_ERROR = 2.0**-26  # of w_k, whose beta function is accurate to 2^-29
_LIKELY = 0.7  # of proposals are kept, roughly


def sample(bits: NoiseBits, scale: int, contributors: int, size: int) -> Integers:
    """`size` independent shares; the sum of `contributors` >= 1 has P[k] ∝ exp(-|k|/scale). Shape (size,), int64.

    Examples:
        >>> parts = [sample(NoiseBits(1, "example", party), 10, contributors=50, size=6) for party in range(50)]
        >>> parts[0].tolist()
        [0, 0, 0, 0, 0, 0]
        >>> sum(parts).tolist()
        [29, -38, -1, -5, 2, 17]
    """
    both = _one_sided(bits, scale, contributors, 2 * size)
    return both[:size] - both[size:]


def _one_sided(bits: NoiseBits, scale: int, contributors: int, size: int) -> Integers:
    buckets = _buckets(scale, contributors)
    return collect(lambda count: buckets.propose(bits, count), size, _LIKELY)


@dataclass(frozen=True, eq=False)
class _Buckets:
    """A staircase above w_k q^k: one step for k = 0, for each [2^i, 2^{i+1}) below 2^J >= t, and for all the rest.

    The rest is cut into blocks of length 2^J, each half as likely as the one before: w_k q^k falls by e or more.
    `starts` and `weights` (buckets,) are integers; a weight of 1 stands for a mass of `unit`.
    """

    scale: int
    shape: float
    contributors: int
    starts: Integers
    weights: Integers
    unit: float

    def propose(self, bits: NoiseBits, count: int) -> Integers:
        """Between 0 and `count` independent draws: a point under the staircase is kept if it is under w_k q^k."""
        ends = np.cumsum(self.weights)
        ticket = bits.words(count) >> np.uint64(64 - int(ends[-1]).bit_length())
        bucket = np.searchsorted(ends, ticket[ticket < ends[-1]].astype(np.int64), side="right")
        start = self.starts[bucket]
        width = np.maximum(start, 1)
        offset: Integers = (bits.words(len(bucket)) & (width - 1).astype(np.uint64)).astype(np.int64)
        rest = bucket == len(self.starts) - 1
        block = np.where(rest, _coins_until_heads(bits, len(bucket)), 0)
        values: Integers = start + block * width + offset
        halved = np.where(rest, block + 1, 0)
        return values[self._under(values, width, halved, self.weights[bucket], bits)]

    def _under(
        self, values: Integers, width: Integers, halved: Integers, weights: Integers, bits: NoiseBits
    ) -> Booleans:
        """Whether a fresh uniform U < w_k q^k over the staircase's height, weight unit 2^-halved / width."""
        words = bits.words(len(values))
        height = weights * self.unit / width * np.exp2(-halved.astype(np.float64))
        share = np.exp(_log_weight(values, self.shape) - values / self.scale) / height
        gap = words * 2.0**-64 - share
        kept: Booleans = gap < 0
        for i in np.flatnonzero(np.abs(gap) <= share * _RELATIVE_ERROR + 2.0**-52):
            exact = Fraction(self.unit) * int(weights[i]) / (int(width[i]) * 2 ** int(halved[i]))
            kept[i] = self._settled(int(words[i]), int(values[i]), exact, bits)
        return kept

    def _settled(self, prefix: int, value: int, height: Fraction, bits: NoiseBits) -> bool:
        """The same in many digits, with as many further bits of U as that needs."""
        import mpmath

        length = 64
        while True:
            with mpmath.workprec(2 * length + 256):
                shape = mpmath.mpf(1) / self.contributors
                log = mpmath.loggamma(value + shape) - mpmath.loggamma(shape) - mpmath.loggamma(value + 1)
                share = mpmath.exp(log - mpmath.mpf(value) / self.scale) * height.denominator / height.numerator
                scaled = mpmath.ldexp(share, length) - prefix
                margin = mpmath.mpf(2) ** -64
                if scaled <= -margin or scaled >= 1 + margin:
                    return bool(scaled > 0)
            prefix, length = prefix << 64 | int(bits.words(1)[0]), length + 64


@lru_cache
def _buckets(scale: int, contributors: int) -> _Buckets:
    shape = 1 / contributors
    last = (scale - 1).bit_length()
    starts = np.array([0, *(2**i for i in range(last + 1))], dtype=np.int64)
    mass = np.exp(_log_weight(starts, shape) - starts / scale) * np.maximum(starts, 1) * _ABOVE
    mass[-1] *= 2  # half as likely as the one before: the first block gets half
    unit = math.ldexp(float(mass.max()), -_WEIGHT_BITS)
    return _Buckets(scale, shape, contributors, starts, np.ceil(mass / unit).astype(np.int64), unit)


def _log_weight(values: Integers, shape: float) -> Floats:
    """ln w_k = -ln(k B(r, k)), and 0 for k = 0."""
    from scipy.special import betaln

    positive = np.maximum(values, 1).astype(np.float64)
    return np.where(values == 0, 0.0, -betaln(shape, positive) - np.log(positive))


def _coins_until_heads(bits: NoiseBits, count: int) -> Integers:
    """How many tails come before the first heads, (count,) int64."""
    tails = np.zeros(count, dtype=np.int64)
    going = np.arange(count)
    while len(going):
        words = bits.words(len(going))
        lowest = words & (~words + np.uint64(1))
        tails[going] += np.where(words == 0, 64, np.log2(np.maximum(lowest, 1))).astype(np.int64)
        going = going[words == 0]
    return tails
