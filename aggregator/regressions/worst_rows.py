"""The worst pair of neighbours of X'X, X'y and y'y over private rows: a row as long as any turns into its opposite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aggregator.contract.worst_case import PARTIES, QUORUM, ROWS, Rows, Seen, Statistic, SummedWorstCase, in_one_sum
from aggregator.world.public_numbers import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.query import PrivateQuestion, Question, Submission
from federation.numerics.rows import within_norm
from federation.queries.row_sums import RowMomentsQuestion

RUNS = 200_000
CHANGE = "one row turns into its opposite with the same label"

FAR = 1e6  # so far from the public rows a row is as long as any, and the constant behind it nothing
_MANY = 10**9  # rows, as it is said: of so many X'X is asked for, too
_PUBLIC = np.linspace(-1.0, 1.0, 20)[:, None]


@dataclass(frozen=True, eq=False)
class WorstRows(SummedWorstCase):
    """Parties that hold the row 0 several times with labels in the middle of the range, and `changed` far rows.

    These are at the first party, with the largest label: all far below here, and far above there. Behind the map they
    are opposite rows of norm 1, which move X'y as far as can be and X'X not at all.
    """

    low: float = 0.0
    high: float = 1.0

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """All parties that are summed."""
        count, columns = self.added(asked_of(question)), asked_of(question).rows.feature_map.columns
        others = np.full(ROWS, (self.low + self.high) / 2)
        first = np.arange(ROWS) < self.changed
        far = np.where(first, FAR if there else -FAR, 0.0)[:, None] * np.eye(1, columns)
        changed = Rows(far, np.where(first, self.high, others))
        return (changed, *(Rows(np.zeros((ROWS, columns)), others) for _ in range(count - 1)))

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """All that are summed."""
        return self.added(asked_of(question))

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """Their sum (runs, D)."""
        return {"sums": submissions[0].arrays["sums"].sum(axis=0)}

    def statistic(self, question: PrivateQuestion) -> Statistic:
        """The log likelihood ratio up to scale: by the squared distances to the sums without noise."""
        centres = [self._centre(there, asked_of(question)) for there in (False, True)]

        def ratio(seen: Seen) -> np.ndarray:
            near, far = (np.square(seen["sums"] - centre).sum(axis=1) for centre in centres)
            return np.asarray(far - near)

        return ratio

    def _centre(self, there: bool, question: RowMomentsQuestion) -> np.ndarray:
        if self.answered is not None:
            return np.asarray(self.answered(there)["sums"][0])
        return np.asarray(sum(self._exact(one, question) for one in self.side(there, question, 1)))

    def _exact(self, held: Rows, question: RowMomentsQuestion) -> np.ndarray:
        """The sums of one party without noise."""
        rows, labels = self._summed(held, question)
        return np.asarray(question.statistic.of(rows, labels))

    def _summed(self, held: Rows, question: RowMomentsQuestion) -> tuple[np.ndarray, np.ndarray]:
        """The rows and labels of one party as they enter its sums."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        return within_norm(question.rows.feature_map.transform(held.rows)), (held.labels - middle) / half


def worst_rows(units: int, public: PublicNumbers, *, shared: bool) -> WorstRows:
    """Of a party's own sums, or of sums of shares; for two units two rows change, or half of the shares are missing."""
    low, high = public.label_range or (0.0, 1.0)
    parties = PARTIES if shared else 1
    return WorstRows(
        in_one_sum(CHANGE) if shared else f"one party, {CHANGE}",
        _PUBLIC,
        RUNS,
        world={
            "label_range": (low, high),
            "classes": (),
            "parties": parties,
            "quorum": QUORUM,
            "largest_bag": ROWS,
            "private_rows": _MANY,
        },
        changed=1 if shared else units,
        shared=shared,
        missing=shared and units > 1,
        low=low,
        high=high,
    )


def asked_of(question: Question) -> RowMomentsQuestion:
    """The question, as it is. Raises `InputError` for any other."""
    if not isinstance(question, RowMomentsQuestion):
        raise InputError(f"the worst case of rows is for X'X, X'y and y'y, got '{question.kind}'")
    return question
