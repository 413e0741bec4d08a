"""Weighted sums of the rows and labels of disjoint bags, in one pass over rows that may lie in a file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federation.contract.errors import InputError
from federation.numerics.rows import Floats, Integers, keep_freed_memory

_TILE_ENTRIES = 1 << 18  # of float64: 2 MiB
_LEAST_TILE = 256


@dataclass(frozen=True, eq=False)
class Sketch:
    """Weighted sums of m bags: `rows` (m, d) and `labels` (m,), float64. Not private by itself."""

    rows: Floats
    labels: Floats


def sketch(rows: Floats, labels: Floats, bags: Integers, weights: Floats) -> Sketch:
    """sum_i w_i x_i and sum_i w_i y_i over every bag, with the same weights (Brahmbhatt et al. 2023, Figure 1).

    Each sum adds its terms one by one in the order of the rows, in double precision: its bits depend on nothing else,
    so a memory map gives those of an array. A map is read once, and only where there are rows of bags.

    Args:
        rows: (n, d) numbers.
        labels: (n,) numbers.
        bags: row numbers (m, k) from 0 to n - 1, all different.
        weights: (m, k), finite.

    Raises `InputError` for arguments outside these ranges, and for rows or labels in a bag that are not finite.

    Examples:
        >>> rows, labels = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([10.0, 20.0, 30.0, 40.0])
        >>> found = sketch(rows, labels, np.array([[0, 3], [1, 2]]), np.array([[1.0, -1.0], [0.5, 0.5]]))
        >>> found.rows.ravel(), found.labels
        (array([-3. ,  2.5]), array([-30.,  25.]))
    """
    rows = rows if hasattr(rows, "shape") else np.asarray(rows)
    if rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise InputError(f"rows must be numbers on two axes (rows, columns), got shape {rows.shape} of {rows.dtype}")
    labels = np.asarray(labels, dtype=np.float64)
    if labels.shape != (len(rows),):
        raise InputError(f"labels must be one number for each of {len(rows)} rows, got shape {labels.shape}")
    bags, weights = np.asarray(bags), np.asarray(weights, dtype=np.float64)
    place = _places(len(rows), bags, weights)
    keep_freed_memory()
    tile = max(_LEAST_TILE, _TILE_ENTRIES // (rows.shape[1] + 1))
    sums = np.zeros((len(bags), rows.shape[1] + 1))  # labels last
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
        for start in range(0, len(rows), tile):
            chosen = start + np.flatnonzero(place[start : start + tile] >= 0)
            if len(chosen):
                part = chosen if len(chosen) < tile else slice(start, start + tile)
                at = place[chosen]
                _add(sums, rows[part], labels[part], at // bags.shape[1], weights.ravel()[at])
    _require_finite(sums, rows, labels, bags)
    return Sketch(sums[:, :-1].copy(), sums[:, -1].copy())


def sketches(rows: Floats, labels: Floats, bags: Integers, weights: Floats) -> Sketch:
    """The sketches of several draws of bags, (draws, m, k), with the bits of each alone: (draws, m, d) and (draws, m).

    Of few rows many draws are made at a time, as if each had rows of its own. Raises `InputError` as `sketch`.

    Examples:
        >>> rows, labels = np.array([[1.0], [2.0], [3.0]]), np.array([10.0, 20.0, 30.0])
        >>> found = sketches(rows, labels, np.array([[[0, 2]], [[2, 1]]]), np.array([[[1.0, -1.0]], [[0.5, 0.5]]]))
        >>> found.rows.ravel(), found.labels.ravel()
        (array([-2. ,  2.5]), array([-20.,  25.]))
    """
    together = max(1, _TILE_ENTRIES // ((rows.shape[1] + 1) * len(rows)))
    made = []
    for start in range(0, len(bags), together):
        drawn = bags[start : start + together]
        own = np.arange(len(drawn)).reshape(-1, 1, 1) * len(rows)
        copies = (np.tile(rows, (len(drawn), 1)), np.tile(labels, len(drawn))) if len(drawn) > 1 else (rows, labels)
        flat = (drawn + own).reshape(-1, bags.shape[2])
        made.append(sketch(*copies, flat, weights[start : start + together].reshape(flat.shape)))
    shape = bags.shape[:2]
    summed = np.concatenate([one.rows for one in made]).reshape(*shape, rows.shape[1])
    return Sketch(summed, np.concatenate([one.labels for one in made]).reshape(shape))


def label_sums(labels: Floats, bags: Integers, weights: Floats) -> Floats:
    """sum_i w_i y_i over every bag, (m,), for labels (n,): the same bits as those of `sketch`, which says the rest."""
    labels = np.asarray(labels, dtype=np.float64)
    return sketch(np.empty((len(labels), 0)), labels, bags, weights).labels


def _add(sums: Floats, rows: Floats, labels: Floats, owner: Integers, weights: Floats) -> None:
    """Adds weights_i (x_i, y_i) to the sums of bag owner_i, in the order of i.

    The sums so far are rows with weight 1 before them, so that the product adds to them term by term.
    """
    from scipy.sparse import csc_array

    touched, local = np.unique(owner, return_inverse=True)
    before, count = len(touched), len(touched) + len(owner)
    stacked = np.empty((count, sums.shape[1]))
    stacked[:before] = sums[touched]
    stacked[before:, :-1] = rows
    stacked[before:, -1] = labels
    factors = np.concatenate([np.ones(before), weights])
    targets = np.concatenate([np.arange(before), local])
    # One entry a column, and products of compressed columns run through the columns in order.
    spread = csc_array((factors, targets, np.arange(count + 1)), shape=(before, count))
    sums[touched] = spread @ stacked


def _places(rows: int, bags: Integers, weights: Floats) -> Integers:
    """Where each row is among the flattened bags, (n,), -1 for rows in none."""
    if bags.ndim != 2 or 0 in bags.shape or bags.dtype.kind not in "iu":
        raise InputError(f"bags must be row numbers of shape (bags, rows), got shape {bags.shape} of {bags.dtype}")
    if weights.shape != bags.shape or not np.isfinite(weights).all():
        raise InputError(f"weights must be finite and of the bags' shape {bags.shape}, got shape {weights.shape}")
    if bags.min() < 0 or bags.max() >= rows:
        raise InputError(f"bags must hold row numbers from 0 to {rows - 1}, got {bags.min()} to {bags.max()}")
    place: Integers = np.full(rows, -1, dtype=np.int32 if bags.size < 2**31 else np.int64)
    place[bags.ravel()] = np.arange(bags.size, dtype=place.dtype)
    if np.count_nonzero(place >= 0) < bags.size:
        raise InputError("bags must be disjoint: a row is in two of them, or twice in one; draw bags by disjoint_bags")
    return place


def _require_finite(sums: Floats, rows: Floats, labels: Floats, bags: Integers) -> None:
    """Sums are finite only when all their terms are, even with weights of 0."""
    bad = np.flatnonzero(~np.isfinite(sums).all(axis=1))
    if not len(bad):
        return
    members = np.sort(bags[bad[0]])
    finite = np.isfinite(np.asarray(rows[members], np.float64)).all(axis=1) & np.isfinite(labels[members])
    if finite.all():
        raise InputError(f"the sums of bag {bad[0]} leave the range of double precision; scale rows and labels down")
    raise InputError(f"rows and labels must be finite: row {members[~finite][0]} is not; remove or replace such values")
