"""Truncated Newton method for many small regularised log-loss risks at once.

Every quantity of a party is computed from its own numbers by operations that treat the parties of a batch one
by one, and a party changes no more once it has converged, so its result has the same bits in every batch. The
directions are found in single precision, where arithmetic is twice as fast; gradients and scores, which decide
when a party has converged, are double precision.
"""

from __future__ import annotations

import numpy as np

from federation.numerics.coordinates import Coordinates, dots
from federation.numerics.links import Link

_NEWTON_STEPS = 60
_SINGLE_STEPS = 20  # directions of later steps are found in double precision
_CONJUGATE_STEPS = 250
_LOOSEST, _TIGHTEST = 0.5, 1e-2  # relative residual of a direction
_SLOPE_REDUCTION = 0.5
_TRIALS = 20
_LIVE_SHARE = 0.75  # a batch is packed when no more of it than this still works


def minimise_many(
    coordinates: Coordinates,
    link: Link,
    members: np.ndarray,
    counts: np.ndarray,
    regularisation: float,
    targets: np.ndarray,
) -> np.ndarray:
    """Coordinates (T, C, unknowns) of the minimisers of (1/n) sum_i log-loss + lam/2 |w|^2 of T parties.

    Args:
        coordinates: the parties' rows; a row of zeros changes nothing, which makes rows equal in number.
        link: logistic, with C = 1, or softmax.
        members: class memberships (T, C, n), zero or one.
        counts: the n of the mean, shape (T,).
        regularisation: lam > 0.
        targets: gradient norms to reach, shape (T,).

    A party that meets no target in 60 Newton steps, or turns out not finite, is returned as it stands: the
    caller must check the gradient.
    """
    counts = counts.astype(np.float64)
    v = np.zeros((len(members), members.shape[1], coordinates.unknowns))
    z = np.zeros(members.shape)
    residuals = link.probabilities(z) - members
    single, precision = coordinates.single(), np.float32
    found, places = np.zeros_like(v), np.arange(len(v))
    live = np.ones(len(v), dtype=bool)
    first = np.full(len(v), np.nan)
    for step in range(_NEWTON_STEPS):
        gradient = coordinates.pull_back(residuals / counts[:, None, None])
        gradient += regularisation * v
        scores = coordinates.scores(gradient)
        squared = coordinates.inner(gradient, scores, gradient)
        if step == 0:
            first = squared
        if step == _SINGLE_STEPS:
            single, precision = coordinates, np.float64
        live &= (squared > targets**2) & np.isfinite(squared)
        if np.count_nonzero(live) <= _LIVE_SHARE * len(live):
            found[places[~live]] = v[~live]
            kept = np.flatnonzero(live)
            if not len(kept):
                return found
            coordinates, single = coordinates.take(kept), single.take(kept)
            places, v, z, residuals, members, counts, targets, gradient, scores, squared, first, live = (
                values[kept]
                for values in (
                    *(places, v, z, residuals, members, counts, targets),
                    *(gradient, scores, squared, first, live),
                )
            )
        direction = _directions(
            single, link, residuals + members, counts, gradient, scores, squared, first, live, regularisation, precision
        )
        z_direction = coordinates.scores(direction)
        slopes = (
            coordinates.inner(direction, z_direction, gradient),
            regularisation * coordinates.inner(direction, z_direction, v),
            regularisation * coordinates.inner(direction, z_direction, direction),
        )
        lengths = _search(link, z, z_direction, members, residuals, counts, slopes, live)
        direction *= lengths[:, None, None]
        v += direction
    found[places] = v
    return found


