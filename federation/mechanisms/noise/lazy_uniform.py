"""Exact decisions about real uniform numbers, of which only the leading bits have been drawn.

A real U, uniform on [0, 1), is given by its first bits; the others exist but are drawn only when a decision
needs them. Each decision is first taken for all elements in double precision with an interval that surely
contains the true value; the few elements whose interval straddles the boundary get more bits, and interval
arithmetic of growing precision settles them. So every returned value has exactly the law of the real-number
formula.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from federation.contract.randomness import NoiseBits
from federation.numerics.rows import Booleans, Floats, Integers

T = TypeVar("T")
Interval = tuple[Any, Any]  # of two of mpmath's raw numbers

_PREFIX_BITS = 63  # one word gives a 63-bit prefix, and its lowest bit stays free for a sign
_COARSE = 2**48  # below this prefix the relative width of U exceeds 2^-48: settle it at once
_RELATIVE_ERROR = 2.0**-46  # covers log and exp with relative errors up to 2^-47 (numpy's stay below 2^-50)
_BLOCK = 2**16  # proposals at a time: the work arrays stay in the processor's cache


def collect(draw: Callable[[int], Integers], size: int, acceptance: float, shape: tuple[int, ...] = ()) -> Integers:
    """The first `size` values of the independent sequence that `draw(n)` continues by at most n values.

    `acceptance` is roughly the share of the n that survive rejection; it affects speed only. Each value has
    the given `shape`. Shape (size, *shape), int64.

    Examples:
        >>> bits = NoiseBits(1, "example")
        >>> def up_to_six(n):
        ...     three_bits = (bits.words(n) >> np.uint64(61)).astype(np.int64)
        ...     return three_bits[(1 <= three_bits) & (three_bits <= 6)]
        >>> collect(up_to_six, size=8, acceptance=0.75).tolist()
        [2, 6, 1, 5, 5, 6, 4, 2]
    """
    values = np.empty((size, *shape), dtype=np.int64)
    filled = 0
    while filled < size:
        count = min(int(1.05 * (size - filled) / acceptance) + 16, _BLOCK)
        fresh = draw(count)[: size - filled]
        values[filled : filled + len(fresh)] = fresh
        filled += len(fresh)
    return values


def floor_exponential(words: NDArray[np.uint64], scale: int | Fraction, bits: NoiseBits) -> Integers:
    """floor(-scale ln U), U uniform with the high bits of `words` as its first 63; shape of `words`, int64.

    -scale ln U is exponential with mean `scale`, so the result is geometric: P[k] ∝ exp(-k/scale), k = 0, 1,
    ... `bits` supplies further bits where the first 63 leave the integer open.

    Examples:
        >>> bits = NoiseBits(1, "example")
        >>> floor_exponential(bits.words(8), 5, bits).tolist()
        [6, 1, 0, 9, 1, 1, 1, 0]
    """
    mean = float(scale)
    prefix = (words >> np.uint64(1)).view(np.int64)
    log = np.log(np.maximum(prefix, 1) * 2.0**-_PREFIX_BITS)
    centre = log * -mean
    error = (1.0 - log) * (_RELATIVE_ERROR * mean)
    low = np.floor(np.maximum(centre - error, 0.0))
    open_ = (low != np.floor(centre + error)) | (prefix < _COARSE)
    values = low.astype(np.int64)
    for i in np.flatnonzero(open_):
        values[i] = _settle(int(prefix[i]), _PREFIX_BITS, bits, partial(_floor_log, scale=scale))
    return values


def below_exp_square(distance: Integers, denominator: int, bits: NoiseBits) -> Booleans:
    """Whether a fresh uniform U < exp(-distance²/denominator), for integers; shape of `distance`, bool.

    Examples:
        >>> below_exp_square(np.arange(5), 8, NoiseBits(1, "example")).tolist()
        [True, True, False, True, False]
    """
    exponent = np.square(distance.astype(np.float64)) / float(denominator)
    return _coins(exponent, lambda i: Fraction(int(distance[i]) ** 2, denominator), bits)


def below_exp(distance: Integers, scale: int | Fraction, bits: NoiseBits) -> Booleans:
    """Whether a fresh uniform U < exp(-distance/scale), for integers >= 0; shape of `distance`, bool.

    Examples:
        >>> below_exp(np.arange(5), 2, NoiseBits(1, "example")).tolist()
        [True, False, False, True, False]
    """
    exponent = distance.astype(np.float64) / float(scale)
    return _coins(exponent, lambda i: int(distance[i]) / Fraction(scale), bits)


def _coins(exponent: Floats, exact: Callable[[int], Fraction], bits: NoiseBits) -> Booleans:
    """Whether fresh uniforms lie below exp(-exponent), where `exact(i)` is the i-th exponent without rounding."""
    words = bits.words(len(exponent))
    probability = np.exp(-exponent)
    gap = words * 2.0**-64 - probability
    error = probability * (1.0 + exponent) * _RELATIVE_ERROR + 2.0**-52
    answers = gap < 0
    for i in np.flatnonzero(np.abs(gap) <= error):
        answers[i] = _settle(int(words[i]), 64, bits, partial(_below_exp, exponent=exact(int(i))))
    return answers


def _settle(prefix: int, length: int, bits: NoiseBits, decide: Callable[[Interval, int], T | None]) -> T:
    """Draws bits after `prefix` until `decide(interval of U, precision)` is not None: soon, almost surely."""
    from mpmath.libmp import from_man_exp

    while True:
        prefix, length = prefix << 64 | int(bits.words(1)[0]), length + 64
        if prefix == 0:
            continue
        interval = from_man_exp(prefix, -length), from_man_exp(prefix + 1, -length)
        answer = decide(interval, length + 64)
        if answer is not None:
            return answer


def _floor_log(interval: Interval, precision: int, scale: int | Fraction) -> int | None:
    """floor(-scale ln U) when it is the same all over the interval."""
    from mpmath.libmp import mpi_log, mpi_mul, to_int

    low, high = mpi_mul(mpi_log(interval, precision), _enclosure(-scale, precision), precision)
    return to_int(low) if to_int(low) == to_int(high) else None


def _below_exp(interval: Interval, precision: int, exponent: Fraction) -> bool | None:
    """Whether U < exp(-exponent) when that is the same all over the interval."""
    from mpmath.libmp import mpf_ge, mpf_le, mpi_exp

    low, high = mpi_exp(_enclosure(-exponent, precision), precision)
    if mpf_le(interval[1], low):
        return True
    return False if mpf_ge(interval[0], high) else None


def _enclosure(value: int | Fraction, precision: int) -> Interval:
    """An interval of the given precision around a rational number."""
    from mpmath.libmp import from_int, mpi_div

    top, bottom = from_int(value.numerator), from_int(value.denominator)
    enclosed: Interval = mpi_div((top, top), (bottom, bottom), precision)
    return enclosed
