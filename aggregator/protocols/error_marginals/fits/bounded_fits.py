"""Penalised least squares with few equations and many bounded unknowns: the problem, and what its solvers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from aggregator.protocols.error_marginals.fits.penalties import Penalty

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array

_DENSE = 8  # equations per entry of a column up to which a dense product is faster (measured)
_ENTRIES = 1 << 22  # of a dense block


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
    target: np.ndarray
    strength: float
    weights: np.ndarray
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

    def gram(self, curvatures: np.ndarray) -> np.ndarray:
        """A W diag(a) A' (K, K) for a (n,) >= 0, by a sparse product or block by block."""
        scales = np.sqrt(self.weights * curvatures)
        used = np.flatnonzero(scales)
        part = self.system[:, used] * scales[used]
        count = self.system.shape[0]
        if count > _DENSE * self.longest:
            return (part @ part.T).toarray()
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

    def residual(self, multipliers: np.ndarray, unknowns: np.ndarray) -> np.ndarray:
        """rho m + A W y - b (K,); 0 at the minimum."""
        return self.strength * multipliers - self.target + self.rows @ (self.weights * unknowns)


def definite_solver(matrix: np.ndarray, ridge: float) -> Callable[[np.ndarray], np.ndarray]:
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
