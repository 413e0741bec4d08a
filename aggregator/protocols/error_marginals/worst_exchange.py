"""The worst pair of neighbours of an exchange about errors: queries about constant classes, 1 and 0 by turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from aggregator.contract.worst_case import TWO_CLASSES, Rows, Seen, Statistic, SummedWorstCase, in_one_sum
from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee
from federation.contract.query import PrivateQuestion, Question, Submission
from federation.numerics.binning import Bins
from federation.queries.marginals import Hypothesis, MarginalsQuestion

RUNS = 200_000
RUNS_OF_SHARES = 60_000  # each of which is drawn by every party
CHANGE = "one row or label changes"

Change = Literal["add_remove", "replace", "label"]


@dataclass(frozen=True, eq=False)
class WorstExchange(SummedWorstCase):
    """One party, and for each run two bins of every column, in which nothing lies but `changed` rows of class 0.

    They lie in the first of the two. There they are gone if one is added or removed; if it is replaced, they are in the
    second with class 1, and if a label changes, in the first with class 1. One row is in a bin beyond all of these. One
    party says it all: every bin has noise of its own, so what it says of the bins of one run is an exchange about one
    unit alone. Where parties share the noise, all others have nothing but the row beyond. Constant classes are the
    worst that can be asked: whatever a query is chosen by, a unit moves no more cells than so, where it is an error or
    a correct row.
    """

    change: Change = "add_remove"

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """The bins of all runs, and those who share the noise."""
        asked = _marginals(question)
        bins = np.repeat(2 * np.arange(runs), self.changed)
        if there and self.change == "add_remove":
            bins = bins[:0]
        elif there and self.change == "replace":
            bins = bins + 1
        rows = np.append(bins, 2 * runs).astype(np.float64)
        labels = np.append(np.full(len(bins), int(there)), 0)
        rows = np.tile(rows[:, None], asked.feature_map.columns)
        others = Rows(rows[-1:], labels[-1:])
        return (Rows(rows, labels), *(others for _ in range(self.parties(asked, runs) - 1)))

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """All that are summed."""
        return self.added(question) if self.shared else 1

    def asked(self, question: PrivateQuestion, runs: int) -> Sequence[PrivateQuestion]:
        """All queries of one exchange, about the bins of all runs."""
        asked = _marginals(question)
        columns, release = asked.feature_map.columns, asked.release
        bins = Bins(np.tile(np.arange(2 * runs) + 0.5, columns), np.full(columns, 2 * runs + 1))
        return [
            replace(
                asked,
                bins=bins,
                asks="errors",
                hypothesis=Hypothesis.constant(columns, 1 - query % 2),
                release=replace(release, query=query),
            )
            for query in range(release.queries)
        ]

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """What all say together of the two bins of every column and run, (runs, queries, columns, 2)."""
        columns = self.public.shape[1]

        def pairs(cells: np.ndarray) -> np.ndarray:
            whole = cells.reshape(columns, -1)[:, :-1]
            return whole.reshape(columns, -1, 2).swapaxes(0, 1)

        totals = [{name: array.sum(axis=0) for name, array in sent.arrays.items()} for sent in submissions]
        return {name: np.stack([pairs(total[name]) for total in totals], axis=1) for name in totals[0]}

    def statistic(self, question: PrivateQuestion) -> Statistic:
        """The log likelihood ratio up to scale, of all numbers that have noise."""
        asked = _marginals(question)
        promised = asked.payment()
        power = 2 if isinstance(promised, Guarantee) and promised.mechanism.endswith("gaussian") else 1
        exact = self.answered or (lambda there: self._exact(there, asked.release.queries))
        centres = [self._noisy(exact(there), asked) for there in (False, True)]

        def ratio(seen: Seen) -> np.ndarray:
            noisy = self._noisy(seen, asked)
            near, far = ((np.abs(noisy - centre) ** power).sum(axis=(1, 2, 3, 4)) for centre in centres)
            return np.asarray(far - near)

        return ratio

    def _exact(self, there: bool, queries: int) -> Seen:
        """Without noise, of one run."""
        rows, errors = np.zeros((2, 1, queries, self.public.shape[1], 2))
        if not (there and self.change == "add_remove"):
            place = int(there and self.change == "replace")
            rows[..., place] = self.changed
            errors[:, :, :, place] = self.changed * np.not_equal(1 - np.arange(queries) % 2, int(there))[:, None]
        return {"rows": rows, "errors": errors}

    def _noisy(self, seen: Seen, question: MarginalsQuestion) -> np.ndarray:
        """Errors, and corrects where they are private as well: (runs, queries, columns, 2, 1 or 2)."""
        rows = seen["rows"]
        errors = np.rint(seen["rates"] * rows) if "rates" in seen else seen["errors"]
        return np.stack([errors] if question.protect == "label" else [errors, rows - errors], axis=-1)


def worst_exchange(units: int, change: Change, *, shared: bool) -> WorstExchange:
    """Of one party's counts, or of a sum of shares; for two units two change, or half of the shares are missing."""
    return WorstExchange(
        in_one_sum(CHANGE) if shared else f"one party, {CHANGE}",
        np.eye(2),
        RUNS_OF_SHARES if shared else RUNS,
        world=TWO_CLASSES,
        changed=1 if shared else units,
        shared=shared,
        missing=shared and units > 1,
        change=change,
    )


def _marginals(question: Question) -> MarginalsQuestion:
    if not isinstance(question, MarginalsQuestion):
        raise InputError(f"the worst case of an exchange is for error marginals, got '{question.kind}'")
    return question
