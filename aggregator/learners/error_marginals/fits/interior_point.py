"""A primal-dual interior point method for penalised least squares with bounds, whatever its strength."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from aggregator.learners.error_marginals.fits.bounded_fits import BoundedFit, definite_solver
from federation.numerics.rows import Floats

_COMPLEMENTARY = 1e-12  # of the strength: products of distances and multipliers of bounds at which it stops
_STEPS = 100  # twenty are usual
_PATIENCE = 5  # steps without a new least product, which rounding then prevents
_SHORT = 0.995  # of the step to the nearest bound


class _Point(NamedTuple):
    """Residuals (K,) of the least squares; per unknown its distances from both bounds and their multipliers (n,).

    Without an upper bound the distance is 1 and the multiplier 0, for good.
    """

    residuals: Floats
    below: Floats
    above: Floats
    lower: Floats
    upper: Floats

    def moved(self, step: _Point, length: float) -> _Point:
        return _Point(*(value + length * change for value, change in zip(self, step, strict=True)))

    def longest(self, step: _Point) -> float:
        """The longest step, at most 1, that keeps distances and multipliers at 0 or more."""
        pairs = zip(self[1:], step[1:], strict=True)
        return min(float((value[change < 0] / -change[change < 0]).min(initial=1.0)) for value, change in pairs)

    def is_finite(self) -> bool:
        return all(bool(np.isfinite(part).all()) for part in self)


def multipliers(fit: BoundedFit) -> Floats:
    """Multipliers (K,) close to those of the minimum, by Mehrotra's (1992) predictor and corrector steps.

    The number of steps hardly depends on the strength, unlike that of Newton's method on the dual; each needs the
    solution of K equations. Ends early where rounding stops it: the caller certifies what it makes of the result.
    """
    bounds = 1.0 + np.isfinite(fit.penalty.high)
    shares = fit.weights / (bounds * fit.weights.sum())

    def complementarity(point: _Point) -> float:
        return float(shares @ (point.below * point.lower + point.above * point.upper))

    point = _start(fit)
    best, least, age = point, np.inf, 0
    for _ in range(_STEPS):
        product = complementarity(point)
        age += 1
        if product < least:
            best, least, age = point, product, 0
        if age == _PATIENCE or least <= _COMPLEMENTARY * fit.strength:
            break
        step = _linearised(fit, point)
        predicted = step(np.zeros(1), np.zeros(1))
        reached = complementarity(point.moved(predicted, point.longest(predicted)))
        aim = (reached / product) ** 3 * product
        corrected = step(aim - predicted.below * predicted.lower, aim - predicted.above * predicted.upper)
        moved = point.moved(corrected, min(1.0, _SHORT * point.longest(corrected)))
        if not moved.is_finite():
            break
        point = moved
    return best.residuals / fit.strength


def _start(fit: BoundedFit) -> _Point:
    """The unpenalised unknowns, and multipliers of bounds as large as the gradient that they may have to balance."""
    penalty, count = fit.penalty, len(fit.weights)
    unknowns = np.full(count, penalty.centre)
    residuals = fit.target - fit.rows @ (fit.weights * unknowns)
    size = max(float(np.abs(fit.columns @ residuals).max()), fit.strength)
    bounded = np.isfinite(penalty.high)
    return _Point(
        residuals,
        unknowns - penalty.low,
        penalty.high - unknowns if bounded else np.ones(count),
        np.full(count, size),
        np.full(count, size if bounded else 0.0),
    )


def _linearised(fit: BoundedFit, point: _Point) -> Callable[[Floats, Floats], _Point]:
    """The step from the point towards products `lower` and `upper` of distances and multipliers, (n,) or (1,).

    From the linearised conditions of optimality with everything but the residuals eliminated.
    """
    bounded = float(np.isfinite(fit.penalty.high))
    curvature = fit.strength * fit.penalty.curvature(point.below, point.above)
    inverse = 1 / (curvature + point.lower / point.below + point.upper / point.above)
    primal = point.residuals - fit.target + fit.rows @ (fit.weights * (fit.penalty.low + point.below))
    slack = fit.columns @ point.residuals - fit.strength * fit.penalty.gradient(point.below, point.above)
    solve = definite_solver(fit.gram(inverse), 1.0)

    def step(lower: Floats, upper: Floats) -> _Point:
        upper = bounded * upper
        pull = slack + lower / point.below - upper / point.above
        residuals = solve(-primal - fit.rows @ (fit.weights * inverse * pull))
        unknowns = inverse * (fit.columns @ residuals + pull)
        return _Point(
            residuals,
            unknowns,
            -bounded * unknowns,
            (lower - point.lower * unknowns) / point.below - point.lower,
            (upper + point.upper * unknowns) / point.above - point.upper,
        )

    return step
