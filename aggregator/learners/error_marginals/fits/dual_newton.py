"""Semismooth Newton steps on the dual of a penalised least squares problem with bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from aggregator.learners.error_marginals.fits.bounded_fits import BoundedFit, definite_solver
from federation.numerics.rows import Floats

_ROUNDING = 4e-16  # of the scale: residuals that no step improves
_SETTLED = 1e-13  # of the scale: from there, steps stop when they no longer halve the residual
_TRIALS = 40  # of a line search; one is usual
_SLOPE = 0.1  # of the first that may be left along a step


class Ascent(NamedTuple):
    """Where the steps ended: t = A'm (n,), and the norm of the dual gradient there."""

    arguments: Floats
    residual: float


def _split(coarse: Floats, fine: Floats, longest: int) -> tuple[Floats, Floats]:
    """m as a sum of a coarse and a fine part, so that A'm is accurate where large multipliers cancel.

    Where no unknowns meet the target, m grows as 1/rho, and A'm at unknowns inside their bounds is a small difference
    of such numbers. The coarse part is a multiple of a power of two at which products with entries of -1, 0 and 1
    are exact, for columns of at most `longest` entries; the fine part is the small rest.
    """
    total = coarse + fine
    grid = np.ldexp(1.0, np.frexp(np.abs(total).max() * longest)[1] - 52)
    rounded = np.rint(total / grid) * grid
    return rounded, fine + (coarse - rounded)


def ascend(fit: BoundedFit, start: Floats, steps: int) -> Ascent:
    """Newton steps on the multipliers from `start` (K,), until the residual is rounding, at most `steps`.

    The dual is strictly convex and its gradient piecewise linear or smooth, so that a step from near the solution ends
    at it (Qi and Sun 1993); line searches for a small slope make the steps from further away shorter or longer.
    """
    coarse, fine = _split(np.zeros(start.shape), start, fit.longest)
    last = np.inf
    for step in range(steps + 1):
        arguments, total = fit.columns @ coarse + fit.columns @ fine, coarse + fine
        gradient = fit.residual(total, fit.penalty.unknowns(arguments))
        residual = float(np.linalg.norm(gradient))
        stuck = residual <= _SETTLED * fit.scale and residual > last / 2
        if step == steps or residual <= _ROUNDING * fit.scale or stuck or not np.isfinite(residual):
            break
        last = residual
        # Minus the inverse of the generalised Hessian rho I + A W diag(phi'') A' times the gradient.
        direction = definite_solver(fit.gram(fit.penalty.slopes(arguments)), fit.strength)(-gradient)
        coarse, fine = _split(coarse, fine + _length(fit, total, arguments, direction) * direction, fit.longest)
    return Ascent(arguments, residual)


def _length(fit: BoundedFit, total: Floats, arguments: Floats, direction: Floats) -> float:
    """A step length at which the dual's slope along `direction` is a tenth of the slope at 0, or closer to 0."""
    moves = fit.columns @ direction
    weighted = fit.weights * moves
    linear = (fit.strength * total - fit.target) @ direction
    quadratic = fit.strength * (direction @ direction)

    def slope(length: float) -> float:
        return float(linear + length * quadratic + weighted @ fit.penalty.unknowns(arguments + length * moves))

    first = slope(0.0)
    if not first < 0:  # by rounding, next to the minimum
        return 1.0
    low, low_slope, high, high_slope, length = 0.0, first, np.inf, np.inf, 1.0
    for _ in range(_TRIALS):
        found = slope(length)
        if not abs(found) > -_SLOPE * first:
            break
        if found < 0:
            low, low_slope = length, found
        else:
            high, high_slope = length, found
        if high == np.inf:
            length *= 2
        else:  # where the chord crosses 0, but not too close to either end
            share = np.clip(low_slope / (low_slope - high_slope), 0.1, 0.9)
            length = low + share * (high - low)
    return length