def _directions(
    coordinates: Coordinates,
    link: Link,
    probabilities: np.ndarray,
    counts: np.ndarray,
    gradient: np.ndarray,
    scores: np.ndarray,
    squared: np.ndarray,
    first: np.ndarray,
    live: np.ndarray,
    regularisation: float,
    precision: type,
) -> np.ndarray:
    """Newton directions by conjugate gradients to a relative residual of sqrt|g / g_0|: superlinear steps.

    Zero for parties that are not live. The gradient is scaled to norm 1, the range of single precision.
    """
    norms = np.sqrt(np.where(live, squared, 1.0))[:, None, None]
    goal = np.clip(np.sqrt(squared / first), _TIGHTEST**2, _LOOSEST**2).astype(precision)
    curvature = tuple(values.astype(precision) for values in link.curvature(probabilities, counts[:, None, None]))
    residual = (gradient / -norms).astype(precision)
    h = (scores / -norms).astype(precision)
    weight = precision(regularisation)
    found, places = np.zeros_like(residual), np.arange(len(residual))
    s, q, x = residual.copy(), h.copy(), np.zeros_like(residual)
    image, scratch = np.empty_like(q), np.empty_like(s)
    size = coordinates.inner(residual, h, residual)
    for _ in range(_CONJUGATE_STEPS):
        link.curve(curvature, q, out=image)
        pulled = coordinates.pull_back(image)
        np.multiply(s, weight, out=scratch)
        pulled += scratch
        length = np.zeros_like(size)
        np.divide(size, coordinates.inner(s, q, pulled), out=length, where=live)
        length = length[:, None, None]
        np.multiply(s, length, out=scratch)
        x += scratch
        pulled *= length
        residual -= pulled
        coordinates.scores(residual, out=h)
        previous, size = size, coordinates.inner(residual, h, residual)
        live = live & (size > goal)
        if np.count_nonzero(live) <= _LIVE_SHARE * len(live):
            found[places[~live]] = x[~live]
            kept = np.flatnonzero(live)
            if not len(kept):
                return found * norms
            coordinates, curvature = coordinates.take(kept), tuple(values[kept] for values in curvature)
            places, s, q, x, residual, h, size, previous, goal, live = (
                values[kept] for values in (places, s, q, x, residual, h, size, previous, goal, live)
            )
            image, scratch = np.empty_like(q), np.empty_like(s)
        ratio = (size / previous)[:, None, None]
        s *= ratio
        s += residual
        q *= ratio
        q += h
    found[places] = x
    return found * norms


def _search(
    link: Link,
    z: np.ndarray,
    z_direction: np.ndarray,
    members: np.ndarray,
    residuals: np.ndarray,
    counts: np.ndarray,
    slopes: tuple[np.ndarray, np.ndarray, np.ndarray],
    live: np.ndarray,
) -> np.ndarray:
    """Step lengths (T,) at which the slope of the risk is half of what it was; updates `z` and `residuals`.

    The risk is convex along the direction, so that a length between one where it falls and one where it rises
    exists; looking for the root of the slope, not for a smaller risk, is immune to rounding near the minimum,
    and lengths above 1 save steps while the weights of separable rows still grow.
    """
    lengths = np.zeros(len(z))
    open_ = np.flatnonzero(live)
    start, linear, quadratic = (values[open_] for values in slopes)
    bound = _SLOPE_REDUCTION * np.abs(start)
    z0, dz, own, n = z[open_], z_direction[open_], members[open_], counts[open_]
    t, low, high = np.ones(len(open_)), np.zeros(len(open_)), np.full(len(open_), np.inf)
    for _ in range(_TRIALS):
        trial = dz * t[:, None, None]
        trial += z0
        p = link.probabilities(trial)
        errors = p - own
        slope = dots(errors, dz) / n + linear + t * quadratic
        refused = np.abs(slope) > bound
        done = np.flatnonzero(~refused)
        lengths[open_[done]], z[open_[done]], residuals[open_[done]] = t[done], trial[done], errors[done]
        if not refused.any():
            break
        again = np.flatnonzero(refused)
        open_, z0, dz, own, n, linear, quadratic, bound, t, low, high, p, slope = (
            values[again] for values in (open_, z0, dz, own, n, linear, quadratic, bound, t, low, high, p, slope)
        )
        curved = np.empty_like(dz)
        link.curve(link.curvature(p, n[:, None, None]), dz, out=curved)
        low, high = np.where(slope < 0, t, low), np.where(slope > 0, t, high)
        newton = t - slope / (dots(curved, dz) + quadratic)
        middle = (low + np.minimum(high, 4 * low + 1)) / 2
        t = np.minimum(np.where((low < newton) & (newton < high), newton, middle), 4 * t)
    return lengths
