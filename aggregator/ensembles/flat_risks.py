"""Votes on which a weakly regularised risk is flat, so that one party in many moves its minimiser far.

One party in M moves the gradient by at most 1/M, and the minimiser by that over the curvature, which is lam at least.
On one row alone the logistic loss has the curvature 1/4, and next to nothing of the bound is attained. Here rows of two
kinds, (c, s) of one class and (c, -s) of the other, have scores of magnitude z so large that the loss is flat there:
sigma(z) sigma(-z) is below lam. The row (0, r), one in 2 k + 1, sees to that: alone it would have a minimiser of the
greatest norm (`sensitivity.radius`). A party that votes otherwise on all other rows moves the minimiser along the first
axis, where little but lam holds it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from aggregator.contract.worst_case import Rows, TrustedWorstCase
from federation.contract.query import Question

_MOST = 10**6  # parties; with 1/lam of them one moves the scores by less than 1
_KINDS = 6  # copies of a kind of rows, at most
_PEAK = 0.2784645427610738  # W0(1/e): the largest z sigma(-z), at z = 1 + W0(1/e)
_SCORES = np.linspace(2.0, 40.0, 381)


class FlatRisk(NamedTuple):
    """Parties M, copies k of either kind of rows, and where these lie; `attained` is the part of 1/(M lam)."""

    attained: float
    parties: int
    copies: int
    score: float
    norm: float

    @property
    def rows(self) -> np.ndarray:
        """(2 k + 1, 2), all of norm 1 but the last, which is shorter."""
        sine = self.score / self.norm
        cosine = math.sqrt(1 - sine**2)
        kinds = np.repeat([[cosine, sine], [cosine, -sine]], self.copies, axis=0)
        return np.vstack([kinds, [[0.0, (1 + _PEAK) / self.norm]]])


def flat_risk(regularisation: float) -> FlatRisk | None:
    """The rows that attain most; None where a single row attains more, as it does from lam 0.02 or so on.

    Examples:
        >>> found = flat_risk(1e-4)
        >>> found.attained, found.parties, found.copies
        (0.6652, 10000, 2)
        >>> flat_risk(1.0) is None
        True
    """
    found = [_placed(regularisation, copies) for copies in range(1, _KINDS + 1)]
    best = max(found, key=lambda one: one.attained)
    return best if best.attained > regularisation / (regularisation + 0.25) else None


def _placed(regularisation: float, copies: int) -> FlatRisk:
    others = 2 * copies / (2 * copies + 1)
    norm = math.sqrt(_PEAK * (1 - others) / regularisation)
    parties = min(math.ceil(1 / regularisation), _MOST)
    if norm < 1 + _PEAK:  # the last row would have to be longer than 1
        return FlatRisk(0.0, parties, copies, 0.0, norm)
    squares = np.maximum(1 - (_SCORES / norm) ** 2, 0.0)  # of the cosine
    curvature = others * squares * np.exp(-_SCORES) / (1 + np.exp(-_SCORES)) ** 2
    attained = others * np.sqrt(squares) * regularisation / (regularisation + curvature)
    best = int(np.argmax(attained))
    return FlatRisk(float(attained[best]), parties, copies, float(_SCORES[best]), norm)


@dataclass(frozen=True, eq=False)
class FlatVotes(TrustedWorstCase):
    """Parties that vote for the second class on the first kind of rows and the last, for the first class elsewhere.

    The first party votes for the second class everywhere here, and there for the first but on the last row.
    """

    parties: int = 1

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """Nobody holds rows: what is sent is said."""
        return ()

    def sent(self, there: bool, question: Question) -> Mapping[str, np.ndarray]:
        """The votes (M, N) on the rows that are asked about: equal ones once, or all of them."""
        rows = question.fields()["votes"].numbers
        votes = np.zeros((self.parties, rows), dtype=np.uint8)
        votes[:, : rows // 2] = votes[:, -1] = 1
        votes[0, :-1] = not there
        return {"votes": votes}


def flat_votes(flat: FlatRisk, runs: int) -> FlatVotes:
    """The pair on these rows."""
    parties = flat.parties
    described = f"{parties:,} parties and 2 classes, one party changes all it sends"
    world: dict[str, Any] = {"parties": parties, "parties_per_node": parties, "classes": ("0", "1"), "features": ()}
    return FlatVotes(described, flat.rows, runs, world=world, parties=parties)
