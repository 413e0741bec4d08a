"""Certified minimisers of regularised logistic and softmax risks.

Output perturbation calibrates noise to the distance between *exact* minimisers. Strong convexity turns a
gradient bound into a distance, |grad R(w)| <= g  =>  |w - w*| <= g / lam, so a solver that meets one public
tolerance g on every data set costs 2 g / lam of sensitivity (`solver_slack` of the mechanisms' accounting).
Nothing here returns weights that miss the tolerance.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dgeqrf, dorgqr, dposv

from federation.contract.errors import FederationError, InputError
from federation.contract.validation import apart
from federation.numerics.label_losses import (
    BinaryLoss,
    LabelLoss,
    MultinomialLoss,
    check_finite,
    check_labels,
    check_regularisation,
    label_loss,
    of_mean_one,
)
from federation.numerics.rows import Floats, Integers

_DENSE_UNKNOWNS = 600  # up to here a Cholesky factor is cheaper than conjugate gradients
_NEWTON_STEPS = 200
_HALVINGS = 40
_MANY_ROWS, _SAMPLED = 1 << 16, 16  # from so many rows on, every so many of them are fitted first
_ROUGHLY = 1e-4  # their gradient: nearer to their minimum is no nearer to that of all
_SUFFICIENT_DECREASE = 1e-4
_EPSILON = float(np.finfo(np.float64).eps)


class Minimiser(NamedTuple):
    """Weights whose true risk gradient is at most the public tolerance that `minimise` was given.

    `weights` has the shape of mu. `iterations` depends on the labels: a diagnostic that must not be released.
    """

    weights: Floats
    iterations: int


def gradient_floor(regularisation: float, row_norm: float = 1.0) -> float:
    """Smallest gradient tolerance that double precision can certify for rows of norm at most `row_norm`.

    1e-13, or 4 eps row_norm / sqrt(lam) when that is larger: weights grow like 1/sqrt(lam), and with them the
    rounding of the scores. Both in units of max(1, row_norm). Raises `InputError` for lam <= 0.

    Examples:
        >>> gradient_floor(1e-4)
        1e-13
        >>> gradient_floor(1e-12)  # weights, and their rounding, grow as 1/sqrt(lam)
        8.88e-10
    """
    check_regularisation(regularisation)
    scores = 4 * _EPSILON * row_norm / math.sqrt(regularisation)
    return max(1.0, row_norm) * max(1e-13, scores)


def check_tolerance(tolerance: float, regularisation: float, row_norm: float, of: str = "") -> None:
    """Raises `InputError` unless the tolerance of a gradient is finite and at least `gradient_floor`."""
    floor = gradient_floor(regularisation, row_norm)
    if not floor <= tolerance < np.inf:
        least, given = apart(floor, tolerance)
        raise InputError(
            f"gradient_tolerance must be finite and at least {least} for this regularisation and these "
            f"row norms (the limit of double precision), got {given}{of}"
        )


def attainable_tolerance(wanted: float, rows: Floats, regularisation: float) -> float:
    """`wanted`, or twice what double precision can certify for rows (N, d) where that is larger.

    For minimisers that no guarantee rests on; a guarantee needs a tolerance in public numbers only.

    Examples:
        >>> attainable_tolerance(1e-8, np.ones((2, 4)), regularisation=1e-4)
        1e-08
        >>> attainable_tolerance(1e-8, 1e6 * np.ones((2, 4)), regularisation=1e-4)  # long rows
        0.71
    """
    row_norm = math.sqrt(float(np.einsum("nd,nd->n", rows, rows).max()))
    return max(wanted, 2 * gradient_floor(regularisation, row_norm))


def minimise(
    rows: Floats,
    mu: Floats,
    regularisation: float,
    *,
    gradient_tolerance: float,
    newton_steps: int = _NEWTON_STEPS,
    weights: Floats | None = None,
) -> Minimiser:
    """The minimiser of the risk of `federation.numerics.label_losses` (Hamm et al. 2016, Eq. 19 and App. B).

    Args:
        rows: public rows, shape (N, d).
        mu: the labels' statistic; shape (d,) binary (mean share of class 1 times row), (C, d) multinomial.
        regularisation: lam > 0, the strong convexity.
        gradient_tolerance: bound on the norm of the gradient, at least `gradient_floor(lam, max |x|)`.
        newton_steps: at most so many damped Newton steps before the accelerated gradient method takes over.
        weights: of the rows (N,), as `label_loss` takes them.

    Newton's method from zero (exact Hessian up to 600 unknowns, conjugate gradients above) nearly always certifies;
    otherwise Nesterov's method runs for a number of steps that depends on public numbers only and suffices in theory
    for every set of labels. Raises `InputError` for arguments outside these ranges and `FederationError` when rounding
    kept even that from the tolerance.

    Examples:
        >>> rows, shares = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.9, 0.2])  # of class 1
        >>> found = minimise(rows, shares @ rows / 2, regularisation=0.01, gradient_tolerance=1e-10)
        >>> found.weights.round(4)
        array([ 1.8418, -1.2381])
    """
    loss = label_loss(rows, mu, regularisation, weights)
    w, iterations = _certified(loss, np.zeros(loss.unknowns), gradient_tolerance, newton_steps)
    return Minimiser(w.reshape(np.shape(mu)), iterations)


def fit_labels(
    rows: Floats,
    labels: Integers,
    classes: int,
    regularisation: float,
    gradient_tolerance: float,
    copies: Integers | None = None,
) -> Floats:
    """Logistic (2 classes) or softmax weights for hard labels: shape (d,) or (C, d).

    `rows` is (n, d), `labels` holds integers in 0..classes-1; a row counts as often as `copies` (n,) says. With fewer
    rows than columns the problem is solved in the row space: X' = Q R and the minimiser is V Q' with V the minimiser
    for rows X Q = R', because the penalty removes every component that no row sees. Raises `InputError` as `minimise`
    and for labels out of range.

    Examples:
        >>> rows, labels = np.array([[2.0], [1.0], [-1.0], [-2.0]]), np.array([1, 1, 0, 0])
        >>> fit_labels(rows, labels, 2, regularisation=0.1, gradient_tolerance=1e-10).round(4)
        array([1.4578])
        >>> fit_labels(rows, labels, 3, regularisation=0.1, gradient_tolerance=1e-10).round(4).tolist()
        [[-1.2544], [1.2544], [0.0]]
    """
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    labels = np.asarray(labels)
    check_labels(rows, labels, classes)
    if rows.size == 0 or labels.min() < 0 or labels.max() >= classes:
        raise InputError(f"labels must lie in 0..{classes - 1}, and rows must not be empty")
    check_finite(rows, "rows")
    check_regularisation(regularisation)
    basis = None
    if rows.shape[0] < rows.shape[1]:
        # Orthonormal (d, n) whose span holds every row: the Q of X' = Q R.
        factors, scales, _, _ = dgeqrf(rows.T)
        basis = np.asarray(dorgqr(factors, scales, overwrite_a=1)[0])
        rows = rows.dot(basis)
    members = (labels == (1 if classes == 2 else np.arange(classes)[:, None])).astype(np.float64)
    counted = None if copies is None else copies.astype(np.float64)

    def risk(some: slice) -> LabelLoss:
        chosen, held = rows[some], members[..., some]
        weights = None if counted is None else of_mean_one(counted[some], len(chosen))
        mu = (held if weights is None else held * weights).dot(chosen) / len(chosen)
        return (BinaryLoss if classes == 2 else MultinomialLoss)(chosen, mu, regularisation, weights)

    loss = risk(slice(None))
    w = np.zeros(loss.unknowns)
    if len(rows) >= _MANY_ROWS:  # what every 16th says saves most of the steps with all of them
        w, _, _ = _newton(risk(slice(None, None, _SAMPLED)), w, _ROUGHLY, _NEWTON_STEPS)
    w, _ = _certified(loss, w, gradient_tolerance, _NEWTON_STEPS)
    found = w.reshape(loss.shape)
    return found if basis is None else found.dot(basis.T)


def _certified(loss: LabelLoss, w: Floats, tolerance: float, newton_steps: int) -> tuple[Floats, int]:
    """Weights that meet the tolerance and the iterations they took."""
    row_norm = math.sqrt(float(np.einsum("ij,ij->i", loss.rows, loss.rows).max()))
    check_tolerance(tolerance, loss.regularisation, row_norm)
    # Half the tolerance for the computed gradient leaves the other half for its rounding error.
    target, iterations = tolerance / 2, 0
    zero = np.zeros(loss.unknowns)
    for origin in (w, zero) if w.any() else (zero,):
        w, steps, met = _newton(loss, origin, target, newton_steps)
        iterations += steps
        if met:
            return w, iterations
    w, steps, met = _accelerated_gradient(loss, row_norm, target)
    if not met:
        raise FederationError(
            f"the risk could not be minimised to gradient_tolerance {tolerance}; raise the tolerance or the "
            f"regularisation (now {loss.regularisation})"
        )
    return w, iterations + steps


def _newton(loss: LabelLoss, w: Floats, target: float, steps: int) -> tuple[Floats, int, bool]:
    """Damped Newton; whether the gradient met the target.

    Backtracking asks for a smaller gradient norm instead of a smaller risk: the Newton direction decreases
    both at a rate that converges from everywhere (the Hessian is at least lam I), and the norm, unlike the
    risk, does not drown in rounding near the minimum, where the certificate is decided.
    """
    dense = loss.unknowns <= _DENSE_UNKNOWNS
    gradient, probabilities = loss.gradient(w)
    norm = _norm(gradient)
    for iteration in range(steps):
        if norm <= target:
            return w, iteration, True
        if dense:
            direction = _cholesky_direction(loss, gradient, probabilities)
        else:
            direction = _conjugate_direction(loss, gradient, probabilities)
        step = 1.0
        for _ in range(_HALVINGS):
            candidate = w + step * direction
            gradient, probabilities = loss.gradient(candidate)
            candidate_norm = _norm(gradient)
            if candidate_norm <= (1.0 - _SUFFICIENT_DECREASE * step) * norm:
                break
            step /= 2
        else:
            return w, iteration, False
        w, norm = candidate, candidate_norm
    return w, steps, norm <= target


def _cholesky_direction(loss: LabelLoss, gradient: Floats, probabilities: Floats) -> Floats:
    """The Newton direction; zero, which ends Newton's method, when rounding left the Hessian indefinite."""
    # A C-ordered symmetric matrix, transposed, is the Fortran order that LAPACK factors in place.
    _, x, failed = dposv(loss.hessian(probabilities).T, gradient, overwrite_a=1)
    return np.zeros_like(gradient) if failed else np.negative(x, out=x)


