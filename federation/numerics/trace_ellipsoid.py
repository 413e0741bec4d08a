"""The ellipsoid of least trace around given rows: the shape of the cheapest noise that hides any one of them.

    minimise tr C  subject to  z' C^{-1} z <= 1 for every row z.

The Lagrange dual is (max over weights p on the simplex of tr M(p)^{1/2})², M(p) = sum_i p_i z_i z_i', and any p gives
the feasible C = g M^{1/2}, g = max_i z_i' M^{-1/2} z_i, so that g / tr M^{1/2} >= 1 certifies how far it is from the
optimum (the problem is that of the optimal factorisation of Edmonds, Nikolov, Ullman 2020, for one query a row; the
weights are an optimal design in the sense of Kiefer 1974 for the criterion tr M^{1/2}).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from federation.numerics.arrays import Floats

BLOCK = 2**15  # rows at a time: a copy of so many is all that is ever made
_ALL = 4096  # rows that are kept in memory and weighted directly; of more, only those that matter
_STEPS = 400  # multiplicative steps between two passes over all rows
_PASSES = 40
_SPREAD = 0.25  # part of the tolerance that goes into a little weight for every row, which keeps M regular

Rows = Callable[[], Iterator[Floats]]  # the same blocks of rows, each (b, r), whenever it is called


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """C = factor factor', (r, r); no feasible one has a trace below `lower_bound` = trace / (1 + gap)."""

    factor: Floats
    trace: float
    lower_bound: float


def smallest_trace(rows: Rows, moments: Floats, tolerance: float = 1e-2) -> Ellipsoid:
    """C with z' C^{-1} z <= 1 (up to rounding) for all rows and a trace within `tolerance` of the least one, relative.

    `rows()` iterates over blocks (b, r), n >= 1 rows in all. `moments` (r, r) is their sum of z z', or near it: it must
    be positive definite, and a small multiple of it keeps C so. With many rows the weights live on a few of them: each
    pass over all adds those that stick out farthest. Where passes run out first, the bounds say what was reached.

    Examples:
        >>> rows = np.array([[3.0, 0.0], [0.0, 1.0]])
        >>> found = smallest_trace(lambda: iter([rows]), rows.T @ rows)
        >>> (found.factor @ found.factor.T).round(2)  # 9 in the first direction only
        array([[9.  , 0.  ],
               [0.  , 1.01]])
        >>> round(found.lower_bound, 2), round(found.trace, 2)
        (10.0, 10.01)
    """
    r = len(moments)
    chosen, count = _first(rows, 4 * r)
    weights = np.square(chosen).sum(axis=1)
    weights /= weights.sum()
    even = moments / count
    for _ in range(_PASSES):
        weights = _weigh(chosen, weights, even, tolerance)
        values, vectors = _spectrum(chosen, weights, even, tolerance)
        whiten = vectors * values**-0.25
        trace = np.sqrt(values).sum()
        largest, outside = _farthest(rows, whiten, (1 + tolerance / 2) * trace, 4 * r)
        if largest <= (1 + tolerance) * trace:
            break
        kept = weights > 1e-9 * weights.max()
        share = 0.1 / (len(outside) + 1)
        chosen = np.concatenate([chosen[kept], outside])
        weights = np.concatenate([weights[kept] * (1 - share * len(outside)), np.full(len(outside), share)])
    factor = vectors * (values**0.25 * np.sqrt(largest))
    alone = np.linalg.eigvalsh((chosen.T * weights) @ chosen)  # a bound from weights on rows and nothing else
    return Ellipsoid(factor, float(largest * trace), float(np.sqrt(np.maximum(alone, 0.0)).sum() ** 2))


def _weigh(chosen: Floats, weights: Floats, even: Floats, tolerance: float) -> Floats:
    """Weights on the chosen rows that nearly maximise tr M^{1/2}.

    p_i becomes proportional to p_i (z_i' M^{-1/2} z_i)^2: for orthogonal rows one step is the solution. Where it should
    overshoot, the exponent 1, which never lowers the maximum (Yu 2010), takes its place.
    """
    power, best, last = 2.0, weights, -np.inf
    for _ in range(_STEPS):
        values, vectors = _spectrum(chosen, weights, even, tolerance)
        reached = np.sqrt(values).sum()
        if reached < last:
            power, weights = 1.0, best
            values, vectors = _spectrum(chosen, weights, even, tolerance)
            reached = np.sqrt(values).sum()
        best, last = weights, reached
        distance = np.square(chosen @ (vectors * values**-0.25)).sum(axis=1)
        if distance.max() <= (1 + tolerance / 2) * reached:
            break
        weights = weights * (distance / reached) ** power
        weights /= weights.sum()
    return best


def _spectrum(chosen: Floats, weights: Floats, even: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of M, to which all rows together contribute a small fixed share."""
    spread = _SPREAD * tolerance
    values, vectors = np.linalg.eigh((1 - spread) * (chosen.T * weights) @ chosen + spread * even)
    return np.maximum(values, np.finfo(float).tiny), vectors


def _first(rows: Rows, wanted: int) -> tuple[Floats, int]:
    """All rows where they are few, else the longest and some at regular distances; and how many there are."""
    count = sum(len(block) for block in rows())
    if count <= _ALL:
        return np.concatenate(list(rows())), count
    every = max(1, count // wanted)
    regular, start = [], 0
    for block in rows():
        regular.append(block[-start % every :: every])
        start += len(block)
    identity = np.eye(regular[0].shape[1])
    longest = _farthest(rows, identity, 0.0, wanted)[1]
    return np.concatenate([*regular, longest]), count


def _farthest(rows: Rows, whiten: Floats, least: float, most: int) -> tuple[float, Floats]:
    """The largest |whiten' z|² of all rows, and the rows, `most` at most, where it is largest and above `least`."""
    largest, kept, lengths = 0.0, np.empty((0, len(whiten))), np.empty(0)
    for block in rows():
        length = np.square(block @ whiten).sum(axis=1)
        largest = max(largest, float(length.max(initial=0.0)))
        above = np.flatnonzero(length > least)
        kept = np.concatenate([kept, block[above]])
        lengths = np.concatenate([lengths, length[above]])
        if len(lengths) > most:
            top = np.argpartition(lengths, -most)[-most:]
            kept, lengths = kept[top], lengths[top]
    return largest, kept
