"""Dirichlet shares from noise bits, computed in logarithms so that the smallest shapes do not vanish.

Gamma(shape) is Gamma(shape + 1) U^(1/shape): at shapes below about 0.01 most draws are smaller than the smallest
double, but their logarithms and ratios are ordinary numbers. Double precision stands in for the reals; the shares are
then rounded to a public grid, which is post-processing and drops the low bits, in which it would show first.
"""

from __future__ import annotations

import numpy as np

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.l2_gamma import gamma_radius
from federation.numerics.arrays import Floats

GRID_BITS = 32
_LEAST = 1e-300  # a largest parameter below it would leave no finite logarithm


def log_gamma(bits: NoiseBits, shape: Floats, draws: int) -> Floats:
    """Logarithms of `draws` independent Gamma(shape) variables for each shape (C,) >= 0; shape (draws, C).

    -inf where a shape is 0. How many bits are used does not depend on the shapes.

    Examples:
        >>> log_gamma(NoiseBits(1, "example"), np.array([5.0, 0.001]), draws=1).round(1)
        array([[    2., -1902.]])
    """
    from scipy.special import gammainccinv

    level, power = (gamma_radius(bits, 1, 1.0, draws * len(shape)).reshape(draws, -1) for _ in range(2))
    with np.errstate(divide="ignore", over="ignore"):
        larger: Floats = np.log(gammainccinv(shape + 1, np.exp(-level)))
        return larger - power / shape


def sample(bits: NoiseBits, shape: Floats, draws: int) -> Floats:
    """`draws` independent shares from Dir(shape) on the grid of 2^-32, shape (draws, C); each row sums to exactly 1.

    `shape` (C,): finite, >= 0, the largest above 1e-300; a class of shape 0 has share 0. After rounding a positive
    shape may have share 0 too; the largest share of a row absorbs what rounding leaves. Raises `InputError` for other
    shapes.

    Examples:
        >>> sample(NoiseBits(1, "example"), np.array([5.0, 3.0, 0.01]), draws=2).round(4)
        array([[0.745 , 0.255 , 0.    ],
               [0.9056, 0.0944, 0.    ]])
    """
    if shape.ndim != 1 or not (np.isfinite(shape).all() and (shape >= 0).all() and shape.max() > _LEAST):
        raise InputError(f"Dirichlet parameters must be finite and >= 0, some above {_LEAST:g}, got {shape.tolist()}")
    log = log_gamma(bits, shape, draws)
    largest = np.argmax(log, axis=1, keepdims=True)
    weight = np.exp(log - np.take_along_axis(log, largest, axis=1))
    steps: Floats = np.rint(weight / weight.sum(axis=1, keepdims=True) * 2.0**GRID_BITS)
    rest = 2.0**GRID_BITS - steps.sum(axis=1, keepdims=True)
    np.put_along_axis(steps, largest, np.take_along_axis(steps, largest, axis=1) + rest, axis=1)
    return steps * 2.0**-GRID_BITS