def _conjugate_direction(loss: LabelLoss, gradient: Floats, probabilities: Floats) -> Floats:
    """Conjugate gradients on H p = -g to a residual of min(1/2, sqrt|g|) |g| (superlinear convergence)."""
    residual = -gradient
    squared = float(residual @ residual)
    goal = squared * min(0.25, math.sqrt(squared))
    search, direction = residual.copy(), np.zeros_like(residual)
    for _ in range(2 * loss.unknowns):
        image = loss.product(probabilities, search)
        length = squared / float(search @ image)
        direction += length * search
        residual -= length * image
        previous, squared = squared, float(residual @ residual)
        if squared <= goal:
            break
        search = residual + (squared / previous) * search
    return direction


def _accelerated_gradient(loss: LabelLoss, row_norm: float, target: float) -> tuple[Floats, int, bool]:
    """Nesterov's constant-momentum method from zero (Nesterov 2004, Theorem 2.2.3).

    With strong convexity m and smoothness L, R(w_k) - R* <= (1 - sqrt(m/L))^k (R(0) - R* + m/2 |w*|^2), the
    bracket is at most G^2/m for G >= |grad R(0)|, and |grad R(w)|^2 <= 2 L (R(w) - R*): the target is met
    after log(2 L G^2 / (m target^2)) / -log(1 - sqrt(m/L)) steps.
    """
    m = loss.regularisation
    smoothness = loss.curvature * row_norm**2 + m
    ratio = math.sqrt(m / smoothness)
    w = np.zeros(loss.unknowns)
    extrapolated = w
    gradient, _ = loss.gradient(w)
    # Label shares keep |grad R(0)| below the public bound; only a perturbed, hence public, mu exceeds it.
    gap = max(loss.start_gradient * row_norm, _norm(gradient), target)
    decay = -math.log1p(-ratio) if ratio < 1 else math.inf
    steps = math.ceil(max(0.0, math.log(2 * smoothness / m) + 2 * math.log(gap / target)) / decay) + 1
    momentum = (1 - ratio) / (1 + ratio)
    for iteration in range(steps):
        gradient, _ = loss.gradient(extrapolated)
        if _norm(gradient) <= target:
            return extrapolated, iteration, True
        following = extrapolated - gradient / smoothness
        extrapolated = following + momentum * (following - w)
        w = following
    return w, steps, _norm(loss.gradient(w)[0]) <= target


def _norm(vector: Floats) -> float:
    return math.sqrt(vector.dot(vector))


def risk_minimiser(
    rows: Floats, shares: Floats, regularisation: float, tolerance: float, weights: Floats | None = None
) -> Floats:
    """Weights of the regularised risk of label shares (N, C) on rows (N, d): (d,) for two classes, (C, d) for more.

    The risk takes only the statistic (1/N) sum_i alpha_i x_i' from the shares alpha. Rows count by their `weights`
    (N,), which are divided by their mean, or all alike. Certified to the gradient norm
    `tolerance`; raises `InputError` as `minimise`.

    Examples:
        >>> rows = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> risk_minimiser(rows, np.array([[0.0, 1.0], [0.5, 0.5]]), regularisation=0.1, tolerance=1e-8).round(2)
        array([1.18, 0.  ])
    """
    counted = shares if weights is None else shares * of_mean_one(weights, len(rows))[:, None]
    mu = counted.T @ rows / len(rows)
    statistic = mu[1] if len(mu) == 2 else mu
    return minimise(rows, statistic, regularisation, gradient_tolerance=tolerance, weights=weights).weights
