"""Penalised least squares with few equations and many bounded unknowns: the problem, and what its solvers share.

A penalty h(y) >= 0 of y in [low, high] is strictly convex and 0 at its `centre`; phi is its conjugate max_y t y - h(y).
Its methods take arrays (n,): `gradient` h' and `curvature` h'' > 0 of y inside the interval, given by the distances
from both ends, y = low + below = high - above, which keep their accuracy close to one; `unknowns` phi'(t), the y that
maximises t y - h(y); and `slopes` phi''(t) >= 0, that of one side where phi' has a kink.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from federation.numerics.rows import Floats

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array

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
