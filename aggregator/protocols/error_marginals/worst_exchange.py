"""The worst pair of neighbours of an exchange about errors: queries about constant classes, 1 and 0 by turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from aggregator.contract.worst_case import Exact, PrivateWorstCase, Rows, Seen, Statistic
from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee
from federation.contract.question import PrivateQuestion, Question
from federation.contract.submission import Submission
from federation.numerics.binning import Bins
from federation.questions.hypotheses import Hypothesis
from federation.questions.marginals import MarginalsQuestion

RUNS = 200_000
DESCRIBED = "one party, one row or label changes"


@dataclass(frozen=True, eq=False)
class WorstExchange(PrivateWorstCase):
    """One party, and for each run two bins of every column, in which nothing lies but `units` rows of class 0.

    They lie in the first of the two. There they are gone if one is added or removed; if it is replaced, they are in the
    second with class 1, and if a label changes, in the first with class 1. One row is in a bin beyond all of these. One
    party says it all: every bin has noise of its own, so what it says of the bins of one run is an exchange about one
    unit alone. Constant classes are the worst that can be asked: whatever a query is chosen by, a unit moves no more
    cells than so, where it is an error or a correct row.
    """

    units: int = 1
    change: str = "add_remove"
    answered: Exact | None = None

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """The bins of all runs."""
        bins = np.repeat(2 * np.arange(runs), self.units)
        if there and self.change == "add_remove":
            bins = bins[:0]
        elif there and self.change == "replace":
            bins = bins + 1
        rows = np.append(bins, 2 * runs).astype(np.float64)
        labels = np.append(np.full(len(bins), int(there)), 0)
        return (Rows(np.tile(rows[:, None], _marginals(question).feature_map.columns), labels),)

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
        """What is said of the two bins of every column and run, (runs, queries, columns, 2)."""
        columns = self.public.shape[1]

        def pairs(cells: np.ndarray) -> np.ndarray:
            whole = cells.reshape(columns, -1)[:, :-1]
            return whole.reshape(columns, -1, 2).swapaxes(0, 1)

        names = submissions[0].arrays
        return {name: np.stack([pairs(sent.arrays[name][0]) for sent in submissions], axis=1) for name in names}

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

    def knowing(self, exact: Exact) -> WorstExchange:
        """With what parties answer in place of what they should."""
        return replace(self, answered=exact)

    def _exact(self, there: bool, queries: int) -> Seen:
        """Without noise, of one run."""
        rows, errors = np.zeros((2, 1, queries, self.public.shape[1], 2))
        if not (there and self.change == "add_remove"):
            place = int(there and self.change == "replace")
            rows[..., place] = self.units
            errors[:, :, :, place] = self.units * np.not_equal(1 - np.arange(queries) % 2, int(there))[:, None]
        return {"rows": rows, "errors": errors}

    def _noisy(self, seen: Seen, question: MarginalsQuestion) -> np.ndarray:
        """Errors, and corrects where they are private as well: (runs, queries, columns, 2, 1 or 2)."""
        rows = seen["rows"]
        errors = np.rint(seen["rates"] * rows) if "rates" in seen else seen["errors"]
        return np.stack([errors] if question.protect == "label" else [errors, rows - errors], axis=-1)


def _marginals(question: Question) -> MarginalsQuestion:
    if not isinstance(question, MarginalsQuestion):
        raise InputError(f"the worst case of an exchange is for error marginals, got '{question.kind}'")
    return question
