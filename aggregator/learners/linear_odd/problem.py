"""The regularised risk of a linear-odd loss, as its minimisers see it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from federation.numerics.label_losses import weighted_gram
from federation.numerics.rows import Floats

_EPSILON = float(np.finfo(np.float64).eps)
_LAST_PLACES = 16  # rounding of sums of products in blocks, in units of the last place of the sum of absolute values


@dataclass(frozen=True, eq=False)
class Problem:
    """Risks sum_i s_i even(<w, x_i>) - <b_k, w> + lam |w|², k = 1..m, that share their rows.

    `rows` (n, d), `shares` s (n,) > 0 of sum 1, `pulls` b (m, d), which are a/2 times the mean operators, and
    `regularisation` lam >= 0.
    """

    rows: Floats
    shares: Floats
    pulls: Floats
    regularisation: float

    @cached_property
    def row_norms(self) -> Floats:
        """|x_i|, shape (n,)."""
        return np.asarray(np.sqrt(np.einsum("nd,nd->n", self.rows, self.rows)))

    def scores(self, weights: Floats) -> Floats:
        """<w, x_i> for weights (..., d), shape (..., n)."""
        return weights @ self.rows.T

    def pulled(self, slopes: Floats) -> Floats:
        """sum_i s_i slope_i x_i for slopes (..., n), shape (..., d)."""
        return (slopes * self.shares) @ self.rows

    def gradients(self, weights: Floats, slopes: Floats, pulls: Floats) -> Floats:
        """Of the risks with these pulls (m, d), at weights (m, d) whose scores have even slopes (m, n): (m, d)."""
        return self.pulled(slopes) - pulls + 2 * self.regularisation * weights

    def hessian(self, curvature: Floats) -> Floats:
        """sum_i s_i c_i x_i x_i' + 2 lam I for curvatures c (n,) of at least 0, shape (d, d)."""
        return weighted_gram(self.rows, self.shares * curvature, 2 * self.regularisation)

    def gradient_rounding(self, weights: Floats, slopes: Floats, pulls: Floats, curvature: float) -> Floats:
        """What rounding may add to the norms of computed gradients, shape (m,).

        For weights (m, d), slopes (m, n) of the even part at their scores, the pulls (m, d) of these weights, and the
        largest curvature of the even part.
        """
        norms = lengths(weights)
        moment = np.abs(slopes) @ (self.shares * self.row_norms)
        steepness = curvature * float(self.shares @ self.row_norms**2) + 2 * self.regularisation
        return rounding(moment + lengths(pulls) + steepness * norms)


def lengths(vectors: Floats) -> Floats:
    """Euclidean norms (m,) of vectors (m, d)."""
    return np.asarray(np.sqrt(np.vecdot(vectors, vectors)))


def rounding(magnitude: Floats | float) -> Floats:
    """Bound on the rounding error of a sum whose terms add up to `magnitude` in absolute value."""
    return np.asarray(_LAST_PLACES * _EPSILON * magnitude)
