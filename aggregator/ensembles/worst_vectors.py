"""The worst pair of neighbours of vectors that parties add up unseen: one party turns its own round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from aggregator.contract.worst_case import (
    TWO_CLASSES,
    Rows,
    Seen,
    Statistic,
    SummedWorstCase,
    additive_ratio,
    in_one_sum,
)
from aggregator.ensembles.worst_votes import FEW_CLASSES, REGULARISATION, TWO_ROWS, farthest_rows, why_loose
from federation.contract.errors import InputError
from federation.contract.query import PrivateQuestion, Question, Submission
from federation.mechanisms.accounting.sensitivity import radius
from federation.queries.votes import VectorSumQuestion

RUNS = 200_000


@dataclass(frozen=True, eq=False)
class WorstVectors(SummedWorstCase):
    """Parties that hold the same `rows`, each of one class alone, so that their vectors are opposite ends of the ball.

    The first is of class 0 here and of class 1 there. Colluders, who tell what they sent, are not among those who are
    summed: whoever sees the sum of all takes it off.
    """

    rows: np.ndarray = field(kw_only=True)

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """All parties that are summed."""
        classes = np.arange(self.added(_asked(question))) % 2
        classes[0] = int(there)
        return tuple(Rows(self.rows, np.full(len(self.rows), label)) for label in classes)

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """All that are summed."""
        return self.added(_asked(question))

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """Their sum (runs, D)."""
        return {"sums": submissions[0].arrays["vectors"].sum(axis=0)}

    def statistic(self, question: PrivateQuestion) -> Statistic:
        """The log likelihood ratio, by sums without noise that somebody knows. Raises `InputError` if nobody does."""
        if self.answered is None:
            raise InputError("sums of vectors are told apart by what parties answer without noise; say what that is")
        here, there = (self.answered(side)["sums"] for side in (False, True))
        noise = _asked(question).mechanism().additive
        return lambda seen: additive_ratio(noise, seen["sums"], here, there)


def worst_shares(units: int) -> WorstVectors:
    """Of shares of the statistic of votes; for two units half of the shares of noise are missing."""
    return _worst(units, np.eye(1, 2))


def worst_parameters(units: int, *, clip: float | None) -> WorstVectors:
    """Of parameters of linear classifiers, which may be shortened to `clip`."""
    why = "" if clip is None else why_loose(clip, radius(REGULARISATION, 2))
    return _worst(units, farthest_rows(REGULARISATION), why)


def _worst(units: int, rows: np.ndarray, why: str = "") -> WorstVectors:
    return WorstVectors(
        in_one_sum("one party changes all it holds"),
        TWO_ROWS,
        RUNS,
        world={**FEW_CLASSES, **TWO_CLASSES},
        loose=why,
        shared=True,
        missing=units > 1,
        rows=rows,
    )


def _asked(question: Question) -> VectorSumQuestion:
    if not isinstance(question, VectorSumQuestion):
        raise InputError(f"the worst case of vectors is for sums of them, got '{question.kind}'")
    return question
