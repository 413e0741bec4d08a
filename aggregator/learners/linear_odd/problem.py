"""The regularised risk of a linear-odd loss, as its minimisers see it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

_EPSILON = float(np.finfo(np.float64).eps)
_LAST_PLACES = 16  # rounding of sums of products in blocks, in units of the last place of the sum of absolute values
_BLOCK_ENTRIES = 1 << 18  # weighted rows are formed in blocks of about 2 MB, which stay in cache


@dataclass(frozen=True, eq=False)
class Problem:
    """Risks sum_i s_i even(<w, x_i>) - <b_k, w> + lam |w|², k = 1..m, that share their rows.

    `rows` (n, d), `shares` s (n,) > 0 of sum 1, `pulls` b (m, d), which are a/2 times the mean operators, and
    `regularisation` lam >= 0.
    """

    rows: np.ndarray
    shares: np.ndarray
    pulls: np.ndarray
    regularisation: float

    @cached_property
    def row_norms(self) -> np.ndarray:
        """|x_i|, shape (n,)."""
        return np.sqrt(np.einsum("nd,nd->n", self.rows, self.rows))

    def take(self, which: slice) -> Problem:
        """The same problem for some of the pulls."""
        return Problem(self.rows, self.shares, self.pulls[which], self.regularisation)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """<w, x_i> for weights (..., d), shape (..., n)."""
        return weights @ self.rows.T

    def pulled(self, slopes: np.ndarray) -> np.ndarray:
        """sum_i s_i slope_i x_i for slopes (..., n), shape (..., d)."""
        return (slopes * self.shares) @ self.rows

    def hessian(self, curvature: np.ndarray) -> np.ndarray:
        """sum_i s_i c_i x_i x_i' + 2 lam I for curvatures c (n,) of at least 0, shape (d, d)."""
        roots = np.sqrt(self.shares * curvature)[:, None]
        step = max(64, _BLOCK_ENTRIES // self.rows.shape[1])
        total = 2 * self.regularisation * np.eye(self.rows.shape[1])
        for first in range(0, len(self.rows), step):
            scaled = self.rows[first : first + step] * roots[first : first + step]
            total += scaled.T @ scaled
        return total

    def gradient_rounding(
        self, weights: np.ndarray, slopes: np.ndarray, pulls: np.ndarray, curvature: float
    ) -> np.ndarray:
        """What rounding may add to the norms of computed gradients, shape (m,).

        For weights (m, d), slopes (m, n) of the even part at their scores, the pulls (m, d) of these weights, and the
        largest curvature of the even part.
        """
        norms = lengths(weights)
        moment = np.abs(slopes) @ (self.shares * self.row_norms)
        steepness = curvature * float(self.shares @ self.row_norms**2) + 2 * self.regularisation
        return rounding(moment + lengths(pulls) + steepness * norms)


def lengths(vectors: np.ndarray) -> np.ndarray:
    """Euclidean norms (m,) of vectors (m, d)."""
    return np.sqrt(np.vecdot(vectors, vectors))


def rounding(magnitude: np.ndarray | float) -> np.ndarray:
    """Bound on the rounding error of a sum whose terms add up to `magnitude` in absolute value."""
    return np.asarray(_LAST_PLACES * _EPSILON * magnitude)
