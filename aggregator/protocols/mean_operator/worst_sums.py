"""The worst pair of neighbours of a sum of y x: a row that is as long as any turns into its opposite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aggregator.contract.worst_case import (
    ROWS,
    TWO_CLASSES,
    Rows,
    Seen,
    Statistic,
    SummedWorstCase,
    additive_ratio,
    in_one_sum,
)
from federation.contract.errors import InputError
from federation.contract.query import PrivateQuestion, Question, Submission
from federation.numerics.rows import within_norm
from federation.queries.row_sums import MomentQuestion

RUNS = 200_000
FOURIER = 2  # random features: noise scales with their norm, which is the same for any number
CHANGE = "one row or label changes"
MOST = 2**16  # rows of a party: more than that need noise on their sum only at an epsilon above 13
_LINE = np.append(np.linspace(0.0, 10.0, 10_001), 1e6)  # along which the worst row is sought


@dataclass(frozen=True, eq=False)
class WorstSums(SummedWorstCase):
    """Parties that hold the same row several times, with labels 0 and 1 by turns but for those that change.

    There are `changed` of these, at the first party: all are 0 here and 1 there. Colluders, who tell their shares, are
    not among those who are summed: whoever sees the sum of all takes theirs off it.

    Where the number of rows decides between noise on the sum and randomised response, there is a party for either, and
    every run is of one of them by turns: whoever sees it knows which.
    """

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """All parties that are summed, or seen by turns."""
        asked = _moment(question)
        row = worst_row(asked)
        held = [self._held(row, size, there) for size in self._sizes(asked)]
        return (*held, *(self._held(row, ROWS, None) for _ in range(self.added(asked) - 1)))

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """All that are summed, or seen by turns."""
        asked = _moment(question)
        return max(self.added(asked), len(self._sizes(asked)))

    def asked(self, question: PrivateQuestion, runs: int) -> Sequence[PrivateQuestion]:
        """All runs, or those in which a party's turn comes."""
        turns = len(self._sizes(_moment(question)))
        return [replace(question, draws=-(-runs // turns))]

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """The sums of shares (runs, d), or those of each party by turns, and whose turn it is (runs,)."""
        [sent] = submissions
        sums = sent.arrays["sums"]
        if self.shared:
            sums = sums.sum(axis=0, keepdims=True)
        turns, draws, width = sums.shape
        return {"sums": sums.swapaxes(0, 1).reshape(-1, width), "turn": np.tile(np.arange(turns), draws)}

    def statistic(self, question: PrivateQuestion) -> Statistic:
        """The log likelihood ratio."""
        asked = _moment(question)
        centres = [self._centres(there, asked) for there in (False, True)]
        ratios = [self._response if responds else self._noise for responds in self._responding(asked)]

        def ratio(seen: Seen) -> np.ndarray:
            found = np.empty(len(seen["sums"]))
            for turn, (here, there, one) in enumerate(zip(*centres, ratios, strict=True)):
                own = seen["turn"] == turn
                found[own] = one(asked, seen["sums"][own], here, there)
            return found

        return ratio

    @staticmethod
    def _noise(question: MomentQuestion, sums: np.ndarray, here: np.ndarray, there: np.ndarray) -> np.ndarray:
        """By the norms of the noise that sums (n, d) would have on either side."""
        return additive_ratio(question.mechanism().additive, sums, here, there)

    def _response(self, question: MomentQuestion, sums: np.ndarray, here: np.ndarray, there: np.ndarray) -> np.ndarray:
        """By how many more labels of those that change, and of no others, came out as 1 than as -1."""
        moved = there - here
        surplus = 2 * self.changed / question.response().reach * (sums @ moved) / (moved @ moved)
        return np.asarray(question.noise.epsilon * surplus)

    def _centres(self, there: bool, question: MomentQuestion) -> np.ndarray:
        """Sums without noise (turns, d)."""
        if self.answered is not None:
            return np.asarray(self.answered(there)["sums"])
        exact = np.array([_exact(question, one) for one in self.side(there, question, 1)])
        return exact.sum(axis=0, keepdims=True) if self.shared else exact

    def _held(self, row: np.ndarray, size: int, there: bool | None) -> Rows:
        """The rows of one party; None for one where nothing changes."""
        position = np.arange(size)
        labels = ((position - self.changed) % 2 == 0).astype(np.int64)
        if there is not None:
            labels[: self.changed] = int(there)
        return Rows(np.tile(row, (size, 1)), labels)

    def _sizes(self, question: MomentQuestion) -> list[int]:
        """Rows of the parties whose turn comes."""
        below = question.response_below
        few = [self.changed] if self.changed < below else []
        return [*few, max(ROWS, below)] if below <= question.most else few

    def _responding(self, question: MomentQuestion) -> list[bool]:
        return [size < question.response_below for size in self._sizes(question)]


def worst_sums(units: int, *, shared: bool, options: Mapping[str, Any]) -> WorstSums:
    """Of a party's own sum, or of a sum of shares; for two units two rows change, or half of the shares are missing."""
    return WorstSums(
        in_one_sum(CHANGE) if shared else f"one party, {CHANGE}",
        np.eye(2),
        RUNS,
        # Of so many rows that shares of noise on their sum are less than randomised response, and all sizes are there.
        world={**TWO_CLASSES, **({"private_rows": MOST**2} if shared else {"largest_bag": MOST})},
        options=options,
        changed=1 if shared else units,
        shared=shared,
        missing=shared and units > 1,
    )


def worst_row(question: MomentQuestion) -> np.ndarray:
    """The raw row which behind the map, cut as parties cut it, is the longest in the norm that the noise goes by."""
    columns = question.feature_map.columns
    rows = np.concatenate([np.outer(_LINE, direction) for direction in (np.ones(columns), np.eye(columns)[0])])
    cut = within_norm(question.feature_map.transform(rows), question.noise.l1_bound)
    summing = question.response_below <= question.most
    order = 1 if summing and question.mechanism().name.endswith("laplace") else 2
    found: np.ndarray = rows[np.argmax(np.linalg.norm(cut, ord=order, axis=1))]
    return found


def _exact(question: MomentQuestion, held: Rows) -> np.ndarray:
    """The sum of one party without noise."""
    features = within_norm(question.feature_map.transform(held.rows), question.noise.l1_bound)
    total: np.ndarray = (2.0 * held.labels - 1.0) @ features
    return total


def _moment(question: Question) -> MomentQuestion:
    if not isinstance(question, MomentQuestion):
        raise InputError(f"the worst case of sums is for the mean operator, got '{question.kind}'")
    return question
