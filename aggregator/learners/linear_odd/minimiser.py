"""Certified minimisers of regularised linear-odd risks, from rows and mean operators alone.

Risks with a smooth even part are minimised for many mean operators of the same rows at once. A quadratic even part
needs one Cholesky factor for all mean operators (`minimise_quadratic`). Any other smooth even part needs Newton's
method (`minimise_smooth`).
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from aggregator.learners.linear_odd.interior_point import Problem, lengths, minimise_kinked, rounding
from aggregator.learners.linear_odd.losses import LinearOddLoss, PiecewiseLinearLoss, SymmetricProper
from federation.contract.errors import FederationError, InputError
from federation.contract.validation import apart
from federation.numerics.label_losses import check_finite, checked_statistic
from federation.numerics.rows import Booleans, Floats, Integers, numbers

_TOLERANCE = 1e-6
_LOOSEST = 1e-4  # rounding weakens certificates where rows on a kink depend on one another, or are long


class LinearOddMinimiser(NamedTuple):
    """Weights and how far they are from the exact minimiser at most.

    `weights` has the shape of the mean operator, (d,) or (m, d); `distance` is a Euclidean norm, shape () or (m,).
    """

    weights: Floats
    distance: Floats


def minimise_linear_odd(
    loss: LinearOddLoss,
    rows: Floats,
    moment: Floats,
    regularisation: float,
    *,
    tolerance: float | None = None,
    weights: Floats | None = None,
) -> LinearOddMinimiser:
    """argmin_w mean_i even(<w, x_i>) - a/2 <w, mu> + lam |w|² (Patrini et al. 2015, Algorithm 1).

    Args:
        loss: from `aggregator.learners.linear_odd.losses.loss`, or a loss of one's own.
        rows: x_1..x_n without labels, shape (n, d).
        moment: the mean operator mu or an estimate of it, (d,), or m of them (m, d), which share the work on the rows.
        regularisation: lam > 0, of |w|² and not of |w|²/2. Zero is allowed where the even part of the loss is quadratic
            (square) and the rows have full rank.
        tolerance: distance to the exact minimiser in units of max(1, |w|), at most. 1e-6 by default; losses with kinks
            aim at that and must reach 1e-4, since rounding weakens their certificates for some rows of whole numbers.
        weights: of the rows in the mean, (n,), at least 0 and not all 0; they are divided by their sum. Equal by
            default.

    The distance is certified by strong convexity: through the gradient for smooth losses, and through the duality gap
    for losses with kinks. Raises `InputError` for arguments outside these ranges and `FederationError` where rounding
    keeps the distance from the tolerance.

    Examples:
        >>> from aggregator.learners.linear_odd.losses import loss
        >>> rows, labels = np.array([[1.0, 1.0], [2.0, 1.0], [-1.0, 1.0]]), np.array([1, 1, -1])
        >>> found = minimise_linear_odd(loss("logistic"), rows, labels @ rows / 3, regularisation=0.1)
        >>> found.weights.round(3), bool(found.distance < 1e-6)
        (array([1.118, 0.091]), True)
        >>> minimise_linear_odd(loss("unhinged"), rows, labels @ rows / 3, regularisation=0.5).weights  # mu itself
        array([1.33333333, 0.33333333])
    """
    if not isinstance(loss, (SymmetricProper, PiecewiseLinearLoss)):
        raise InputError(
            f"loss must be a SymmetricProper or a PiecewiseLinearLoss, got {type(loss).__name__}; look one up by name"
        )
    quadratic = isinstance(loss, SymmetricProper) and loss.curvature_range[0] == loss.curvature_range[1]
    _check_regularisation(regularisation, loss, quadratic)
    if tolerance is not None and not 0 < tolerance < math.inf:
        raise InputError(f"tolerance must be positive and finite, got {tolerance}; leave it out for 1e-6")
    rows, moment = checked_statistic(rows, moment, "moment", least=1)
    rows, shares = _shares(rows, weights)
    problem = Problem(rows, shares, loss.slope / 2 * np.atleast_2d(moment), regularisation)
    aim, limit = (_TOLERANCE, _LOOSEST) if tolerance is None else (tolerance, tolerance)
    if isinstance(loss, PiecewiseLinearLoss):
        found, distances = minimise_kinked(problem, loss.kinks, aim)
    elif quadratic:
        found, distances = minimise_quadratic(problem, loss.curvature_range[1])
    else:
        found, distances = minimise_smooth(problem, loss, aim)
    excess = distances / np.maximum(1.0, lengths(found))
    if not excess.max() <= limit:
        wanted, reached = apart(limit, float(excess.max()))
        raise FederationError(
            f"the risk of loss {loss.name!r} could not be minimised to tolerance {wanted}, only to "
            f"{reached}; scale the rows to norms of about 1, or raise the regularisation (now "
            f"{regularisation:g}) or the tolerance"
        )
    return LinearOddMinimiser(found.reshape(moment.shape), distances.reshape(moment.shape[:-1]))


def _check_regularisation(regularisation: float, loss: LinearOddLoss, quadratic: bool) -> None:
    if 0 < regularisation < math.inf or (quadratic and regularisation == 0):
        return
    if loss.bounded_slope:
        why = f"without it the risk of loss {loss.name!r} falls without end along a noisy mean operator"
    else:
        why = "without it the risk need not have a single minimiser (0 is allowed for the square loss only)"
    raise InputError(f"regularisation must be > 0 and finite, got {regularisation}: {why}; 1e-4 is a start")


def _shares(rows: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Rows that count in the mean, and their shares of it."""
    if weights is None:
        return rows, np.full(len(rows), 1 / len(rows))
    weights = numbers(weights, "weights")
    check_finite(weights, "weights")
    if weights.shape != (len(rows),) or weights.min() < 0 or not weights.sum() > 0:
        raise InputError(
            f"weights must be one number >= 0 for each of the {len(rows)} rows and not all 0, got shape "
            f"{weights.shape} with minimum {weights.min(initial=math.inf):g}"
        )
    kept = weights > 0
    return np.ascontiguousarray(rows[kept]), weights[kept] / weights.sum()


_SINGULAR = 1e-10  # eigenvalues below this share of the largest are zero
_NEWTON_STEPS = 200
_HALVINGS = 40
_SUFFICIENT_DECREASE = 1e-4
_CONJUGATE_STEPS = 200
_LOOSEST_TOLERANCE, _TIGHTEST = 0.1, 1e-6  # relative residual of a direction
_TILE_ENTRIES = 1 << 22  # scores that are held at once


class _State(NamedTuple):
    """Where the minimisers of m mean operators have got to."""

    weights: Floats  # (m, d)
    scores: Floats  # (m, n)
    gradients: Floats  # (m, d)
    norms: Floats  # (m,) of the gradients
    rounding: Floats  # (m,) what rounding may add to them

    def take(self, which: Integers | Booleans) -> "_State":
        return _State(*(field[which] for field in self))

    def put(self, which: Integers | Booleans, other: "_State") -> None:
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
        forcing = np.clip(current.norms / first[live], _TIGHTEST, _LOOSEST_TOLERANCE)
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
