"""Minimisers of risks with a smooth even part, for many mean operators of the same rows at once.

A quadratic even part needs one Cholesky factor for all mean operators, any other Newton's method.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from aggregator.learners.linear_odd.losses import SymmetricProper
from aggregator.learners.linear_odd.problem import Problem, lengths, rounding
from federation.contract.errors import InputError
from federation.numerics.rows import Booleans, Floats, Integers

_SINGULAR = 1e-10  # eigenvalues below this share of the largest are zero
_NEWTON_STEPS = 200
_HALVINGS = 40
_SUFFICIENT_DECREASE = 1e-4
_CONJUGATE_STEPS = 200
_LOOSEST, _TIGHTEST = 0.1, 1e-6  # relative residual of a direction
_TILE_ENTRIES = 1 << 22  # scores that are held at once


class _State(NamedTuple):
    """Where the minimisers of m mean operators have got to."""

    weights: Floats  # (m, d)
    scores: Floats  # (m, n)
    gradients: Floats  # (m, d)
    norms: Floats  # (m,) of the gradients
    rounding: Floats  # (m,) what rounding may add to them

    def take(self, which: Integers | Booleans) -> _State:
        return _State(*(field[which] for field in self))

    def put(self, which: Integers | Booleans, other: _State) -> None:
        for field, values in zip(self, other, strict=True):
            field[which] = values


def minimise_quadratic(problem: Problem, curvature: float) -> tuple[Floats, Floats]:
    """Weights (m, d) and bounds (m,) on their distance to the minimisers for the even part curvature/2 x².

    The risk is strongly convex with the least eigenvalue of its Hessian, which is at least 2 lam; without
    regularisation it is computed. Raises `InputError` where that is zero. Bounds are infinite where the Hessian is
    positive only for a regularisation that rounding loses.
    """
    hessian = problem.hessian(np.full(len(problem.rows), curvature))
    convexity = 2 * problem.regularisation
    if convexity == 0:
        values = np.linalg.eigvalsh(hessian)
        if not values[0] > _SINGULAR * values[-1]:
            raise InputError(
                f"regularisation must be > 0 for rows of rank below their {len(hessian)} columns: without it the "
                "minimiser is not unique; give a regularisation such as 1e-4, or drop dependent columns"
            )
        convexity = values[0] - rounding(values[-1])
    try:
        factor = cho_factor(hessian)
    except LinAlgError:
        return np.zeros_like(problem.pulls), np.full(len(problem.pulls), np.inf)
    weights = cho_solve(factor, problem.pulls.T).T
    weights -= cho_solve(factor, problem.gradients(weights, curvature * problem.scores(weights), problem.pulls).T).T
    slopes = curvature * problem.scores(weights)
    errors = lengths(problem.gradients(weights, slopes, problem.pulls))
    errors += problem.gradient_rounding(weights, slopes, problem.pulls, curvature)
    return weights, errors / convexity


def minimise_smooth(problem: Problem, loss: SymmetricProper, tolerance: float) -> tuple[Floats, Floats]:
    """Weights (m, d) and bounds (m,) on their distance to the minimisers: |gradient| / (2 lam), by strong convexity.

    Stops at a distance of tolerance max(1, |w|), or where rounding prevents it: the caller checks the bounds. Damped
    Newton steps by conjugate gradients, preconditioned by a Cholesky factor of the Hessian at the mean curvature: exact
    for one mean operator, and nearly so for many that differ by noise, which then cost two passes over the rows each
    instead of a factor.
    """
    height = max(1, _TILE_ENTRIES // len(problem.rows))
    tiles = [problem.pulls[first : first + height] for first in range(0, len(problem.pulls), height)]
    parts = [_minimise_tile(replace(problem, pulls=tile), loss, tolerance) for tile in tiles]
    weights, distances = zip(*parts, strict=True)
    return np.concatenate(weights), np.concatenate(distances)


def _minimise_tile(problem: Problem, loss: SymmetricProper, tolerance: float) -> tuple[Floats, Floats]:
    convexity = 2 * problem.regularisation
    state = _evaluate(problem, loss, np.zeros_like(problem.pulls), np.arange(len(problem.pulls)))
    first = state.norms.copy()
    stalled = np.zeros(len(first), dtype=bool)
    for _ in range(_NEWTON_STEPS):
        wanted = convexity * tolerance * np.maximum(1.0, lengths(state.weights))
        live = np.flatnonzero(~stalled & (state.norms + state.rounding > wanted) & (state.norms > 0))
        if not len(live):
            break
        current = state.take(live)
        forcing = np.clip(current.norms / first[live], _TIGHTEST, _LOOSEST)
        directions = _directions(problem, loss, current, forcing)
        # Backtracking asks for a smaller gradient norm instead of a smaller risk: directions decrease both, and the
        # norm does not drown in rounding near the minimum, where the bound is decided.
        steps, pending = np.ones(len(live)), np.arange(len(live))
        for _ in range(_HALVINGS):
            candidates = current.weights[pending] + steps[pending, None] * directions[pending]
            tried = _evaluate(problem, loss, candidates, live[pending])
            lower = tried.norms <= (1 - _SUFFICIENT_DECREASE * steps[pending]) * current.norms[pending]
            state.put(live[pending[lower]], tried.take(lower))
            pending = pending[~lower]
            if not len(pending):
                break
            steps[pending] /= 2
        stalled[live[pending]] = True
    return state.weights, (state.norms + state.rounding) / convexity


def _evaluate(problem: Problem, loss: SymmetricProper, weights: Floats, which: Integers | Booleans) -> _State:
    scores = problem.scores(weights)
    slopes = loss.even_slope(scores)
    pulls = problem.pulls[which]
    gradients = problem.gradients(weights, slopes, pulls)
    # Even slopes are a times phi*' less 1/2: small ones keep its error, two last places of 1 or less. A rounding is 16.
    uncertain = np.abs(slopes) + loss.slope / 8
    error = problem.gradient_rounding(weights, uncertain, pulls, loss.curvature_range[1])
    return _State(weights, scores, gradients, lengths(gradients), error)


def _directions(problem: Problem, loss: SymmetricProper, state: _State, forcing: Floats) -> Floats:
    """p with |H p + g| <= forcing |g|, shape (m, d); zero, which ends Newton's method, where rounding prevents it."""
    curvatures = loss.even_curvature(state.scores)
    try:
        factor = cho_factor(problem.hessian(curvatures.mean(axis=0)))
    except LinAlgError:
        return np.zeros_like(state.weights)
    directions, residuals = np.zeros_like(state.weights), -state.gradients
    search = np.zeros_like(directions)
    products = np.ones(len(directions))
    for _ in range(_CONJUGATE_STEPS):
        live = lengths(residuals) > forcing * state.norms
        if not live.any():
            break
        solved = cho_solve(factor, residuals.T).T
        previous, products = products, np.vecdot(residuals, solved)
        search = solved + _ratio(products, previous, live) * search
        images = problem.pulled(curvatures * problem.scores(search)) + 2 * problem.regularisation * search
        step = _ratio(products, np.vecdot(search, images), live)
        directions += step * search
        residuals -= step * images
    return directions


def _ratio(above: Floats, below: Floats, live: Booleans) -> Floats:
    """above / below as a column (m, 1), zero for those no longer worked on."""
    return np.divide(above, below, out=np.zeros_like(above), where=live & (below > 0))[:, None]
