"""Noisy values as integers modulo 2^64, and why their sum does not wrap around.

Honest parties add whole numbers of grid steps: their rounded values, of at most `largest` steps each, and a share of
the noise. With |total| <= 2^62 the integers modulo 2^64, read as from -2^63 to 2^63 - 1, are the total itself. So it
must hold that K `largest` plus a bound on the noise of K shares, m of which are the whole noise, is at most 2^62. The
bound holds for all numbers together but with a probability of 2^-100 (Chernoff), L = ln(4 d 2^100):

- Discrete Gaussian of scale s: each share is sub-Gaussian of variance s²/m (Canonne, Kamath, Steinke 2020): s sqrt(2 L
  K/m), and a little more as the shares' scale is rounded up.
- Discrete Laplace of scale s in Pólya shares: at theta = 1/(2s) either part of a share has E e^{theta X} <= 2^{1/m}:
  2s (L + (K/m) ln 2).
- L2-Gamma of scale s in D dimensions: a share is Gaussian of a variance that is Gamma((D+1)/2m, 2s²), plus 16 steps²,
  rounded; at theta = 1/(2s) the first has E e^{theta X} = (4/3)^{(D+1)/2m}: 2s (L + (D+1)/2 (K/m) ln(4/3)) + sqrt(32 K
  L) + K/2.

A hostile party may send anything, and so wrap the total; it might as well lie.
"""

from __future__ import annotations

import math

import numpy as np

from federation.contract.errors import InputError
from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.numerics.arrays import Floats, Integers
from federation.sums.keys import Words

MOST_STEPS = 2**62  # of a total, noise included
_ROUNDED_UP = 1 + 2**-18  # of the scale of a Gaussian share
_RARE = 100 * math.log(2)


def encoded(steps: Floats | Integers) -> Words:
    """Whole numbers of steps modulo 2^64. Raises `InputError` for what is not whole, or beyond 2^62.

    Examples:
        >>> encoded(np.array([3.0, -1.0]))
        array([                   3, 18446744073709551615], dtype=uint64)
        >>> decoded(encoded(np.array([2**61 + 1, -5])) + encoded(np.array([1, 1])))
        array([2305843009213693954,                  -4])
    """
    whole = np.asarray(steps)
    inside = whole.min(initial=0) >= -MOST_STEPS and whole.max(initial=0) <= MOST_STEPS  # not of NaN
    if not inside or (whole.dtype.kind == "f" and np.any(whole != np.rint(whole))):
        raise InputError("a masked sum adds whole numbers of at most 2^62 grid steps; round the values, or cut them")
    return whole.astype(np.int64, copy=False).view(np.uint64)


def decoded(total: Words) -> Integers:
    """The integers from -2^63 to 2^63 - 1 that these are modulo 2^64."""
    return np.ascontiguousarray(total).view(np.int64)


def noise_bound(whole: AdditiveMechanism, contributors: int, parties: int, numbers: int) -> float:
    """What all parties' shares together, in steps, exceed in one of all numbers with a probability below 2^-100.

    Examples:
        >>> from federation.mechanisms.noise.additive import calibrate
        >>> noise = calibrate("gaussian", sensitivity=1.0, dimension=5, epsilon=1.0, delta=1e-6)
        >>> noise_bound(noise, 80, parties=100, numbers=5) / noise.grid_scale
        13.45
    """
    log, wholes, scale = math.log(4 * numbers) + _RARE, parties / contributors, whole.scale / whole.step
    if whole.name == "discrete_gaussian":
        return scale * _ROUNDED_UP * math.sqrt(2 * log * wholes)
    if whole.name == "discrete_laplace":
        return 2 * scale * (log + wholes * math.log(2))
    mixed = 2 * scale * (log + (whole.dimension + 1) / 2 * wholes * math.log(4 / 3))
    return mixed + math.sqrt(32 * parties * log) + parties / 2


def require_room(largest: float, whole: AdditiveMechanism, contributors: int, parties: int, numbers: int) -> None:
    """Raises `InputError` where the sum of honest values of at most `largest` steps, with noise, may exceed 2^62."""
    if not largest * parties + noise_bound(whole, contributors, parties, numbers) <= MOST_STEPS:
        raise InputError(
            f"a sum over {parties} parties of values of up to {largest:g} grid steps, with its noise, does not fit "
            "into 64 bits; lower epsilon or the rows of a party"
        )
