"""Certified minimisers of regularised linear-odd risks, from rows and mean operators alone."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from aggregator.learners.linear_odd.interior_point import minimise_kinked
from aggregator.learners.linear_odd.losses import LinearOddLoss, PiecewiseLinearLoss, SymmetricProper
from aggregator.learners.linear_odd.newton import minimise_quadratic, minimise_smooth
from aggregator.learners.linear_odd.problem import Problem, lengths
from federation.contract.errors import FederationError, InputError
from federation.contract.validation import apart
from federation.numerics.label_losses import check_finite, checked_statistic
from federation.numerics.rows import Floats, numbers

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
        loss: from `aggregator.learners.linear_odd.catalogue.loss`, or a loss of one's own.
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
        >>> from aggregator.learners.linear_odd.catalogue import loss
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
