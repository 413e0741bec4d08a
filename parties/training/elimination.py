"""Newton's method for many small regularised log-loss risks of two classes at once, by elimination.

The parties are the last axis of every array. Each operation is therefore one of numpy's on thousands of numbers,
however few rows and columns a party has. Sums run over the other axes, in their order. A party's result thus has the
same bits in every batch of two or more, and a batch of one is made two.

`further` searches the step lengths, for the Newton methods of this module and of `parties.training.batched`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from federation.numerics.label_losses import Logistic
from federation.numerics.rows import Floats, Integers

Array = NDArray[Any]  # of numbers, or of places or marks of parties
_LINK = Logistic()
_MOST_UNKNOWNS, _MOST_NUMBERS = 12, 256  # up to which elimination is faster than conjugate gradients


class _Batch(NamedTuple):
    """The parties still worked on, T of them."""

    rows: Array  # (n, m, T), or inner products of rows (n, n, T)
    members: Array  # (n, T)
    weights: Array  # (m, T), or coefficients of the rows (n, T)
    scores: Array  # (n, T)
    residuals: Array  # (n, T) probabilities less memberships
    counts: Array  # (T,)
    targets: Array  # (T,)
    places: Array  # (T,) in the result
    live: Array  # (T,) whether not yet converged


def small(length: int, unknowns: int) -> bool:
    """Whether risks of so many rows, (T, n, m) with zeros or their inner products, are minimised faster here.

    Examples:
        >>> small(5, 5), small(24, 10), small(13, 13), small(100, 11)
        (True, True, False, False)
    """
    return unknowns <= _MOST_UNKNOWNS and length * unknowns <= _MOST_NUMBERS


def minimise_small(
    rows: Floats, members: Floats, counts: Integers, regularisation: float, targets: Floats, gram: bool = False
) -> Floats:
    """Minimisers (T, m) of (1/n) sum_i log-loss_i + lam/2 |w|^2 for T parties.

    Arguments as in `parties.training.batched.minimise_many`, but for the memberships (T, n) of the second of
    two classes. A party that misses its target in 60 steps, or whose equations rounding has left without a pivot, is
    returned as it stands: the caller checks the gradient.

    Examples:
        >>> rows, ones = np.array([[[1.0], [-1.0]], [[2.0], [-1.0]]]), np.array([[1.0, 0.0], [1.0, 0.0]])
        >>> minimise_small(rows, ones, np.array([2, 2]), 0.1, np.full(2, 1e-10)).ravel().round(4)
        array([1.6335, 1.4578])
        >>> products = rows @ rows.transpose(0, 2, 1)
        >>> found = minimise_small(products, ones, np.array([2, 2]), 0.1, np.full(2, 1e-10), gram=True)
        >>> (found[:, None] @ rows).ravel().round(4)
        array([1.6335, 1.4578])
    """
    parties, length, width = rows.shape
    found, some = np.zeros((parties, width)), _two_or_more(np.arange(parties))
    turned, members = (np.ascontiguousarray(np.moveaxis(values[some], 0, -1)) for values in (rows, members))
    scores = np.zeros((length, len(some)))
    state = np.zeros((width, len(some))), scores, _LINK.probabilities(scores) - members
    each = counts[some].astype(np.float64), targets[some], some, np.ones(len(some), dtype=bool)
    batch = _Batch(turned, members, *state, *each)
    for _ in range(NEWTON_STEPS):
        gradient = batch.residuals / batch.counts
        gradient = gradient if gram else _sums(batch.rows * gradient[:, None])
        gradient += regularisation * batch.weights
        image = _products(batch.rows, gradient) if gram else gradient
        working = batch.live & (_sums(gradient * image) > batch.targets**2)
        finished = np.flatnonzero(batch.live & ~working)
        if len(finished):  # they go along until the batch is packed
            found[batch.places[finished]] = batch.weights[:, finished].T
            batch = batch._replace(live=working)
            if np.count_nonzero(working) <= LIVE_SHARE * len(working):
                kept = np.flatnonzero(working)
                if not len(kept):
                    return found
                kept = _two_or_more(kept)
                batch = _Batch(*_take(kept, *batch))
                gradient, image = _take(kept, gradient, image)
        batch = _moved(batch, regularisation, gram, gradient, _direction(batch, regularisation, gram, gradient, image))
    found[batch.places[batch.live]] = batch.weights[:, batch.live].T
    return found


def _direction(batch: _Batch, regularisation: float, gram: bool, gradient: Floats, image: Floats) -> Floats:
    """Newton directions (m, T).

    With H the curvatures in the scores, (X'HX + lam) v = -g. For g = X'c with inner products K of the rows and S the
    root of H, that is v = X'b with b = (S y - c) / lam and (S K S + lam) y = S K c.
    """
    rows = batch.rows
    [curvature] = _LINK.curvature(batch.residuals + batch.members, batch.counts)
    width = rows.shape[1]
    equations = np.empty((width + 1, width, len(batch.counts)))
    if gram:
        roots = np.sqrt(curvature)
        np.multiply(rows, roots, out=equations[:-1])
        equations[:-1] *= roots[:, None]
        np.multiply(roots, image, out=equations[-1])
    else:
        curved = rows * curvature[:, None]
        for column in range(width):
            np.add.reduce(curved[:, column:] * rows[:, column, None], axis=0, out=equations[column:-1, column])
        np.negative(gradient, out=equations[-1])
    diagonal = np.arange(width)
    equations[diagonal, diagonal] += regularisation
    found: Floats = _solved(equations)
    if gram:
        found *= roots
        found -= gradient
        found /= regularisation
    return found


def _solved(equations: Floats) -> Floats:
    """Solutions (m, T) of symmetric positive definite systems by Cholesky's method; NaN where a pivot is not positive.

    Of `equations` (m + 1, m, T), which are overwritten, the last row is the right side; what is above the diagonal of
    the others is not read.
    """
    width = equations.shape[1]
    for column in range(width):
        rest = equations[column:, column]
        if column:
            rest -= _products(equations[column:, :column], equations[column, :column])
        rest /= np.sqrt(rest[0])
    found = equations[-1]
    for row in range(width - 1, -1, -1):
        if row < width - 1:
            found[row] -= _sums(equations[row + 1 : -1, row] * found[row + 1 :])
        found[row] /= equations[row, row]
    return np.asarray(found)


def _moved(batch: _Batch, regularisation: float, gram: bool, gradient: Floats, direction: Floats) -> _Batch:
    """The parties after a step along their directions to where the slope of the risk has halved."""
    change = _products(batch.rows, direction)
    image = change if gram else direction
    linear = regularisation * _sums(batch.weights * image)
    quadratic = regularisation * _sums(direction * image)
    bound = SLOPE_REDUCTION * np.abs(_sums(gradient * image))
    lengths, low, high = np.ones(len(bound)), np.zeros(len(bound)), np.full(len(bound), np.inf)
    scores, residuals = batch.scores, batch.residuals
    open_ = np.arange(len(bound))  # parties whose length is still looked for; most find it at once, all together
    for trial in range(TRIALS):
        step, before, members = change, batch.scores, batch.members
        if trial:
            step, before, members = _take(open_, change, batch.scores, batch.members)
        t, counts = lengths[open_], batch.counts[open_]
        tried = step * t
        tried += before
        p = _LINK.probabilities(tried)
        left = p - members
        if trial:
            scores[:, open_], residuals[:, open_] = tried, left
        else:
            scores, residuals = tried, left
        slope = _sums(left * step) / counts + linear[open_] + t * quadratic[open_]
        refused = np.flatnonzero((np.abs(slope) > bound[open_]) & batch.live[open_])
        if not len(refused):
            break
        refused = _two_or_more(refused)
        open_ = open_[refused]
        t, step, p, slope, counts = _take(refused, t, step, p, slope, counts)
        [curvature] = _LINK.curvature(p, counts)
        second = _sums(curvature * step * step) + quadratic[open_]
        lengths[open_], low[open_], high[open_] = further(t, slope, second, low[open_], high[open_])
    else:
        lengths[open_], scores[:, open_], residuals[:, open_] = 0.0, batch.scores[:, open_], batch.residuals[:, open_]
    direction *= lengths
    return batch._replace(weights=batch.weights + direction, scores=scores, residuals=residuals)


def _two_or_more(parties: Integers) -> Integers:
    """The same, a single one twice: numpy sums a single column in another order."""
    return np.repeat(parties, 2) if len(parties) == 1 else parties


def _take(parties: Integers, *arrays: Array) -> tuple[Array, ...]:
    return tuple(np.take(values, parties, axis=-1) for values in arrays)  # an index would change the order in memory


def _sums(values: Floats) -> Floats:
    return np.asarray(np.add.reduce(values, axis=0))


def _products(matrices: Floats, vectors: Floats) -> Floats:
    """Products (n, T) of matrices (n, m, T) and vectors (m, T)."""
    return np.asarray(np.add.reduce(matrices * vectors, axis=1))


NEWTON_STEPS = 60
TRIALS = 20  # of a length
SLOPE_REDUCTION = 0.5
LIVE_SHARE = 0.75  # a batch is packed when no more of it than this still works


def further(
    lengths: Floats, slopes: Floats, curvatures: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats, Floats]:
    """The next lengths (T,) to try after those at which the slopes and second derivatives of the risk are known.

    The search is for the length at which the slope has halved. The risk is convex along a direction, so the root of its
    slope lies between a length where it falls and one where it rises. Looking for that root, not for a smaller risk, is
    immune to rounding near the minimum. Lengths above 1 save steps while the weights of separable rows still grow.

    The root lies between `low` and `high` (T,), which come back nearer to it. A Newton step on the slope is taken where
    it stays between them, half the way elsewhere, and never more than four times the length.

    Examples:
        >>> slopes, curvatures, nowhere = np.array([-1.0, 0.2]), np.array([0.4, 0.4]), np.full(2, np.inf)
        >>> further(np.ones(2), slopes, curvatures, np.zeros(2), nowhere)
        (array([3.5, 0.5]), array([1., 0.]), array([inf,  1.]))
    """
    below, above = np.where(slopes < 0, lengths, low), np.where(slopes > 0, lengths, high)
    newton = lengths - slopes / curvatures
    middle = (below + np.minimum(above, 4 * below + 1)) / 2
    tried = np.minimum(np.where((below < newton) & (newton < above), newton, middle), 4 * lengths)
    return tried, below, above
