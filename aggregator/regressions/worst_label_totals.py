"""The worst pair of neighbours of one X'y over public rows: the label of a row that is as long as any weighs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aggregator.contract.worst_case import ROWS, Rows, Statistic, in_one_sum
from aggregator.regressions.worst_rows import WorstRows, asked_of, worst_rows
from aggregator.world.public_numbers import PublicNumbers
from federation.contract.query import PrivateQuestion, Question
from federation.queries.row_sums import RowMomentsQuestion

CHANGE = "one label moves from one end of its declared range to the other"


@dataclass(frozen=True, eq=False)
class WorstLabelTotals(WorstRows):
    """As `WorstRows`, but far rows are the same on both sides: their labels are the lowest here, the highest there."""

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """All parties that are summed."""
        first, *others = super().side(True, question, runs)
        changed = np.arange(ROWS) < self.changed
        return (Rows(first.rows, np.where(changed, self.high if there else self.low, first.labels)), *others)

    def statistic(self, question: PrivateQuestion) -> Statistic:
        """The log likelihood ratio up to scale: by the distances to the sums without noise, or by their squares."""
        asked = asked_of(question)
        power = 2 if asked.mechanism().name.endswith("gaussian") else 1
        here, there = (self._centre(side, asked) for side in (False, True))
        return lambda seen: np.subtract(
            *(np.linalg.norm(seen["sums"] - centre, axis=1) ** power for centre in (here, there))
        )

    def _exact(self, held: Rows, question: RowMomentsQuestion) -> np.ndarray:
        """X'y alone, to which a row that is cut adds what one of less weight does."""
        rows, labels = self._summed(held, question)
        return np.asarray(labels @ rows)


def worst_label_totals(units: int, public: PublicNumbers) -> WorstLabelTotals:
    """Of sums of shares; for two units half of the shares are missing."""
    known = vars(worst_rows(units, public, shared=True))
    return WorstLabelTotals(**{**known, "described": in_one_sum(CHANGE)})
