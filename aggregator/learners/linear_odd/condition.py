"""Whether a loss is linear-odd, found by evaluating it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from federation.contract.errors import InputError

MARGINS = (1.0, 2.0, 0.5, 0.25, 0.75, 1.5, 3.0, 4.0, 8.0, 16.0, 0.1, 0.01)
_ROUNDING = 1e-9


def require_linear_odd(
    loss: Callable[[np.ndarray], np.ndarray], name: str = "the loss", margins: Sequence[float] = MARGINS
) -> float:
    """The slope a > 0 of a `loss` f, an elementwise function, with f(x) - f(-x) = -a x (Patrini et al. 2015).

    The first of the `margins` (all > 0) gives a, the others test it, to 1e-9 of the values. Raises `InputError` that
    names the margin and by how much the condition fails there, and for losses that are not finite or do not fall with
    the margin (a <= 0).
    """
    x = np.asarray(margins, dtype=np.float64)
    if x.ndim != 1 or len(x) < 2 or not (np.isfinite(x) & (x > 0)).all():
        raise InputError(f"margins must be two or more positive numbers, got {margins!r}")
    above, below = (np.asarray(loss(side), dtype=np.float64) for side in (x, -x))
    if above.shape != x.shape or below.shape != x.shape or not (np.isfinite(above) & np.isfinite(below)).all():
        raise InputError(f"{name} must give one finite number per margin up to {x.max():g} in absolute value")
    slope = float(below[0] - above[0]) / float(x[0])
    excess = above - below + slope * x
    wrong = np.flatnonzero(np.abs(excess) > _ROUNDING * (1 + np.abs(above) + np.abs(below)))
    if len(wrong):
        first = wrong[0]
        raise InputError(
            f"{name} is not linear-odd, so the mean operator does not determine its minimiser: f(x) - f(-x) = -a x at "
            f"x = {x[0]:g} gives a = {slope:.4g}, which at x = {x[first]:g} is off by {abs(excess[first]):.4g}; choose "
            "a linear-odd loss such as 'logistic'"
        )
    if not 0 < slope < math.inf or slope <= _ROUNDING:
        raise InputError(
            f"{name} has f(x) - f(-x) = -a x with a = {slope:.4g}, so it does not prefer correct labels; a must be > 0"
        )
    return slope
