"""Certified local logistic regressions of many parties at once.

The solver is a truncated Newton method for many small regularised log-loss risks. Parties with about the same number of
rows are solved together, in tiles that stay in cache. Every party's gradient is checked at the weights returned. A
party that misses its tolerance is solved again by itself, by `federation.numerics.erm`.

The weights of a party have the same bits in every tile and in every batch, whichever parties share them. Every
quantity of a party is computed from its own numbers, by operations that treat the parties of a batch one by one. A
party changes no more once it has converged.

The directions are found in single precision, where arithmetic is twice as fast. Gradients and scores, which decide when
a party has converged, are double precision.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import FederationError, InputError
from federation.numerics.erm import check_tolerance, fit_labels, gradient_floor
from federation.numerics.label_losses import Link, Logistic, Softmax, check_labels, check_regularisation
from federation.numerics.rows import Floats, Integers
from parties.training.elimination import (
    LIVE_SHARE,
    NEWTON_STEPS,
    SLOPE_REDUCTION,
    TRIALS,
    further,
    minimise_small,
    small,
)

_TILE_ENTRIES = 1 << 20
_LARGEST_TILE = 2048
_EXACT_BITS = 3  # numbers of rows above 2^3 are rounded up by at most 1/4 to share tiles


def fit_many(
    rows: Floats,
    labels: Integers,
    counts: Integers,
    classes: int,
    regularisation: float,
    gradient_tolerance: float | Floats,
) -> Floats:
    """Logistic (2 classes) or softmax weights of P parties, shape (P, d) or (P, C, d), float64.

    Each party's weights minimise (1/n) sum_i log-loss_i + lam/2 |w|^2 over its own n rows, without intercept:
    the risk of `federation.numerics.label_losses` for hard labels.

    Args:
        rows: the rows of all parties one after another, shape (R, d), finite.
        labels: one integer in 0..C-1 per row, shape (R,); a party need not have every class.
        counts: rows of each party, shape (P,), integers of at least 1 that add up to R.
        classes: C >= 2; with 2, a score above 0 means class 1, with more, the largest score wins.
        regularisation: lam > 0.
        gradient_tolerance: bound on the norm of each party's gradient, one number or one per party (P,), at
            least `gradient_floor(lam, the party's largest row norm)`; see `attainable_tolerances`.

    Raises `InputError` for arguments outside these ranges, and `FederationError` for a party whose risk cannot
    be minimised to its tolerance because of rounding. Both name the party; the other parties can be solved
    without it, to the same bits.

    Examples:
        >>> rows, labels = np.array([[1.0], [-1.0], [2.0], [-1.0], [-3.0]]), np.array([1, 0, 1, 0, 0])
        >>> fit_many(rows, labels, np.array([2, 3]), 2, regularisation=0.1, gradient_tolerance=1e-10).round(4)
        array([[1.6335],
               [1.3247]])
    """
    rows, labels, counts = np.asarray(rows), np.asarray(labels), np.asarray(counts)
    _check(rows, labels, counts, classes, regularisation)
    counts = counts.astype(np.int64)
    tolerances = np.asarray(gradient_tolerance, dtype=np.float64)
    if tolerances.shape not in ((), counts.shape):
        raise InputError(f"gradient_tolerance must be one number or one per party, got shape {tolerances.shape}")
    tolerances = np.broadcast_to(tolerances, counts.shape)
    codes = np.arange(1, 2) if classes == 2 else np.arange(classes)
    weights = np.empty((len(counts), len(codes), rows.shape[1]))
    for tile in _tiles(rows, labels, counts, codes):
        _check_tile(tile, regularisation, tolerances)
        weights[tile.parties] = _fit(tile, regularisation, tolerances[tile.parties])
    return weights[:, 0] if classes == 2 else weights


def attainable_tolerances(wanted: float, rows: Floats, counts: Integers, regularisation: float) -> Floats:
    """`wanted` per party (P,), or twice what double precision can certify for its rows where that is larger.

    For minimisers that no guarantee rests on, as `federation.numerics.erm.attainable_tolerance`; arguments as
    in `fit_many`.
    """
    counts = np.asarray(counts)
    if not len(counts):
        return np.empty(0)
    squares = np.maximum.reduceat(np.einsum("nd,nd->n", rows, rows, dtype=np.float64), np.cumsum(counts) - counts)
    if wanted >= 2 * gradient_floor(regularisation, math.sqrt(squares.max())):
        return np.full(len(counts), wanted)
    return np.array([max(wanted, 2 * gradient_floor(regularisation, math.sqrt(square))) for square in squares])


class _Tile(NamedTuple):
    """Parties with about the same number of rows, filled up with rows of zeros."""

    parties: Integers  # (T,) places in the batch
    rows: Floats  # (T, n, d)
    members: Floats  # (T, C, n) zero or one; class 1 only for two classes
    counts: Integers  # (T,)


def _tiles(rows: Floats, labels: Integers, counts: Integers, codes: Integers) -> Iterator[_Tile]:
    starts = np.cumsum(counts) - counts
    lengths = _shared_lengths(counts)
    for length in np.unique(lengths):
        alike = np.flatnonzero(lengths == length)
        entries = length * (min(length, rows.shape[1]) + 10 * len(codes))
        step = int(np.clip(_TILE_ENTRIES // entries, 1, _LARGEST_TILE))
        for first in range(0, len(alike), step):
            parties = alike[first : first + step]
            absent = np.arange(length) >= counts[parties, None]
            places = np.where(absent, 0, starts[parties, None] + np.arange(length))
            tile = np.ascontiguousarray(rows[places], dtype=np.float64)
            tile[absent] = 0.0
            members = (labels[places][:, None] == codes[:, None]) & ~absent[:, None]
            yield _Tile(parties, tile, members.astype(np.float64), counts[parties])


def _shared_lengths(counts: Integers) -> Integers:
    """A function of each count alone: itself up to 8, then rounded up by at most 1/4."""
    doublings = np.maximum(np.frexp(counts - 1.0)[1] - _EXACT_BITS, 0)
    return np.asarray(-(-counts >> doublings) << doublings)


def _fit(tile: _Tile, regularisation: float, tolerances: Floats) -> Floats:
    """Certified weights (T, C, d)."""
    link = Logistic() if tile.members.shape[1] == 1 else Softmax()
    _, length, width = tile.rows.shape
    # The penalty removes every component that no row sees: weights are sums of rows.
    gram = length <= width
    rows = np.matmul(tile.rows, tile.rows.transpose(0, 2, 1)) if gram else tile.rows
    # A computed gradient of half the tolerance leaves the other half for its rounding error.
    certified, targets = tolerances / 2, 0.4 * tolerances
    with np.errstate(all="ignore"):  # what overflows is not certified
        if tile.members.shape[1] == 1 and small(*rows[0].shape):
            weights = minimise_small(rows, tile.members[:, 0], tile.counts, regularisation, targets, gram)[:, None]
        else:
            weights = minimise_many(rows, tile.members, tile.counts, link, regularisation, targets, gram)
        if gram:
            weights = np.matmul(weights, tile.rows)
        weights += 0.0  # one sign of zero
        residuals = link.probabilities(np.matmul(weights, tile.rows.transpose(0, 2, 1))) - tile.members
        gradients = np.matmul(residuals / tile.counts[:, None, None], tile.rows) + regularisation * weights
        met = np.sqrt(dots(gradients, gradients)) <= certified
    for place in np.flatnonzero(~met):
        weights[place] = _fit_alone(tile, int(place), regularisation, float(tolerances[place]))
    return weights


def _fit_alone(tile: _Tile, place: int, regularisation: float, tolerance: float) -> Floats:
    count = tile.counts[place]
    rows, members = tile.rows[place, :count], tile.members[place, :, :count]
    classes = max(2, len(members))
    labels = members.argmax(axis=0) if classes > 2 else members[0].astype(np.intp)
    try:
        return fit_labels(rows, labels, classes, regularisation, tolerance)
    except FederationError as error:
        raise type(error)(f"party {tile.parties[place]} of the batch: {error}") from error


def _check(rows: Floats, labels: Integers, counts: Integers, classes: int, regularisation: float) -> None:
    check_regularisation(regularisation)
    check_labels(rows, labels, classes)
    if rows.shape[1] == 0:
        raise InputError("rows must not be empty")
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or counts.sum() != len(rows) or (counts < 1).any():
        raise InputError(f"counts must be integers of at least 1 that add up to the {len(rows)} rows")
    if len(labels) and (labels.min() < 0 or labels.max() >= classes):
        party = int(np.searchsorted(np.cumsum(counts), np.flatnonzero((labels < 0) | (labels >= classes))[0], "right"))
        raise InputError(f"labels must lie in 0..{classes - 1}; those of party {party} of the batch do not")


def _check_tile(tile: _Tile, regularisation: float, tolerances: Floats) -> None:
    squares = np.einsum("tnd,tnd->tn", tile.rows, tile.rows).max(axis=1)
    wanted = tolerances[tile.parties]
    if math.isfinite(squares.max()) and wanted.max() < math.inf:
        hardest = gradient_floor(regularisation, math.sqrt(squares.max()))
        if wanted.min() >= hardest:
            return
    for party, square, tolerance in zip(tile.parties, squares, wanted, strict=True):
        if not math.isfinite(square):
            raise InputError(f"rows must be finite; drop or impute missing values first (party {party} of the batch)")
        check_tolerance(tolerance, regularisation, math.sqrt(square), f" (party {party} of the batch)")


Array = NDArray[Any]  # of single or double precision, or of places or marks of parties

_SINGLE_STEPS = 20  # directions of later steps are found in double precision
_CONJUGATE_STEPS = 250
_LOOSEST, _TIGHTEST = 0.5, 1e-2  # relative residual of a direction


class _Batch(NamedTuple):
    """The parties still worked on; every array has one entry per party."""

    places: Array  # (T,) in the result
    rows: Array  # (T, n, m), or inner products of rows (T, n, n)
    members: Array  # (T, C, n)
    counts: Array  # (T,)
    targets: Array  # (T,)
    weights: Array  # (T, C, m), or coefficients of the rows (T, C, n)
    scores: Array  # (T, C, n)
    residuals: Array  # (T, C, n) probabilities less memberships
    first: Array  # (T,) squared norm of the first gradient
    live: Array  # (T,) whether not yet converged


class _Problem(NamedTuple):
    """What all parties have in common: `gram` says that vectors are given by their coefficients of the rows."""

    link: Link
    regularisation: float
    gram: bool


def minimise_many(
    rows: Array, members: Array, counts: Array, link: Link, regularisation: float, targets: Array, gram: bool = False
) -> Array:
    """Minimisers (T, C, m) of (1/n) sum_i log-loss_i + lam/2 |w|^2 for T parties.

    Args:
        rows: shape (T, n, m), finite; a row of zeros changes nothing, which makes rows equal in number. With `gram`
            their inner products K (T, n, n) in place of them.
        members: class memberships (T, C, n), zero or one; C = 1 with the logistic link.
        counts: the n of the mean, shape (T,).
        link: logistic or softmax.
        regularisation: lam > 0.
        targets: gradient norms to reach, shape (T,).
        gram: whether vectors are sums a' X of a party's rows with coefficients a, which are returned in place of the
            weights, (T, C, n): products with K in place of X are cheaper where n is below m.

    A party that misses its target in 60 Newton steps is returned as it stands: the caller checks the gradient.

    Examples:
        >>> from federation.numerics.label_losses import Logistic
        >>> rows, ones = np.array([[[1.0], [-1.0]], [[2.0], [-1.0]]]), np.array([[[1.0, 0.0]], [[1.0, 0.0]]])
        >>> found = minimise_many(rows, ones, np.array([2, 2]), Logistic(), 0.1, np.full(2, 1e-10))
        >>> found.ravel().round(4)
        array([1.6335, 1.4578])
        >>> products = rows @ rows.transpose(0, 2, 1)
        >>> found = minimise_many(products, ones, np.array([2, 2]), Logistic(), 0.1, np.full(2, 1e-10), gram=True)
        >>> (found @ rows).ravel().round(4)
        array([1.6335, 1.4578])
    """
    problem = _Problem(link, regularisation, gram)
    weights, scores = np.zeros((*members.shape[:2], rows.shape[2])), np.zeros(members.shape)
    everyone, nowhere = np.ones(len(rows), dtype=bool), link.probabilities(scores) - members
    known = np.arange(len(rows)), rows, members, counts.astype(np.float64), targets
    batch = _Batch(*known, weights, scores, nowhere, np.full(len(rows), np.nan), everyone)
    found, direction_rows = np.zeros_like(weights), rows.astype(np.float32)
    for step in range(NEWTON_STEPS):
        gradient = batch.residuals / batch.counts[:, None, None]
        gradient = gradient if gram else np.matmul(gradient, batch.rows)
        gradient += regularisation * batch.weights
        image = np.matmul(gradient, batch.rows) if gram else gradient
        squared = dots(gradient, image)
        if step == 0:
            batch.first[:] = squared
        elif step == _SINGLE_STEPS:
            direction_rows = batch.rows
        working = batch.live & (squared > batch.targets**2)
        finished = np.flatnonzero(batch.live & ~working)
        if len(finished):  # they go along until the batch is packed
            found[batch.places[finished]] = batch.weights[finished]
            batch.live[:] = working
            if np.count_nonzero(working) <= LIVE_SHARE * len(working):
                kept = np.flatnonzero(working)
                if not len(kept):
                    return found
                batch = _Batch(*_take(kept, *batch))
                gradient, squared, direction_rows = _take(kept, gradient, squared, direction_rows)
        direction = _directions(batch, problem, gradient, squared, direction_rows)
        batch = _moved(batch, problem, gradient, direction)
    found[batch.places[batch.live]] = batch.weights[batch.live]
    return found


def _directions(batch: _Batch, problem: _Problem, gradient: Array, squared: Array, rows: Array) -> Array:
    """Newton directions (T, C, m) by conjugate gradients in the precision of `rows`; zero for the converged.

    The relative residual sqrt|g / g_0| makes the Newton steps converge superlinearly. Gradients are scaled to
    norm 1, the middle of the range of single precision.
    """
    link, gram, precision = problem.link, problem.gram, rows.dtype.type
    lam = precision(problem.regularisation)
    norms = np.sqrt(np.where(batch.live, squared, 1.0))[:, None, None]
    goal = np.clip(np.sqrt(squared / batch.first), _TIGHTEST**2, _LOOSEST**2).astype(precision)
    curvature = link.curvature(batch.residuals + batch.members, batch.counts[:, None, None])
    curvature = tuple(values.astype(precision) for values in curvature)
    residual = (gradient / -norms).astype(precision)
    places, live, going = np.arange(len(rows)), batch.live, len(rows)
    found, x, search = np.zeros(residual.shape, precision), np.zeros(residual.shape, precision), residual.copy()
    scores = np.matmul(search, rows.transpose(0, 2, 1))
    size = dots(residual, scores if gram else residual)
    for _ in range(_CONJUGATE_STEPS):
        curved = np.empty_like(scores)
        link.curve(curvature, scores, out=curved)
        image = curved if gram else np.matmul(curved, rows)
        scratch = search * lam
        image += scratch
        length = (size / dots(image, scores if gram else search))[:, None, None]
        x += np.multiply(search, length, out=scratch)
        residual -= np.multiply(image, length, out=image)
        further = np.matmul(residual, rows.transpose(0, 2, 1))
        previous, size = size, dots(residual, further if gram else residual)
        before, live = live, live & (size > goal)
        if (left := int(np.count_nonzero(live))) < going:  # who has finished goes along until the others are packed
            finished, going = before & ~live, left
            found[places[finished]] = x[finished]
            if going <= LIVE_SHARE * len(live):
                if not going:
                    return found * norms
                kept = np.flatnonzero(live)
                curvature = _take(kept, *curvature)
                places, rows, search, scores, x, residual, further, size, previous, goal, live = _take(
                    kept, places, rows, search, scores, x, residual, further, size, previous, goal, live
                )
        ratio = (size / previous)[:, None, None]
        search *= ratio
        search += residual
        scores *= ratio
        scores += further
    found[places[live]] = x[live]
    return found * norms


def _moved(batch: _Batch, problem: _Problem, gradient: Array, direction: Array) -> _Batch:
    """The parties after a step along their directions to where the slope of the risk has halved."""
    link, lam = problem.link, problem.regularisation
    d_scores = np.matmul(direction, batch.rows.transpose(0, 2, 1))
    image = d_scores if problem.gram else direction
    linear = lam * dots(batch.weights, image)
    quadratic = lam * dots(direction, image)
    bound = SLOPE_REDUCTION * np.abs(dots(gradient, image))
    scores, residuals = np.empty_like(batch.scores), np.empty_like(batch.residuals)
    lengths, low, high = np.ones(len(direction)), np.zeros(len(direction)), np.full(len(direction), np.inf)
    open_: Any = slice(None)  # parties whose length is still looked for; most find it at once, all together
    for _ in range(TRIALS):
        t, step = lengths[open_], d_scores[open_]
        tried = step * t[:, None, None]
        tried += batch.scores[open_]
        p = link.probabilities(tried)
        left = p - batch.members[open_]
        scores[open_], residuals[open_] = tried, left
        slope = dots(left, step) / batch.counts[open_] + linear[open_] + t * quadratic[open_]
        refused = (np.abs(slope) > bound[open_]) & batch.live[open_]
        if not refused.any():
            break
        open_ = np.arange(len(lengths))[open_][refused]
        t, step, p, slope = _take(refused, t, step, p, slope)
        curved = np.empty_like(step)
        link.curve(link.curvature(p, batch.counts[open_, None, None]), step, out=curved)
        second = dots(curved, step) + quadratic[open_]
        lengths[open_], low[open_], high[open_] = further(t, slope, second, low[open_], high[open_])
    else:
        lengths[open_], scores[open_], residuals[open_] = 0.0, batch.scores[open_], batch.residuals[open_]
    direction *= lengths[:, None, None]
    return batch._replace(weights=batch.weights + direction, scores=scores, residuals=residuals)


def _take(parties: Array, *arrays: Array) -> tuple[Array, ...]:
    return tuple(values[parties] for values in arrays)


def dots(u: Array, v: Array) -> Array:
    """Inner products (T,) of the items of two contiguous arrays (T, C, m)."""
    return np.asarray(np.vecdot(u.reshape(len(u), -1), v.reshape(len(v), -1)))
