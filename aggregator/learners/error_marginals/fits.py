"""Weights and labels of public rows that reproduce noisy marginals (Lacombe, Jetley and Sebag 2021, Problems 1, 2).

`importance_weights`, `box_labels` and `entropy_labels` solve the problems. Each result is the unique minimiser of a
strictly convex objective, so it depends on no starting point and no learning rate.

The problem is penalised least squares with few equations and many bounded unknowns (`BoundedFit`). A penalty h(y) >= 0
of y in [low, high] is strictly convex and 0 at its `centre`. Its conjugate is phi(t) = max_y t y - h(y). The methods of
a penalty (`Quadratic`, `Entropy`) take arrays (n,):

- `gradient` h' and `curvature` h'' > 0 of y inside the interval. The distances from both ends give y, which is
  low + below = high - above. These distances keep their accuracy close to an end.
- `unknowns` phi'(t), the y that maximises t y - h(y).
- `slopes` phi''(t) >= 0, that of one side where phi' has a kink.

Two solvers serve the problem. `ascend` takes semismooth Newton steps on the dual. `multipliers` is a primal-dual
interior point method that works for any strength of the penalty.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from federation.contract.errors import FederationError, InputError
from federation.contract.validation import apart
from federation.numerics.rows import Floats, numbers

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array


_ACCURACY = 1e-12  # certified, of the target or of what the system makes of unknowns of 1, whichever is larger
_STEPS = 15  # of Newton's method, before the interior point method is asked; five are usual
_MORE_STEPS = 60  # after it; two are usual


def importance_weights(indicators: Any, marginals: Floats, strength: float) -> Floats:
    """Weights w (n,) >= 0 of n rows whose marginals match p: argmin |R w - p|^2 / 2 + alpha |w - 1/n|^2 over w >= 0.

    The noisy p may be negative and need not add up; clipping it first would bias the weights. They add up to about as
    much as the p of a feature does: normalise them where they must add up to 1 (Equation 2).

    Args:
        indicators: R (K, n), sparse or dense: 1 where a row lies in a bin (`federation.numerics.binning`).
        marginals: p (K,), shares of rows.
        strength: alpha > 0.

    Exact to rounding, as the residual certifies. Raises `InputError` for other shapes, numbers that are
    not finite and a strength of 0 or less; `FederationError` for a problem that rounding keeps from its certificate.

    Examples:
        >>> in_bin = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])  # two bins of one feature, four rows
        >>> importance_weights(in_bin, np.array([0.8, 0.2]), strength=1e-6).round(3)
        array([0.4, 0.4, 0.1, 0.1])
    """
    matrix = _system(indicators)
    marginals = _vector(marginals, "marginals", matrix.shape[0])
    rows = matrix.shape[1]
    # In units of 1/n: u = n w has |R diag(1/n) u - p|^2 / 2 + (2 alpha / n) sum_i (1/n) (u_i - 1)^2 / 2.
    strength, share = _strength(strength, rows / 2), np.full(rows, 1 / rows)
    return np.asarray(_solve(BoundedFit(matrix, marginals, strength, share, Quadratic(centre=1.0))) / rows)


def box_labels(system: Any, target: Floats, strength: float, weights: Floats) -> Floats:
    """Soft labels y in [0, 1]^n: argmin |M diag(w) y - b|^2 / 2 + (rho / 2) sum_i w_i (y_i - 1/2)^2.

    With M = R diag(s) for s = 1 where a hypothesis says 1 and -1 where it says 0, and b the mass of rows that it puts
    in class 1 minus its errors, per bin (Equations 3 to 6). A row of weight 0 gets the label that it would have if it
    had a little.

    Args:
        system: M (K, n), sparse or dense; blocks of several hypotheses below one another, which may repeat.
        target: b (K,).
        strength: rho > 0.
        weights: w (n,) >= 0, not all 0.

    Exact to rounding, as the residual certifies. Raises `InputError` for other shapes, numbers that are
    not finite, and a strength or weights outside these ranges; `FederationError` for a problem that rounding keeps from
    its certificate.

    Examples:
        >>> in_bin, weights = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]), np.full(4, 0.25)
        >>> box_labels(in_bin, np.array([0.4, 0.0]), 1e-6, weights).round(3)  # four fifths of class 1 in the first bin
        array([0.8, 0.8, 0. , 0. ])
    """
    return _labels(system, target, strength, weights, Quadratic(centre=0.5, high=1.0))


def entropy_labels(system: Any, target: Floats, strength: float, weights: Floats) -> Floats:
    """Soft labels y in (0, 1)^n of most entropy: argmin |M diag(w) y - b|^2 / 2 + rho sum_i w_i KL(y_i || 1/2).

    y = 1 / (1 + exp(-M'm)) is an additive logistic model of the bins. Noise moves such labels less than those of
    `box_labels`, of which many lie at 0 or 1. Arguments and errors as there.

    Examples:
        >>> in_bin, weights = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]), np.full(4, 0.25)
        >>> entropy_labels(in_bin, np.array([0.4, 0.0]), 1e-6, weights).round(3)
        array([0.8, 0.8, 0. , 0. ])
    """
    return _labels(system, target, strength, weights, Entropy())


def _labels(system: Any, target: Floats, strength: float, weights: Floats, penalty: Penalty) -> Floats:
    matrix = _system(system)
    target = _vector(target, "target", matrix.shape[0])
    weights = _vector(weights, "weights", matrix.shape[1])
    if weights.min() < 0 or not weights.any():
        raise InputError(f"weights must be at least 0 and not all 0, got {weights.min():.3g} to {weights.max():.3g}")
    total = weights.sum()  # weights, target and strength in multiples of it have the same minimiser
    strength = _strength(strength, total)
    return _solve(BoundedFit(matrix, target / total, strength, weights / total, penalty))


def _solve(fit: BoundedFit) -> Floats:
    """The minimising unknowns (n,), by Newton steps on the dual.

    Where those do not settle, as for a tiny strength and a target that no unknowns meet, they start again from the
    result of an interior point method.
    """
    with np.errstate(all="ignore"):  # what overflows is not certified
        accuracy = _ACCURACY * fit.scale
        found = ascend(fit, np.zeros(len(fit.target)), _STEPS)
        if not found.residual <= accuracy:
            start = multipliers(fit.of_positive_weight())
            found = ascend(fit, start, _MORE_STEPS)
    if not found.residual <= accuracy < np.inf:
        left, needed = apart(found.residual, accuracy)
        raise FederationError(
            f"a fit of {len(fit.target)} marginals by {len(fit.weights)} rows could not be solved at this strength: "
            f"rounding leaves a residual of {left} where {needed} is needed; raise strength"
        )
    return fit.penalty.unknowns(found.arguments)


def _system(system: Any) -> csc_array:
    from scipy.sparse import csc_array, issparse

    try:
        matrix = csc_array(system if issparse(system) else np.asarray(system, dtype=np.float64), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the system of marginals must be a matrix of numbers: {error}") from error
    if 0 in matrix.shape or not np.isfinite(matrix.data).all():
        raise InputError(
            f"the system of marginals must have at least one bin and one row and finite entries, got {matrix.shape}"
        )
    return matrix


def _vector(values: Floats, name: str, length: int) -> Floats:
    values = numbers(values, name)
    if values.shape != (length,):
        raise InputError(f"{name} must have shape {(length,)} to fit the system of marginals, got {values.shape}")
    if not np.isfinite(values).all():
        raise InputError(f"{name} must be finite, got NaN or infinity")
    return values


def _strength(strength: float, unit: float) -> float:
    """The strength in multiples of `unit`."""
    if not (isinstance(strength, float | int | np.number) and 0 < strength / unit < np.inf):
        raise InputError(f"strength must be a finite number above 0, got {strength!r}")
    return float(strength / unit)


_COMPLEMENTARY = 1e-12  # of the strength: products of distances and multipliers of bounds at which it stops
_MOST_ITERATIONS = 100  # twenty are usual
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
    for _ in range(_MOST_ITERATIONS):
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


_DENSE = 8  # equations per entry of a column up to which a dense product is faster (measured)
_ENTRIES = 1 << 22  # of a dense block


@dataclass(frozen=True)
class Quadratic:
    """The penalty (y - centre)^2 / 2 of y in [low, high], where low < centre < high.

    Examples:
        >>> box = Quadratic(centre=0.5, high=1.0)
        >>> box.unknowns(np.array([-3.0, 0.2, 3.0]))  # centre + t, cut to the interval
        array([0. , 0.7, 1. ])
    """

    centre: float
    low: float = 0.0
    high: float = math.inf

    def gradient(self, below: Floats, above: Floats) -> Floats:
        """y - centre."""
        return below + (self.low - self.centre)

    def curvature(self, below: Floats, above: Floats) -> Floats:
        """1."""
        return np.ones(below.shape)

    def unknowns(self, arguments: Floats) -> Floats:
        """centre + t, or the end of the interval that it lies beyond."""
        return np.clip(self.centre + arguments, self.low, self.high)

    def slopes(self, arguments: Floats) -> Floats:
        """1 inside the interval, 0 at its ends and beyond."""
        moved = self.centre + arguments
        return ((moved > self.low) & (moved < self.high)).astype(np.float64)


@dataclass(frozen=True)
class Entropy:
    """The penalty KL(y || 1/2) = y log 2y + (1 - y) log 2(1 - y) of y in [0, 1]: log 2 minus the entropy of a coin.

    Examples:
        >>> Entropy().unknowns(np.array([-3.0, 0.0, 3.0]))  # 1 / (1 + exp(-t))
        array([0.04742587, 0.5       , 0.95257413])
    """

    centre: float = 0.5
    low: float = 0.0
    high: float = 1.0

    def gradient(self, below: Floats, above: Floats) -> Floats:
        """log(y / (1 - y))."""
        return np.log(below) - np.log(above)

    def curvature(self, below: Floats, above: Floats) -> Floats:
        """1 / y + 1 / (1 - y)."""
        return 1 / below + 1 / above

    def unknowns(self, arguments: Floats) -> Floats:
        """1 / (1 + exp(-t))."""
        from scipy.special import expit

        return np.asarray(expit(arguments))

    def slopes(self, arguments: Floats) -> Floats:
        """y (1 - y)."""
        from scipy.special import expit

        return np.asarray(expit(arguments) * expit(-arguments))


Penalty = Quadratic | Entropy


@dataclass(frozen=True, eq=False)
class BoundedFit:
    """min over y in [low, high]^n of |A W y - b|^2 / 2 + rho sum_i w_i h(y_i), with W = diag(w), w >= 0.

    The minimum is at y = phi'(A'm), for the conjugate phi of h and the multipliers m (K,) that minimise the dual
    rho |m|^2 / 2 - b'm + sum_i w_i phi((A'm)_i), whose gradient is `residual`. Multipliers with the residual g solve
    the problem of the target b + g exactly, so a small residual certifies them; sum_i w_i (y_i - y*_i)^2 is then at
    most |g|^2 / (4 rho c), where c <= h'' (1 of the quadratic penalty, 4 of the entropy). Unknowns of weight 0 are
    the limits for a small one.

    `system` A (K, n), `target` b (K,), `strength` rho > 0, `weights` w (n,), all finite.
    """

    system: csc_array
    target: Floats
    strength: float
    weights: Floats
    penalty: Penalty

    @cached_property
    def rows(self) -> csr_array:
        """A by rows, for products with unknowns."""
        return self.system.tocsr()

    @cached_property
    def columns(self) -> csr_array:
        """A' by rows, for products with multipliers."""
        return self.system.T.tocsr()

    @cached_property
    def longest(self) -> int:
        """The most entries of a column of A."""
        return int(np.diff(self.system.indptr).max(initial=1))

    @cached_property
    def scale(self) -> float:
        """The norm of b, or of |A| W 1 if that is larger: what the norms of residuals are compared with."""
        return float(max(np.linalg.norm(self.target), np.linalg.norm(abs(self.rows) @ self.weights)))

    def gram(self, curvatures: Floats) -> Floats:
        """A W diag(a) A' (K, K) for a (n,) >= 0, by a sparse product or block by block."""
        scales = np.sqrt(self.weights * curvatures)
        used = np.flatnonzero(scales)
        part = self.system[:, used] * scales[used]
        count = self.system.shape[0]
        if count > _DENSE * self.longest:
            return np.asarray((part @ part.T).toarray())
        total = np.zeros((count, count))
        step = max(1, _ENTRIES // count)
        for start in range(0, len(used), step):
            block = part[:, start : start + step].toarray()
            total += block @ block.T
        return total

    def of_positive_weight(self) -> BoundedFit:
        """The fit without unknowns of weight 0: it has the same multipliers."""
        used = np.flatnonzero(self.weights)
        if len(used) == len(self.weights):
            return self
        return replace(self, system=self.system[:, used], weights=self.weights[used])

    def residual(self, multipliers: Floats, unknowns: Floats) -> Floats:
        """rho m + A W y - b (K,); 0 at the minimum."""
        return np.asarray(self.strength * multipliers - self.target + self.rows @ (self.weights * unknowns))


def definite_solver(matrix: Floats, ridge: float) -> Callable[[Floats], Floats]:
    """v -> (M + ridge I)^-1 v for a semidefinite M (K, K); the ridge is raised by as little as rounding makes needed.

    Returns NaN for an M that is not finite.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    diagonal = matrix.diagonal() + ridge
    raised = 0.0
    while np.isfinite(raised) and np.isfinite(matrix).all():
        np.fill_diagonal(matrix, diagonal + raised)
        try:
            factor = cho_factor(matrix, lower=True, check_finite=False)
        except LinAlgError:
            raised = max(10 * raised, np.finfo(np.float64).eps * diagonal.max(), np.finfo(np.float64).tiny)
        else:
            return lambda vector: cho_solve(factor, vector, check_finite=False)
    return lambda vector: np.full(vector.shape, np.nan)
