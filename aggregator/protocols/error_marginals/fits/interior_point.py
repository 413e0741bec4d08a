"""A primal-dual interior point method for penalised least squares with bounds, whatever its strength."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from aggregator.protocols.error_marginals.fits.bounded_fits import BoundedFit, definite_solver

_COMPLEMENTARY = 1e-12  # of the strength: products of distances and multipliers of bounds at which it stops
_STEPS = 100  # twenty are usual
_PATIENCE = 5  # steps without a new least product, which rounding then prevents
_SHORT = 0.995  # of the step to the nearest bound


class _Point(NamedTuple):
    """Residuals (K,) of the least squares; per unknown its distances from both bounds and their multipliers (n,).

    Without an upper bound the distance is 1 and the multiplier 0, for good.
    """

    residuals: np.ndarray
    below: np.ndarray
    above: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def moved(self, step: _Point, length: float) -> _Point:
        return _Point(*(value + length * change for value, change in zip(self, step, strict=True)))

    def longest(self, step: _Point) -> float:
        """The longest step, at most 1, that keeps distances and multipliers at 0 or more."""
        longest = 1.0
        for value, change in zip(self[1:], step[1:], strict=True):
            falling = change < 0
            longest = min(longest, float((value[falling] / -change[falling]).min(initial=1.0)))
        return longest

    def is_finite(self) -> bool:
        return all(bool(np.isfinite(part).all()) for part in self)


def multipliers(fit: BoundedFit) -> np.ndarray:
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
        system = _System(fit, point)
        predicted = system.step(np.zeros(1), np.zeros(1))
        reached = complementarity(point.moved(predicted, point.longest(predicted)))
        aim = (reached / product) ** 3 * product
        corrected = system.step(aim - predicted.below * predicted.lower, aim - predicted.above * predicted.upper)
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


class _System:
    """The linearised conditions of optimality at one point, with everything but the residuals eliminated."""

    def __init__(self, fit: BoundedFit, point: _Point) -> None:
        self._fit, self._point = fit, point
        self._bounded = float(np.isfinite(fit.penalty.high))
        curvature = fit.strength * fit.penalty.curvature(point.below, point.above)
        self._inverse = 1 / (curvature + point.lower / point.below + point.upper / point.above)
        unknowns = fit.penalty.low + point.below
        self._primal = point.residuals - fit.target + fit.rows @ (fit.weights * unknowns)
        self._pull = fit.columns @ point.residuals - fit.strength * fit.penalty.gradient(point.below, point.above)
        self._solve = definite_solver(fit.gram(self._inverse), 1.0)

    def step(self, lower: np.ndarray, upper: np.ndarray) -> _Point:
        """The step towards products `lower` and `upper` of distances and multipliers, (n,) or (1,)."""
        fit, point, upper = self._fit, self._point, self._bounded * upper
        pull = self._pull + lower / point.below - upper / point.above
        residuals = self._solve(-self._primal - fit.rows @ (fit.weights * self._inverse * pull))
        unknowns = self._inverse * (fit.columns @ residuals + pull)
        return _Point(
            residuals,
            unknowns,
            -self._bounded * unknowns,
            (lower - point.lower * unknowns) / point.below - point.lower,
            (upper + point.upper * unknowns) / point.above - point.upper,
        )
