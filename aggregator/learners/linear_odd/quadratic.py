"""Minimisers of risks with a quadratic even part: one Cholesky factor for all mean operators."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from aggregator.learners.linear_odd.problem import Problem, lengths, rounding
from federation.contract.errors import InputError

_SINGULAR = 1e-10  # eigenvalues below this share of the largest are zero


def minimise_quadratic(problem: Problem, curvature: float) -> tuple[np.ndarray, np.ndarray]:
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
    weights -= cho_solve(factor, _gradients(problem, weights, curvature)[0].T).T
    gradients, slopes = _gradients(problem, weights, curvature)
    errors = lengths(gradients) + problem.gradient_rounding(weights, slopes, problem.pulls, curvature)
    return weights, errors / convexity


def _gradients(problem: Problem, weights: np.ndarray, curvature: float) -> tuple[np.ndarray, np.ndarray]:
    slopes = curvature * problem.scores(weights)
    return problem.pulled(slopes) - problem.pulls + 2 * problem.regularisation * weights, slopes
