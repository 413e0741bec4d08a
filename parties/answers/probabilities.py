"""Answers `probabilities`: how probable each party's local classifier finds each class on the auxiliary rows."""

from __future__ import annotations

import numpy as np

from federation.contract.query import Submission
from federation.queries.votes import BALLOT_PARTS, ProbabilitiesQuestion
from parties.holdings.cohort import Cohort
from parties.holdings.groups import Group
from parties.training.training import answered_by_groups

_TILE_ENTRIES = 1 << 12  # probabilities of one party at a time


def answer(cohort: Cohort, question: ProbabilitiesQuestion) -> Submission:
    """Every party's distributions in whole parts, for the aggregator's eyes only (Hamm et al. 2016, Sec. 3.3)."""
    rows, classes, declared = question.rows, question.training.classes, question.fields()["parts"]

    def cast(group: Group) -> dict[str, np.ndarray]:
        parts = np.empty((len(group.parties), len(rows), classes - 1), declared.dtype)
        for tile in row_tiles(len(rows), classes):
            parts[:, tile] = whole_parts(group.probabilities(rows[tile]), BALLOT_PARTS)[..., :-1]
        return {"parts": parts}

    return answered_by_groups(cohort, question, cast)


def row_tiles(rows: int, classes: int, entries: int | None = None) -> list[slice]:
    """Slices of the rows with so many probabilities of a party, by default few; the same whoever shares a group."""
    step = max(1, (_TILE_ENTRIES if entries is None else entries) // classes)
    return [slice(start, start + step) for start in range(0, rows, step)]


def whole_parts(shares: np.ndarray, total: int) -> np.ndarray:
    """Distributions (..., C) as integers that add up to `total` exactly, by largest remainders (Hamilton's method).

    Every class gets the whole parts of total * share; parts that are left go to the largest remainders, one each,
    the smallest index first among equals. Off by less than one part per class.

    Examples:
        >>> whole_parts(np.array([0.5, 0.3, 0.2]), 255)
        array([128,  76,  51])
    """
    exact = shares * (total / shares.sum(axis=-1, keepdims=True))
    parts = np.floor(exact).astype(np.int64)
    order = np.argsort(parts - exact, axis=-1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(shares.shape[-1]), order.shape), axis=-1)
    return np.asarray(parts + (rank < total - parts.sum(axis=-1, keepdims=True)))
