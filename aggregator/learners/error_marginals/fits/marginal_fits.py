"""Weights and labels of public rows that reproduce noisy marginals (Lacombe, Jetley and Sebag 2021, Problems 1, 2).

All are the unique minimisers of a strictly convex objective, so they depend on no starting point or learning rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aggregator.learners.error_marginals.fits import dual_newton, interior_point
from aggregator.learners.error_marginals.fits.bounded_fits import BoundedFit, Entropy, Penalty, Quadratic
from federation.contract.errors import FederationError, InputError
from federation.contract.validation import apart
from federation.numerics.rows import Floats, numbers

if TYPE_CHECKING:
    from scipy.sparse import csc_array

_ACCURACY = 1e-12  # certified, of the target or of what the system makes of unknowns of 1, whichever is larger
_STEPS = 15  # of Newton's method, before the interior point method is asked; five are usual
_MORE_STEPS = 60  # after it; two are usual


def importance_weights(indicators: Any, marginals: Floats, strength: float) -> Floats:
    """Weights w (n,) >= 0 of n rows whose marginals match p: argmin |R w - p|^2 / 2 + alpha |w - 1/n|^2 over w >= 0.

    The noisy p may be negative and need not add up; clipping it first would bias the weights. They add up to about as
    much as the p of a feature does: normalise them where they must add up to 1 (Equation 2).

    Args:
        indicators: R (K, n), sparse or dense: 1 where a row lies in a bin (`federation.numerics.binning`).
        marginals: p (K,), shares of rows.
        strength: alpha > 0.

    Exact to rounding, as the residual certifies. Raises `InputError` for other shapes, numbers that are
    not finite and a strength of 0 or less; `FederationError` for a problem that rounding keeps from its certificate.

    Examples:
        >>> in_bin = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])  # two bins of one feature, four rows
        >>> importance_weights(in_bin, np.array([0.8, 0.2]), strength=1e-6).round(3)
        array([0.4, 0.4, 0.1, 0.1])
    """
    matrix = _system(indicators)
    marginals = _vector(marginals, "marginals", matrix.shape[0])
    rows = matrix.shape[1]
    # In units of 1/n: u = n w has |R diag(1/n) u - p|^2 / 2 + (2 alpha / n) sum_i (1/n) (u_i - 1)^2 / 2.
    strength, share = _strength(strength, rows / 2), np.full(rows, 1 / rows)
    return np.asarray(_solve(BoundedFit(matrix, marginals, strength, share, Quadratic(centre=1.0))) / rows)


def box_labels(system: Any, target: Floats, strength: float, weights: Floats) -> Floats:
    """Soft labels y in [0, 1]^n: argmin |M diag(w) y - b|^2 / 2 + (rho / 2) sum_i w_i (y_i - 1/2)^2.

    With M = R diag(s) for s = 1 where a hypothesis says 1 and -1 where it says 0, and b the mass of rows that it puts
    in class 1 minus its errors, per bin (Equations 3 to 6). A row of weight 0 gets the label that it would have if it
    had a little.

    Args:
        system: M (K, n), sparse or dense; blocks of several hypotheses below one another, which may repeat.
        target: b (K,).
        strength: rho > 0.
        weights: w (n,) >= 0, not all 0.

    Exact to rounding, as the residual certifies. Raises `InputError` for other shapes, numbers that are
    not finite, and a strength or weights outside these ranges; `FederationError` for a problem that rounding keeps from
    its certificate.

    Examples:
        >>> in_bin, weights = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]), np.full(4, 0.25)
        >>> box_labels(in_bin, np.array([0.4, 0.0]), 1e-6, weights).round(3)  # four fifths of class 1 in the first bin
        array([0.8, 0.8, 0. , 0. ])
    """
    return _labels(system, target, strength, weights, Quadratic(centre=0.5, high=1.0))


def entropy_labels(system: Any, target: Floats, strength: float, weights: Floats) -> Floats:
    """Soft labels y in (0, 1)^n of most entropy: argmin |M diag(w) y - b|^2 / 2 + rho sum_i w_i KL(y_i || 1/2).

    y = 1 / (1 + exp(-M'm)) is an additive logistic model of the bins. Noise moves such labels less than those of
    `box_labels`, of which many lie at 0 or 1. Arguments and errors as there.

    Examples:
        >>> in_bin, weights = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]), np.full(4, 0.25)
        >>> entropy_labels(in_bin, np.array([0.4, 0.0]), 1e-6, weights).round(3)
        array([0.8, 0.8, 0. , 0. ])
    """
    return _labels(system, target, strength, weights, Entropy())


def _labels(system: Any, target: Floats, strength: float, weights: Floats, penalty: Penalty) -> Floats:
    matrix = _system(system)
    target = _vector(target, "target", matrix.shape[0])
    weights = _vector(weights, "weights", matrix.shape[1])
    if weights.min() < 0 or not weights.any():
        raise InputError(f"weights must be at least 0 and not all 0, got {weights.min():.3g} to {weights.max():.3g}")
    total = weights.sum()  # weights, target and strength in multiples of it have the same minimiser
    strength = _strength(strength, total)
    return _solve(BoundedFit(matrix, target / total, strength, weights / total, penalty))


def _solve(fit: BoundedFit) -> Floats:
    """The minimising unknowns (n,), by Newton steps on the dual.

    Where those do not settle, as for a tiny strength and a target that no unknowns meet, they start again from the
    result of an interior point method.
    """
    with np.errstate(all="ignore"):  # what overflows is not certified
        accuracy = _ACCURACY * fit.scale
        found = dual_newton.ascend(fit, np.zeros(len(fit.target)), _STEPS)
        if not found.residual <= accuracy:
            start = interior_point.multipliers(fit.of_positive_weight())
            found = dual_newton.ascend(fit, start, _MORE_STEPS)
    if not found.residual <= accuracy < np.inf:
        left, needed = apart(found.residual, accuracy)
        raise FederationError(
            f"a fit of {len(fit.target)} marginals by {len(fit.weights)} rows could not be solved at this strength: "
            f"rounding leaves a residual of {left} where {needed} is needed; raise strength"
        )
    return fit.penalty.unknowns(found.arguments)


def _system(system: Any) -> csc_array:
    from scipy.sparse import csc_array, issparse

    try:
        matrix = csc_array(system if issparse(system) else np.asarray(system, dtype=np.float64), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the system of marginals must be a matrix of numbers: {error}") from error
    if 0 in matrix.shape or not np.isfinite(matrix.data).all():
        raise InputError(
            f"the system of marginals must have at least one bin and one row and finite entries, got {matrix.shape}"
        )
    return matrix


def _vector(values: Floats, name: str, length: int) -> Floats:
    values = numbers(values, name)
    if values.shape != (length,):
        raise InputError(f"{name} must have shape {(length,)} to fit the system of marginals, got {values.shape}")
    if not np.isfinite(values).all():
        raise InputError(f"{name} must be finite, got NaN or infinity")
    return values


def _strength(strength: float, unit: float) -> float:
    """The strength in multiples of `unit`."""
    if not (isinstance(strength, float | int | np.number) and 0 < strength / unit < np.inf):
        raise InputError(f"strength must be a finite number above 0, got {strength!r}")
    return float(strength / unit)
