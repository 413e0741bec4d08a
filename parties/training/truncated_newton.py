"""Truncated Newton method for many small regularised log-loss risks at once.

Every quantity of a party is computed from its own numbers by operations that treat the parties of a batch one
by one, and a party changes no more once it has converged, so its result has the same bits in every batch. The
directions are found in single precision, where arithmetic is twice as fast; gradients and scores, which decide
when a party has converged, are double precision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from parties.training.links import Link

_NEWTON_STEPS = 60
_SINGLE_STEPS = 20  # directions of later steps are found in double precision
_CONJUGATE_STEPS = 250
_LOOSEST, _TIGHTEST = 0.5, 1e-2  # relative residual of a direction
_TRIALS = 20
_SLOPE_REDUCTION = 0.5
_LIVE_SHARE = 0.75  # a batch is packed when no more of it than this still works


class _Batch(NamedTuple):
    """The parties still worked on; every array has one entry per party."""

    places: np.ndarray  # (T,) in the result
    rows: np.ndarray  # (T, n, m)
    members: np.ndarray  # (T, C, n)
    counts: np.ndarray  # (T,)
    targets: np.ndarray  # (T,)
    weights: np.ndarray  # (T, C, m)
    scores: np.ndarray  # (T, C, n)
    residuals: np.ndarray  # (T, C, n) probabilities less memberships
    first: np.ndarray  # (T,) squared norm of the first gradient
    live: np.ndarray  # (T,) whether not yet converged


def minimise_many(
    rows: np.ndarray, members: np.ndarray, counts: np.ndarray, link: Link, regularisation: float, targets: np.ndarray
) -> np.ndarray:
    """Minimisers (T, C, m) of (1/n) sum_i log-loss_i + lam/2 |w|^2 for T parties.

    Args:
        rows: shape (T, n, m), finite; a row of zeros changes nothing, which makes rows equal in number.
        members: class memberships (T, C, n), zero or one; C = 1 with the logistic link.
        counts: the n of the mean, shape (T,).
        link: logistic or softmax.
        regularisation: lam > 0.
        targets: gradient norms to reach, shape (T,).

    A party that misses its target in 60 Newton steps is returned as it stands: the caller checks the gradient.
    """
    weights, scores = np.zeros((*members.shape[:2], rows.shape[2])), np.zeros(members.shape)
    residuals, everyone = link.probabilities(scores) - members, np.arange(len(rows))
    batch = _Batch(
        *(everyone, rows, members, counts.astype(np.float64), targets, weights, scores, residuals),
        *(np.full(len(rows), np.nan), np.ones(len(rows), dtype=bool)),
    )
    found, direction_rows = np.zeros_like(weights), rows.astype(np.float32)
    for step in range(_NEWTON_STEPS):
        gradient = np.matmul(batch.residuals / batch.counts[:, None, None], batch.rows)
        gradient += regularisation * batch.weights
        squared = dots(gradient, gradient)
        if step == 0:
            batch.first[:] = squared
        elif step == _SINGLE_STEPS:
            direction_rows = batch.rows
        batch.live[:] &= squared > batch.targets**2
        if np.count_nonzero(batch.live) <= _LIVE_SHARE * len(batch.live):
            found[batch.places[~batch.live]] = batch.weights[~batch.live]
            kept = np.flatnonzero(batch.live)
            if not len(kept):
                return found
            batch = _Batch(*_take(kept, *batch))
            gradient, squared, direction_rows = _take(kept, gradient, squared, direction_rows)
        direction = _directions(batch, link, regularisation, gradient, squared, direction_rows)
        lengths = _search(batch, link, regularisation, gradient, direction)
        direction *= lengths[:, None, None]
        batch.weights[:] += direction
    found[batch.places] = batch.weights
    return found


def _directions(
    batch: _Batch, link: Link, regularisation: float, gradient: np.ndarray, squared: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Newton directions (T, C, m) by conjugate gradients in the precision of `rows`; zero for the converged.

    The relative residual sqrt|g / g_0| makes the Newton steps converge superlinearly. Gradients are scaled to
    norm 1, the middle of the range of single precision.
    """
    precision = rows.dtype.type
    lam = precision(regularisation)
    norms = np.sqrt(np.where(batch.live, squared, 1.0))[:, None, None]
    goal = np.clip(np.sqrt(squared / batch.first), _TIGHTEST**2, _LOOSEST**2).astype(precision)
    curvature = link.curvature(batch.residuals + batch.members, batch.counts[:, None, None])
    curvature = tuple(values.astype(precision) for values in curvature)
    residual = (gradient / -norms).astype(precision)
    places, live = np.arange(len(rows)), batch.live
    found, x, search = np.zeros_like(residual), np.zeros_like(residual), residual.copy()
    size = dots(residual, residual)
    for _ in range(_CONJUGATE_STEPS):
        curved = np.matmul(search, rows.transpose(0, 2, 1))
        link.curve(curvature, curved, out=curved)
        image = np.matmul(curved, rows)
        scratch = search * lam
        image += scratch
        length = np.zeros_like(size)
        np.divide(size, dots(search, image), out=length, where=live)
        length = length[:, None, None]
        x += np.multiply(search, length, out=scratch)
        residual -= np.multiply(image, length, out=image)
        previous, size = size, dots(residual, residual)
        live = live & (size > goal)
        if np.count_nonzero(live) <= _LIVE_SHARE * len(live):
            found[places[~live]] = x[~live]
            kept = np.flatnonzero(live)
            if not len(kept):
                return found * norms
            curvature = _take(kept, *curvature)
            places, rows, search, x, residual, size, previous, goal, live = _take(
                kept, places, rows, search, x, residual, size, previous, goal, live
            )
        search *= (size / previous)[:, None, None]
        search += residual
    found[places] = x
    return found * norms


