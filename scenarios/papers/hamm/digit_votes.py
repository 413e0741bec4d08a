"""Parties with five handwritten digits each, who tell even from odd ones: an ensemble that is here for everybody."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federation.contract.randomness import generator
from federation.numerics.erm import fit_labels, risk_minimiser
from federation.numerics.rows import Floats, Integers
from scenarios.data.catalogue import load

PUBLIC, ROWS = 430, 5  # auxiliary rows, and those of each party
TOLERANCE = 1e-12  # of gradients: minimisers are exact but for rounding


@dataclass(frozen=True, eq=False)
class DigitVotes:
    """What M parties hold and have learned, and rows that they know nothing of: `public` and `tested`, (N, d) each.

    All rows have norm 1. `rows` are (M, 5, d), `labels`, 1 for odd digits, (M, 5) and `weights` (M, d).
    """

    public: Floats
    tested: Floats
    rows: Floats
    labels: Integers
    weights: Floats

    def votes(self, rows: Floats) -> Floats:
        """Of every party for the class 1, odd digits, on rows (N, d): zeros and ones (N, M)."""
        return (rows @ self.weights.T > 0).astype(np.float64)


def digit_votes(parties: int, regularisation: float, split: int) -> DigitVotes:
    """Rows are divided anew for every split; parties draw theirs independently, so that some are of several."""
    table, random = load("digits"), generator(PUBLIC, "digits", trial=split)
    features = np.asarray(table.blocks[0], dtype=np.float64)
    rows, labels = features / np.linalg.norm(features, axis=1, keepdims=True), np.asarray(table.labels) % 2
    public, tested, pool = np.split(random.permutation(len(rows)), [PUBLIC, 2 * PUBLIC])
    held = random.choice(pool, (parties, ROWS))
    weights = np.array([fit_labels(rows[own], labels[own], 2, regularisation, TOLERANCE) for own in held])
    return DigitVotes(rows[public], rows[tested], rows[held], labels[held], weights)


def minimiser(rows: Floats, shares: Floats, regularisation: float) -> Floats:
    """Of the risk on rows (N, d) with shares (N,) of the class 1."""
    return risk_minimiser(rows, np.column_stack([1 - shares, shares]), regularisation, TOLERANCE)
