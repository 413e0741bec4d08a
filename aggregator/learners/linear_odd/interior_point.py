"""Minimisers of regularised linear-odd risks with a piecewise linear even part, through the box of their dual.

`Problem` is the regularised risk as its minimisers see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from federation.numerics.label_losses import weighted_gram
from federation.numerics.rows import Floats

_STEPS = 150
_IDLE_STEPS = 8  # without a better certificate
_TO_BOUNDARY = 0.995
_NEARLY = 1e-6  # relative gap from which on it is plain which rows lie on a kink


class _Point(NamedTuple):
    """A primal and dual point, or a step; arrays over rows and kinks have shape (n, K) and are positive in a point.

    Slopes u_ik in [-c_k, c_k] are held as their distances to both ends, which keeps the small ones accurate.
    """

    weights: Floats  # (d,)
    above: Floats  # p: how far scores exceed a kink
    below: Floats  # q: how far they fall short; p - q = <w, x_i> - t_k
    up: Floats  # c - u
    down: Floats  # c + u

    @property
    def slopes(self) -> Floats:
        """u, shape (n, K)."""
        return (self.down - self.up) / 2

    def moved(self, step: _Point, length: float) -> _Point:
        return _Point(*(field + length * change for field, change in zip(self, step, strict=True)))

    def room(self, step: _Point) -> float:
        """The largest length of the step after which nothing is negative."""
        shrinking = [-float((change / field).min()) for field, change in zip(self[1:], step[1:], strict=True)]
        return 1 / max(*shrinking, 1e-300)


def minimise_kinked(
    problem: Problem, kinks: tuple[tuple[float, float], ...], tolerance: float
) -> tuple[Floats, Floats]:
    """Weights (m, d) and bounds (m,) on their distance to the minimisers for even part sum_k c_k |x - t_k|.

    By Fenchel's duality the minimiser is w* = (b - sum_ik s_i u_ik x_i) / (2 lam) for some u_ik in [-c_k, c_k], and for
    any such u and any w the duality gap bounds lam |w - w*|², since the risk is strongly convex. Mehrotra's predictor
    and corrector steps (Mehrotra 1992) from a feasible point reduce the gap until the distance is at most
    tolerance max(1, |w|), or rounding prevents it: the caller checks the bounds. Without kinks the minimiser is
    b / (2 lam).
    """
    if not kinks:
        weights = problem.pulls / (2 * problem.regularisation)
        return weights, rounding(lengths(weights))
    found = [_minimise_one(problem, pull, np.array(kinks), tolerance) for pull in problem.pulls]
    return np.array([weights for weights, _ in found]), np.array([distance for _, distance in found])


def _minimise_one(problem: Problem, pull: Floats, kinks: Floats, tolerance: float) -> tuple[Floats, float]:
    places, heights = kinks.T
    weights = pull / (2 * problem.regularisation)
    past = problem.scores(weights)[:, None] - places
    start = max(float(np.abs(past).mean()), 1e-3)
    ends = np.broadcast_to(heights, past.shape)
    point = _Point(weights, np.maximum(past, 0) + start, np.maximum(-past, 0) + start, ends, ends)
    best, distance, idle = weights, np.inf, 0
    for _ in range(_STEPS):
        candidate, bound = _certificate(problem, pull, kinks, point)
        idle = 0 if bound < distance else idle + 1
        if bound < distance:
            best, distance = candidate, bound
        if distance <= tolerance * max(1.0, float(np.linalg.norm(best))) or idle == _IDLE_STEPS:
            break
        try:
            with np.errstate(all="ignore"):  # what overflows ends the steps
                point = _step(problem, pull, places, point)
        except LinAlgError:
            break
    return best, distance


def _certificate(problem: Problem, pull: Floats, kinks: Floats, point: _Point) -> tuple[Floats, float]:
    """Weights near the minimiser, and how far they may be from it: the best of three candidates.

    They are the weights of the point; these moved onto the kinks on which rows seem to lie; and zero, the exact
    minimiser where every row lies on a kink. The gap between the risk at any v and the dual at u, to which the weights
    w = (b - sum_ik s_i u_ik x_i) / (2 lam) belong, is sum_ik s_i (c_k |z_ik| - u_ik z_ik) + lam |v - w|² with the z_ik
    of v. Their rounding would matter most where they vanish.
    """
    places = kinks[:, 0]
    lam, slopes = problem.regularisation, point.slopes
    moment = float(np.linalg.norm(pull) + problem.shares @ (problem.row_norms * np.abs(slopes).sum(axis=1)))
    error = float(rounding(moment / (2 * lam)))
    own = (pull - problem.pulled(slopes.sum(axis=1))) / (2 * lam)
    nowhere = np.zeros(slopes.shape, dtype=bool)
    candidates = [_Candidate(point.weights, 0.0, nowhere), _Candidate(np.zeros_like(own), 0.0, (places == 0) | nowhere)]
    if (moved := _on_kinks(problem, kinks, point)) is not None:
        candidates.append(moved)
    best, smallest = own, np.inf
    for weights, drift, on_kink in candidates:
        past = problem.scores(weights)[:, None] - places
        blur = rounding(problem.row_norms * float(np.linalg.norm(weights)))[:, None] + rounding(np.abs(places))
        blur += problem.row_norms[:, None] * drift
        slack = np.where(past > blur, point.up, np.where(past < -blur, point.down, np.maximum(point.up, point.down)))
        slack[on_kink] = 0.0
        gap = float(problem.shares @ (slack * (np.abs(past) + blur)).sum(axis=1))
        distance = drift + float(np.sqrt(gap / lam + (np.linalg.norm(weights - own) + drift + error) ** 2))
        if distance < smallest:
            best, smallest = weights, distance
    return best, smallest


class _Candidate(NamedTuple):
    """Weights that stand for exact ones at a distance of `drift` at most, for which rows lie exactly `on_kink`."""

    weights: Floats  # (d,)
    drift: float
    on_kink: Floats  # (n, K)


def _on_kinks(problem: Problem, kinks: Floats, point: _Point) -> _Candidate | None:
    """The nearest weights at which rows whose slope is inside of the box rather than at an end lie on their kink.

    The drift to weights at which they do exactly is what they miss by, over the least singular value of the rows; where
    the rows depend on one another, no such weights are claimed. None while it is not plain which rows these are.
    """
    places, heights = kinks.T
    past = np.abs(problem.scores(point.weights)[:, None] - places)
    inside = np.minimum(point.up, point.down) * past.mean() > past * heights
    row, kink = np.nonzero(inside)
    if _complementarity(problem, point) > _NEARLY * float(problem.shares @ past @ heights) or not len(row):
        return None
    distinct = np.unique(np.column_stack([problem.rows[row], places[kink]]), axis=0)
    rows, goals = distinct[:, :-1], distinct[:, -1]
    turn, _, rank, values = np.linalg.lstsq(rows, goals - rows @ point.weights, rcond=None)
    weights = point.weights + turn
    if rank < len(rows):
        return _Candidate(weights, 0.0, np.zeros_like(inside))
    misses = np.abs(rows @ weights - goals) + rounding(np.linalg.norm(rows, axis=1) * np.linalg.norm(weights))
    misses += rounding(np.abs(goals))
    return _Candidate(weights, float(np.linalg.norm(misses) / values.min()), inside)


def _step(problem: Problem, pull: Floats, places: Floats, point: _Point) -> _Point:
    """The point after a predictor and a corrector, 99.5% of the way to the boundary at most."""
    weights, above, below, up, down = point
    infeasible = problem.scores(weights)[:, None] - places - above + below
    gradient = 2 * problem.regularisation * weights - pull + problem.pulled(point.slopes.sum(axis=1))
    resistance = above / up + below / down
    hessian = problem.hessian((1 / resistance).sum(axis=1))
    if not np.isfinite(hessian).all():
        raise LinAlgError("a row has come too close to its kink")
    factor = cho_factor(hessian)

    def solve(first: Floats, second: Floats) -> _Point:
        """The Newton step for up dp - p du = first and down dq + q du = second."""
        residual = (infeasible - first / up + second / down) / resistance
        turn = -cho_solve(factor, gradient + problem.pulled(residual.sum(axis=1)), check_finite=False)
        lift = problem.scores(turn)[:, None] / resistance + residual
        return _Point(turn, (first + above * lift) / up, (second - below * lift) / down, -lift, lift)

    predictor = solve(-above * up, -below * down)
    now = _complementarity(problem, point)
    after = _complementarity(problem, point.moved(predictor, min(1.0, point.room(predictor))))
    target = now * (after / now) ** 3
    corrector = solve(
        target - above * up - predictor.above * predictor.up, target - below * down - predictor.below * predictor.down
    )
    if not np.isfinite(corrector.weights).all():
        raise LinAlgError("slopes have come too close to their ends")
    return point.moved(corrector, min(1.0, _TO_BOUNDARY * point.room(corrector)))


def _complementarity(problem: Problem, point: _Point) -> float:
    """Mean of the products that vanish at the minimiser."""
    products = point.above * point.up + point.below * point.down
    return float(problem.shares @ products.mean(axis=1)) / 2


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
