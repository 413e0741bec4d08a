"""Logistic classifiers of many parties: trained and evaluated in one batch.

The bits of scores and votes depend on the party's own numbers only. The score of a row x under weights w is defined as
one sum in float64, ((w_1 x_1 + w_2 x_2) + w_3 x_3) + ..., with every operation rounded by itself. The weights w are
divided by a power of two (`normalised`).

Matrix products are much faster but round in an order that depends on the shape of the block. That shape depends on the
parties that share a cohort. The products therefore only find the votes that no rounding can change
(`rounding_bound`). The defining sum settles the few others, exact ties among them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from parties.party_data.cohort import Cohort, Held
from parties.party_data.isolation import ConstantGroup, Group, jointly, vote_type
from parties.training.batched import attainable_tolerances, fit_many
from parties.training.classifiers import GRADIENT_TOLERANCE

_TILE_SCORES = 1 << 16  # float64 scores that stay in cache


@dataclass(frozen=True, eq=False)
class LinearGroup:
    """P parties that have each seen the s >= 2 classes `seen` (P, s), ascending, of `classes`.

    `weights` is (P, d) for s = 2 (binary logistic: a score above 0 means the second class), (P, s, d) for more.
    """

    parties: np.ndarray
    seen: np.ndarray
    weights: np.ndarray
    classes: int

    gives_probabilities: ClassVar[bool] = True

    @property
    def _stacked(self) -> np.ndarray:
        return self.weights if self.weights.ndim == 3 else self.weights[:, None, :]

    def part(self, chosen: np.ndarray) -> "LinearGroup":
        """Some of the parties (`Group.part`)."""
        return replace(self, parties=self.parties[chosen], seen=self.seen[chosen], weights=self.weights[chosen])

    @property
    def class_weights(self) -> np.ndarray:
        """Weights (P, s, d), a row per class seen: those of two classes are halves of one vector, either way."""
        return self.weights if self.weights.ndim == 3 else np.stack([-self.weights / 2, self.weights / 2], axis=1)

    def votes(self, rows: np.ndarray) -> np.ndarray:
        """The class of the largest score (`Group.votes`)."""
        out = np.empty((len(self.parties), len(rows)), dtype=vote_type(self.classes))
        votes(self._stacked, self.seen, rows, out)
        return out

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Softmax of the scores over the seen classes, the logistic function for two (`Group.probabilities`)."""
        weights, exponents = normalised(self._stacked)
        everyone = np.arange(len(self.parties))[:, None]
        out = np.zeros((len(everyone), len(rows), self.classes))
        step = max(1, _TILE_SCORES // len(everyone))
        for start in range(0, len(rows), step):
            some = np.arange(start, min(start + step, len(rows)))
            found = np.ldexp(scores_in_order(weights, rows, everyone, some), exponents[:, None])
            if len(found) == 1:
                found = np.concatenate([np.zeros_like(found), found])
            found -= found.max(axis=0)
            np.exp(found, out=found)
            total = found[0].copy()
            for share in found[1:]:
                total += share
            for share, label in zip(found, self.seen.T, strict=True):
                out[everyone, some, label[:, None]] = share / total
        return out


def train(
    cohort: Cohort, loaded: Held, classes: int, regularisation: float, over: str = "seen"
) -> tuple[list[Group], dict[int, str]]:
    """Regularised logistic regressions of the loaded parties, grouped by how many classes they are trained over.

    `over` is "seen" or "declared", which is all classes for every party. Returns the groups, and why the remaining
    parties have no classifier.
    """
    groups: list[Group] = []
    failures: dict[int, str] = {}
    everyone = np.tile(np.arange(classes), (len(loaded.parties), 1))
    parts = [(everyone, loaded)] if over == "declared" and len(everyone) else _by_seen_classes(loaded, classes)
    for seen, part in parts:
        size = seen.shape[1]
        if size == 1:
            groups.append(ConstantGroup(part.parties, seen[:, 0], classes))
            continue

        def fit_some(positions: np.ndarray, part: Held = part, size: int = size) -> np.ndarray:
            return fit(part.part(positions), size, regularisation, GRADIENT_TOLERANCE)

        fitted, failed = jointly(cohort, part.parties, fit_some)
        groups += [LinearGroup(part.parties[at], seen[at], weights, classes) for at, weights in fitted]
        failures |= failed
    return groups, failures


def _by_seen_classes(loaded: Held, classes: int) -> Iterator[tuple[np.ndarray, Held]]:
    """The seen classes (P, s) and the holdings, relabelled to 0..s-1, of the parties that have seen s classes."""
    owners = loaded.owners
    present = np.zeros((len(loaded.parties), classes), dtype=bool)
    present[owners, loaded.labels] = True
    codes = (np.cumsum(present, axis=1) - 1)[owners, loaded.labels]
    relabelled = Held(loaded.parties, loaded.rows, codes, loaded.counts)
    sizes = present.sum(axis=1)
    for size in np.unique(sizes):
        chosen = sizes == size
        yield np.nonzero(present[chosen])[1].reshape(-1, size), relabelled.part(chosen)


def fit(part: Held, classes: int, regularisation: float, tolerance: float) -> np.ndarray:
    """Minimisers (P, d) of two classes, weights (P, C, d) of more; each party's bits are its own.

    Gradients are within the tolerance, or what double precision can certify where a party's rows are long.
    """
    # Each party's tolerance comes from its own rows: it must not depend on who shares the batch.
    tolerances = attainable_tolerances(tolerance, part.rows, part.counts, regularisation)
    return fit_many(part.rows, part.labels, part.counts, classes, regularisation, tolerances)


_UNIT = 2.0**-24  # largest relative rounding error of one float32 operation
_SAFE_NORMS = (2.0**-400, 2.0**400)  # their squares neither overflow nor vanish
_TILE_PLANES = 256  # weight vectors in one product
_UNPACKED = 1_000_000  # multiplications up to which OpenBLAS packs no factor
_SCORES_PER_TILE = 1 << 17  # scores that stay in cache
_NARROWEST_TILE = 128  # rows; below it the calls outweigh the packing
_CONVERTED_ROWS = 4096  # rows that are brought to float32 at a time
_MOST_DOUBTS = 1 << 16  # undecided votes that are collected before they are settled


def normalised(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (P, k, d) over a power of two per party, so that its largest norm over k lies in [1/2, 1].

    Returns the quotients and the exponents (P,). Exact, but for entries 2^-1000 times smaller than the norm.

    Examples:
        >>> normalised(np.array([[[3.0, 4.0]]]))
        (array([[[0.375, 0.5  ]]]), array([3], dtype=int32))
    """
    first = np.frexp(np.abs(weights).max(axis=(1, 2)))[1]
    near_one = np.ldexp(weights, -first[:, None, None])
    second = np.frexp(np.linalg.norm(near_one, axis=2).max(axis=1))[1]
    return np.ldexp(near_one, -second[:, None, None]), first + second


def scores_in_order(weights: np.ndarray, rows: np.ndarray, party: np.ndarray, row: np.ndarray) -> np.ndarray:
    """The defining sums of weights (P, k, d) on rows (N, d) at index arrays `party` and `row` that broadcast: (k, ...).

    Equal bits on every processor, whatever else is computed along with them.
    """
    total = np.zeros(())
    for column in range(rows.shape[1]):
        term = np.moveaxis(weights[party, :, column], -1, 0) * rows[row, column]
        total = term if column == 0 else np.add(total, term, out=total)
    return total


def rounding_bound(width: int) -> np.float32:
    """How far a float32 score of `width` products may lie from the defining sum, when |w| <= 1 and |x| <= 1.

    A sum of d products in any order, fused or not, errs by at most g(d) |w| |x| with g(n) = n u / (1 - n u), u = 2^-24
    (Higham 2002, Sect. 3.1); rounding w and x to float32 first makes that g(d + 2). The float64 sum, the norms and what
    underflows stay below 3 u together for d < 2^20; beyond, nothing is decided in float32.
    """
    steps = (width + 5) * _UNIT
    return np.float32(np.nextafter(np.float32(steps / (1 - steps) if width < 1 << 20 else np.inf), np.float32(np.inf)))


def votes(weights: np.ndarray, seen: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Write to `out` (P, N) the class with the largest score among those that each party has seen.

    Weights are (P, s, d), one vector per class in `seen` (P, s), or (P, 1, d) for s = 2: then a score above 0 means
    the second class. Rows are float64 (N, d). Ties go to the first class in `seen`.
    """
    exact, _ = normalised(weights)
    parties, planes, width = exact.shape
    bound = rounding_bound(width)
    decide = _decide if planes > 1 else _decide_sign if (seen == (0, 1)).all() else _decide_binary
    doubts = _Doubts(exact, seen, rows, out)
    codes = seen.astype(out.dtype)
    blocks = []
    for first in range(0, parties, together := max(1, _TILE_PLANES // planes)):
        some = slice(first, min(first + together, parties))
        stacked = exact[some].astype(np.float32).transpose(1, 0, 2)
        blocks.append((some, stacked.reshape(-1, width), codes[some]))
    vectors = len(blocks[0][1])
    step, fitting = _UNPACKED // (vectors * width), max(1, _SCORES_PER_TILE // vectors)
    packed = step < _NARROWEST_TILE
    step = fitting if packed else min(step, fitting)
    for start in range(0, len(rows), chunk := step * max(1, _CONVERTED_ROWS // step)):
        columns = _single(rows[start : start + chunk]).T
        columns = columns if packed else np.ascontiguousarray(columns)  # packing transposes on the way
        for some, stacked, labels in blocks:
            for offset in range(0, columns.shape[1], step):
                scores = stacked @ columns[:, offset : offset + step]
                cast = out[some, start + offset : start + offset + scores.shape[1]]
                decided = decide(scores.reshape(planes, *cast.shape), bound, labels, cast)
                if not decided.all():
                    doubts.add(some.start, start + offset, decided)
    doubts.settle()


def _single(rows: np.ndarray) -> np.ndarray:
    """Rows (n, d) in float32, each over a power of two if need be, so that its norm is at most 1 + 2^-20.

    NaN, which decides nothing, for zero rows and extreme numbers.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("nd,nd->n", rows, rows))
        safe = (norms > _SAFE_NORMS[0]) & (norms < _SAFE_NORMS[1])
        exponents = np.frexp(np.where(safe, norms, 1.0) * (1 - 2.0**-20))[1]
        if exponents.any() or not safe.all():
            rows = rows * np.where(safe, np.ldexp(1.0, -exponents), np.nan)[:, None]
        return rows.astype(np.float32)


def _decide_sign(scores: np.ndarray, bound: np.float32, seen: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Vote 1 for scores (1, p, n) above 0; returns where (p, n) their sign is beyond doubt."""
    positive, negative = scores[0] > bound, scores[0] < -bound
    out[:] = positive
    decided: np.ndarray = np.bitwise_or(positive, negative, out=negative)
    return decided


def _decide_binary(scores: np.ndarray, bound: np.float32, seen: np.ndarray, out: np.ndarray) -> np.ndarray:
    """`_decide_sign` with the classes that each party has seen (p, 2) in place of 0 and 1."""
    positive = np.empty(out.shape, dtype=out.dtype)
    decided = _decide_sign(scores, bound, seen, positive)
    np.add(positive * (seen[:, 1:] - seen[:, :1]), seen[:, :1], out=out)
    return decided


def _decide(scores: np.ndarray, bound: np.float32, seen: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Vote by the largest of scores (s, p, n); returns where (p, n) no other comes near it."""
    nearest = scores.max(axis=0)
    nearest -= 3 * bound  # one for each of two scores, and one for the rounding of this difference
    rivals = np.zeros(nearest.shape, dtype=np.min_scalar_type(len(scores)))
    winner = np.zeros(nearest.shape, dtype=out.dtype)
    for score, label in zip(scores, seen.T, strict=True):
        near = score >= nearest
        rivals += near
        winner += near * label[:, None]
    out[:] = winner
    return np.asarray(rivals == 1)


class _Doubts:
    """Votes that float32 cannot decide, settled many at a time by the defining sums."""

    def __init__(self, weights: np.ndarray, seen: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
        self._weights, self._seen, self._rows, self._out = weights, seen, rows, out
        self._pairs: list[tuple[np.ndarray, np.ndarray]] = []
        self._count = 0

    def add(self, first_party: int, first_row: int, decided: np.ndarray) -> None:
        """Take on the undecided votes of the tile (p, n) that starts at this party and row."""
        doubtful = np.flatnonzero(~decided[np.arange(len(decided)), decided.argmin(axis=1)])
        party, row = np.nonzero(~decided[doubtful])
        if 8 * len(party) > decided.size:
            everyone, everything = (np.arange(size) for size in decided.shape)
            self._settle(first_party + everyone[:, None], first_row + everything[None, :])
            return
        self._pairs.append((first_party + doubtful[party], first_row + row))
        self._count += len(party)
        if self._count > _MOST_DOUBTS:
            self.settle()

    def settle(self) -> None:
        """Decide what has been collected."""
        if self._pairs:
            self._settle(*(np.concatenate(indices) for indices in zip(*self._pairs, strict=True)))
        self._pairs, self._count = [], 0

    def _settle(self, party: np.ndarray, row: np.ndarray) -> None:
        scores = scores_in_order(self._weights, self._rows, party, row)
        choice = (scores[0] > 0).astype(np.intp) if len(scores) == 1 else scores.argmax(axis=0)
        self._out[party, row] = self._seen[party, choice]