def _search(
    batch: _Batch, link: Link, regularisation: float, gradient: np.ndarray, direction: np.ndarray
) -> np.ndarray:
    """Step lengths (T,) at which the slope of the risk has halved; moves the scores and residuals there.

    The risk is convex along a direction, so the root of its slope lies between a length where it falls and one
    where it rises. Looking for that root, not for a smaller risk, is immune to rounding near the minimum, and
    lengths above 1 save steps while the weights of separable rows still grow.
    """
    lengths = np.zeros(len(direction))
    open_ = np.flatnonzero(batch.live)
    d_weights = direction[open_]
    d_scores = np.matmul(d_weights, batch.rows[open_].transpose(0, 2, 1))
    origin, members, counts = batch.scores[open_], batch.members[open_], batch.counts[open_]
    linear = regularisation * dots(d_weights, batch.weights[open_])
    quadratic = regularisation * dots(d_weights, d_weights)
    bound = _SLOPE_REDUCTION * np.abs(dots(d_weights, gradient[open_]))
    t, low, high = np.ones(len(open_)), np.zeros(len(open_)), np.full(len(open_), np.inf)
    for _ in range(_TRIALS):
        scores = d_scores * t[:, None, None]
        scores += origin
        p = link.probabilities(scores)
        residuals = p - members
        slope = dots(residuals, d_scores) / counts + linear + t * quadratic
        refused = np.abs(slope) > bound
        done = np.flatnonzero(~refused)
        moved = open_[done]
        lengths[moved], batch.scores[moved], batch.residuals[moved] = t[done], scores[done], residuals[done]
        if not refused.any():
            break
        again = np.flatnonzero(refused)
        open_, d_scores, origin, members, counts, linear, quadratic, bound, t, low, high, p, slope = _take(
            again, open_, d_scores, origin, members, counts, linear, quadratic, bound, t, low, high, p, slope
        )
        curved = np.empty_like(d_scores)
        link.curve(link.curvature(p, counts[:, None, None]), d_scores, out=curved)
        low, high = np.where(slope < 0, t, low), np.where(slope > 0, t, high)
        newton = t - slope / (dots(curved, d_scores) + quadratic)
        middle = (low + np.minimum(high, 4 * low + 1)) / 2
        t = np.minimum(np.where((low < newton) & (newton < high), newton, middle), 4 * t)
    return lengths


def _take(parties: np.ndarray, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(values[parties] for values in arrays)


def dots(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Inner products (T,) of the items of two contiguous arrays (T, C, m)."""
    return np.vecdot(u.reshape(len(u), -1), v.reshape(len(v), -1))
