"""Projections onto the probability simplex, and least squares over it."""

import math

import numpy as np

from federation.contract.errors import FederationError, InputError
from federation.contract.validation import apart
from federation.numerics.rows import Booleans, Floats, numbers

_ACCURACY = 1e-10  # certified, of the range of the objective
_SETTLED = 1e-13  # a problem is left alone from there
_NEARBY = 1e-7  # weight of the squared distance from the last point, in the first round; then a tenth of it, and so on
_ROUNDS = 8  # of the proximal iteration; two are usual
_ROUNDING = 1e-14  # multipliers above minus that are zero
_STEPS = 10  # of the active set method, per class; about one is usual
_NEGATIVE = 1e-10  # of the range: eigenvalues above minus that are rounding errors
_ENTRIES = 1 << 22  # of the systems solved together


def project(values: Floats) -> Floats:
    """The nearest points (..., C) of the simplex {rho >= 0, sum rho = 1} to `values` (..., C), in Euclidean distance.

    By sorting (Held, Wolfe and Crowder 1974; Duchi et al. 2008). Raises `InputError` for no columns or numbers that
    are not finite.

    Examples:
        >>> project(np.array([[0.5, 0.5, 0.5], [2.0, 0.0, 0.0]])).round(4)
        array([[0.3333, 0.3333, 0.3333],
               [1.    , 0.    , 0.    ]])
    """
    values = _finite(values, "values")
    if values.ndim == 0 or values.shape[-1] == 0:
        raise InputError(f"values must have an axis of at least one class, got shape {values.shape}")
    with np.errstate(over="ignore"):
        # An entry more than 1 below the largest gets no weight, however far below it is.
        shifted = np.maximum(values - values.max(axis=-1, keepdims=True), -1.0)
    falling = -np.sort(-shifted, axis=-1)
    surplus = np.cumsum(falling, axis=-1) - 1.0
    counts = np.arange(1, values.shape[-1] + 1)
    positive = np.count_nonzero(falling * counts > surplus, axis=-1)[..., None]
    threshold = np.take_along_axis(surplus, positive - 1, axis=-1) / positive
    found = np.maximum(shifted - threshold, 0.0)
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def least_squares(quadratic: Floats, linear: Floats) -> Floats:
    """argmin over the simplex of rho'Q rho - 2 q'rho, for `quadratic` Q (..., C, C) and `linear` q (..., C).

    The leading axes broadcast: one Q with many q, or one of each per problem. Only the values of Q on vectors that sum
    to zero matter, where it must be positive semidefinite. Where several points are minimal, the one found is (nearly)
    the closest to the centre of the simplex. Each problem is solved by an active set method, has the same bits
    whatever problems come with it, and is certified: `gap` is at most 1e-10 of the range of Q and q.

    Raises `InputError` for other shapes, numbers that are not finite, and a Q that is not symmetric or not
    semidefinite; `FederationError` for a problem that rounding keeps from its certificate.

    Examples:
        >>> found = least_squares(np.diag([1.0, 2.0, 4.0]), np.zeros(3))  # in proportion to 1, 1/2 and 1/4
        >>> found.round(4)
        array([0.5714, 0.2857, 0.1429])
    """
    quadratic, linear = _finite(quadratic, "quadratic"), _finite(linear, "linear")
    classes = linear.shape[-1] if linear.ndim else 0
    if classes == 0 or quadratic.shape[-2:] != (classes, classes):
        raise InputError(
            f"quadratic must have shape (..., C, C) and linear (..., C), got {quadratic.shape} and {linear.shape}"
        )
    try:
        batch = np.broadcast_shapes(quadratic.shape[:-2], linear.shape[:-1])
    except ValueError as error:
        raise InputError(f"quadratic and linear must have equal batch axes: {error}") from error
    count = math.prod(batch)
    forms = np.broadcast_to(quadratic, (*batch, classes, classes)).reshape(count, classes, classes)
    targets = np.broadcast_to(linear, (*batch, classes)).reshape(count, classes)
    found = np.empty((count, classes))
    step = max(1, _ENTRIES // (classes + 1) ** 2)
    for start in range(0, count, step):
        tile = slice(start, start + step)
        found[tile] = _solve(*_centred(forms[tile], targets[tile]))
    return found.reshape(*batch, classes)


def gap(quadratic: Floats, linear: Floats, rho: Floats) -> Floats:
    """How far the objective of `least_squares` at points rho (..., C) of the simplex can be from its minimum, (...).

    max_i g'(rho - e_i) with the gradient g = 2 (Q rho - q): at least the difference, by convexity, and 0 exactly where
    the Karush-Kuhn-Tucker conditions hold (Frank and Wolfe 1956; Jaggi 2013).

    Examples:
        >>> gap(np.eye(2), np.zeros(2), np.array([[0.5, 0.5], [1.0, 0.0]]))  # the minimum is 1/2, at the centre
        array([0., 2.])
    """
    gradient = 2 * (np.matmul(quadratic, np.asarray(rho)[..., None])[..., 0] - linear)
    return np.asarray(np.sum(gradient * rho, axis=-1) - gradient.min(axis=-1))


def _finite(values: Floats, name: str) -> Floats:
    values = numbers(values, name)
    if not np.isfinite(values).all():
        raise InputError(f"{name} must be finite; drop or replace such values first")
    return values


def _centred(forms: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """The same problems (B, C, C), (B, C) without what is constant on the simplex, scaled to entries of at most 1.

    With H = I - 11'/C and the centre u: H Q H and H (q - Q u). Both have the minimisers of Q and q.
    """
    magnitudes = np.maximum(np.abs(forms).max(axis=(-1, -2)), np.abs(targets).max(axis=-1))
    magnitudes = np.where(magnitudes > 0, magnitudes, 1.0)  # before anything is added up, for sums could overflow
    forms, targets = forms / magnitudes[:, None, None], targets / magnitudes[:, None]
    means = forms.mean(axis=-1)
    lopsided = np.abs(forms - forms.transpose(0, 2, 1)).max(axis=(-1, -2))
    if lopsided.max(initial=0.0) > _NEGATIVE:
        raise InputError(f"quadratic must be symmetric; that of problem {int(lopsided.argmax())} is not")
    targets = targets - means
    targets = targets - targets.mean(axis=-1, keepdims=True)
    forms = forms - means[:, :, None] - means[:, None, :] + means.mean(axis=-1)[:, None, None]
    forms = (forms + forms.transpose(0, 2, 1)) / 2
    ranges = np.maximum(np.abs(forms).max(axis=(-1, -2)), np.abs(targets).max(axis=-1))
    ranges = np.where(ranges > 0, ranges, 1.0)
    lowest = np.linalg.eigvalsh(forms)[:, 0]
    indefinite = np.flatnonzero(lowest < -_NEGATIVE * ranges - _ROUNDING * forms.shape[-1])
    if len(indefinite):
        problem = int(indefinite[0])
        raise InputError(
            "quadratic must be positive semidefinite on vectors that sum to zero; that of problem "
            f"{problem} has the eigenvalue {lowest[problem] * magnitudes[problem]:.3g} there; clip its eigenvalues"
        )
    return forms / ranges[:, None, None], targets / ranges[:, None]


def _solve(forms: Floats, targets: Floats) -> Floats:
    """Minimisers (B, C) for centred forms (B, C, C) and targets (B, C).

    Proximal point iteration (Rockafellar 1976): each round minimises the objective plus a small multiple of
    |rho - last|^2, which has one minimiser. Where the form is singular, the first round already prefers what is near
    the centre; later rounds, with ever smaller multiples, reach what is far along directions that are nearly flat.
    """
    count, classes = targets.shape
    rho = np.full((count, classes), 1.0 / classes)
    gaps, left = gap(forms, targets, rho), np.arange(count)
    # The projected minimiser over the whole plane has about the right zeros, which the method would find one by one.
    plane, _ = _on_faces(forms + _NEARBY * np.eye(classes), targets, np.ones_like(rho, dtype=bool))
    starts = project(plane)
    passive = starts > 0
    for nearby in _NEARBY * 10.0 ** -np.arange(_ROUNDS):
        left = left[gaps[left] > _SETTLED]
        if not len(left):
            break
        strict = forms[left] + nearby * np.eye(classes)
        found, faces = _active_set(strict, targets[left] + nearby * rho[left], starts[left], passive[left])
        found_gaps = gap(forms[left], targets[left], found)
        better = found_gaps < gaps[left]
        into = left[better]
        rho[into], starts[into], passive[into] = found[better], found[better], faces[better]
        gaps[into] = found_gaps[better]
    if gaps.max(initial=0.0) > _ACCURACY:
        most, allowed = apart(float(gaps.max()), _ACCURACY)
        raise FederationError(
            f"problem {int(np.argmax(gaps))} of least squares over the simplex could not be certified: its objective "
            f"may be {most} of its range above the minimum, {allowed} are allowed; rescale it"
        )
    return rho


def _active_set(forms: Floats, targets: Floats, rho: Floats, passive: Booleans) -> tuple[Floats, Booleans]:
    """Minimisers and their passive sets for definite forms, from feasible points rho (B, C) and passive sets (B, C).

    The primal active set method (Nocedal and Wright 2006, Algorithm 16.3) for all problems in step: minimise on the
    face of the passive entries; move there as far as the simplex goes, and drop the entries that stop it; on arrival,
    free the entry whose multiplier is the most negative, until none is.
    """
    rho, passive = rho.copy(), passive.copy()
    moving = np.arange(len(rho))
    for _ in range(_STEPS * rho.shape[1]):
        at, face = rho[moving], passive[moving]
        aim, level = _on_faces(forms[moving], targets[moving], face)
        outside = face & (aim < 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(outside, at / (at - aim), np.inf)
        steps = np.minimum(ratios.min(axis=-1, keepdims=True), 1.0)
        stopped = outside & (ratios <= steps)
        rho[moving] = np.where(face & ~stopped, np.maximum(at + steps * (aim - at), 0.0), 0.0)
        face &= ~stopped
        arrived = ~outside.any(axis=-1)
        slack = np.matmul(forms[moving], aim[..., None])[..., 0] - targets[moving] - level[:, None]
        slack = np.where(face, np.inf, slack)
        entering = slack.argmin(axis=-1)
        optimal = arrived & (slack.min(axis=-1) > -_ROUNDING)
        freed = np.flatnonzero(arrived & ~optimal)
        face[freed, entering[freed]] = True
        passive[moving] = face
        moving = moving[~optimal]
        if not len(moving):
            break
    return rho / rho.sum(axis=-1, keepdims=True), passive


def _on_faces(forms: Floats, targets: Floats, face: Booleans) -> tuple[Floats, Floats]:
    """Minimisers (B, C) over {sum = 1, zero outside the face}, and the gradient (B,) that all their entries share."""
    count, classes = targets.shape
    system = np.zeros((count, classes + 1, classes + 1))
    system[:, :classes, :classes] = np.where(face[:, :, None] & face[:, None, :], forms, np.eye(classes))
    system[:, :classes, classes] = system[:, classes, :classes] = face
    right = np.ones((count, classes + 1))
    right[:, :classes] = np.where(face, targets, 0.0)
    found = np.linalg.solve(system, right[..., None])[..., 0]
    return found[:, :classes], -found[:, classes]
