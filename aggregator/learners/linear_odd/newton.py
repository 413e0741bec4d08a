"""Minimisers of risks with a smooth even part, for many mean operators of the same rows at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from aggregator.learners.linear_odd.problem import Problem, lengths
from aggregator.learners.linear_odd.symmetric_proper import SymmetricProper

_NEWTON_STEPS = 200
_HALVINGS = 40
_SUFFICIENT_DECREASE = 1e-4
_CONJUGATE_STEPS = 200
_LOOSEST, _TIGHTEST = 0.1, 1e-6  # relative residual of a direction
_TILE_ENTRIES = 1 << 22  # scores that are held at once


class _State(NamedTuple):
    """Where the minimisers of m mean operators have got to."""

    weights: np.ndarray  # (m, d)
    scores: np.ndarray  # (m, n)
    gradients: np.ndarray  # (m, d)
    norms: np.ndarray  # (m,) of the gradients
    rounding: np.ndarray  # (m,) what rounding may add to them

    def take(self, which: np.ndarray) -> _State:
        return _State(*(field[which] for field in self))

    def put(self, which: np.ndarray, other: _State) -> None:
        for field, values in zip(self, other, strict=True):
            field[which] = values


def minimise_smooth(problem: Problem, loss: SymmetricProper, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights (m, d) and bounds (m,) on their distance to the minimisers: |gradient| / (2 lam), by strong convexity.

    Stops at a distance of tolerance max(1, |w|), or where rounding prevents it: the caller checks the bounds. Damped
    Newton steps by conjugate gradients, preconditioned by a Cholesky factor of the Hessian at the mean curvature: exact
    for one mean operator, and nearly so for many that differ by noise, which then cost two passes over the rows each
    instead of a factor.
    """
    height = max(1, _TILE_ENTRIES // len(problem.rows))
    tiles = [slice(first, first + height) for first in range(0, len(problem.pulls), height)]
    parts = [_minimise_tile(problem.take(tile), loss, tolerance) for tile in tiles]
    return np.concatenate([weights for weights, _ in parts]), np.concatenate([distances for _, distances in parts])


def _minimise_tile(problem: Problem, loss: SymmetricProper, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
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


def _evaluate(problem: Problem, loss: SymmetricProper, weights: np.ndarray, which: np.ndarray) -> _State:
    scores = problem.scores(weights)
    slopes = loss.even_slope(scores)
    pulls = problem.pulls[which]
    gradients = problem.pulled(slopes) - pulls + 2 * problem.regularisation * weights
    # Even slopes are a times phi*' less 1/2: small ones keep its error, two last places of 1 or less. A rounding is 16.
    uncertain = np.abs(slopes) + loss.slope / 8
    rounding = problem.gradient_rounding(weights, uncertain, pulls, loss.curvature_range[1])
    return _State(weights, scores, gradients, lengths(gradients), rounding)


def _directions(problem: Problem, loss: SymmetricProper, state: _State, forcing: np.ndarray) -> np.ndarray:
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


def _ratio(above: np.ndarray, below: np.ndarray, live: np.ndarray) -> np.ndarray:
    """above / below as a column (m, 1), zero for those no longer worked on."""
    return np.divide(above, below, out=np.zeros_like(above), where=live & (below > 0))[:, None]
