"""Certified local logistic regressions of many parties at once.

Parties with about the same number of rows are solved together, in tiles that stay in cache; the weights of a
party have the same bits whoever shares its tile. Every party's gradient is checked at the weights returned, and
the party that misses its tolerance is solved again by itself, by `federation.numerics.erm`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from federation.contract.errors import FederationError, InputError
from federation.numerics.erm import check_tolerance, fit_labels, gradient_floor
from federation.numerics.label_losses import Logistic, Softmax, check_labels, check_regularisation
from federation.numerics.rows import Floats, Integers
from parties.training.elimination import minimise_small, small
from parties.training.truncated_newton import dots, minimise_many

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
