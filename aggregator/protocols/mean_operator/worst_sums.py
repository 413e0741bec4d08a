"""The worst pair of neighbours of a sum of y x: a row that is as long as any turns into its opposite."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aggregator.contract.worst_case import PARTIES, ROWS, TWO_CLASSES, Exact, PrivateWorstCase, Rows, Seen, Statistic
from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee
from federation.contract.question import PrivateQuestion, Question
from federation.contract.submission import Submission
from federation.numerics.norms import within_norm
from federation.questions.moments import MomentQuestion

RUNS = 200_000
FOURIER = 2  # random features: noise scales with their norm, which is the same for any number
ALONE = "one party, one row or label changes"
SUMMED = f"{math.ceil(PARTIES * 2 / 3)} of {PARTIES} parties, whose answers are seen in one sum only, {ALONE[11:]}"
_LINE = np.append(np.linspace(0.0, 10.0, 10_001), 1e6)  # along which the worst row is sought


@dataclass(frozen=True, eq=False)
class WorstSums(PrivateWorstCase):
    """Parties that hold the same row several times, with labels 0 and 1 by turns but for those that change.

    There are `changed` of these, at the first party: all are 0 here and 1 there. What is seen is the sum of the answers
    of the first party alone with its whole noise, or of as many parties as share a noise, `missing` of them left out.
    Colluders, who tell their shares, are not among these: whoever sees the sum of all takes theirs off it.
    """

    changed: int = 1
    shared: bool = False
    missing: bool = False
    answered: Exact | None = None

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """All parties that are summed."""
        asked = _moment(question)
        rows, position = np.tile(worst_row(asked), (ROWS, 1)), np.arange(ROWS)
        others = ((position - self.changed) % 2 == 0).astype(np.int64)
        labels = np.where(position < self.changed, int(there), others)
        return (Rows(rows, labels), *(Rows(rows, others) for _ in range(self._summed(asked) - 1)))

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """All that are summed."""
        return self._summed(_moment(question))

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """Their sum (runs, d)."""
        return {"sums": submissions[0].arrays["sums"].sum(axis=0)}

    def statistic(self, question: PrivateQuestion) -> Statistic:
        """The log likelihood ratio up to scale: by the norms of the noise that a sum would have on either side."""
        asked = _moment(question)
        centres = [self._centre(there, asked) for there in (False, True)]
        name = _mechanism(asked)
        order, power = 1 if name.endswith("laplace") else 2, 2 if name.endswith("gaussian") else 1

        def ratio(seen: Seen) -> np.ndarray:
            near, far = (np.linalg.norm(seen["sums"] - centre, ord=order, axis=1) ** power for centre in centres)
            return np.asarray(far - near)

        return ratio

    def knowing(self, exact: Exact) -> WorstSums:
        """With what parties answer in place of what they should."""
        return replace(self, answered=exact)

    def _centre(self, there: bool, question: MomentQuestion) -> np.ndarray:
        if self.answered is not None:
            return np.asarray(self.answered(there)["sums"][0])
        return np.asarray(np.sum([_exact(question, one) for one in self.side(there, question, 1)], axis=0))

    def _summed(self, question: MomentQuestion) -> int:
        whole = question.contributors or 1
        return whole // 2 if self.missing else whole


def worst_sums(units: int, *, shared: bool, options: Mapping[str, Any]) -> WorstSums:
    """Of a party's own sum, or of a sum of shares; for two units two rows change, or half of the shares are missing."""
    missing = shared and units > 1
    return WorstSums(
        SUMMED if shared else ALONE,
        np.eye(2),
        RUNS,
        world=TWO_CLASSES,
        options=options,
        changed=1 if shared else units,
        shared=shared,
        missing=missing,
    )


def worst_row(question: MomentQuestion) -> np.ndarray:
    """The raw row which behind the map, cut as parties cut it, is the longest in the norm that the noise goes by."""
    columns = question.feature_map.columns
    rows = np.concatenate([np.outer(_LINE, direction) for direction in (np.ones(columns), np.eye(columns)[0])])
    cut = within_norm(question.feature_map.transform(rows), question.noise.l1_bound)
    order = 1 if question.mechanism().name.endswith("laplace") else 2
    found: np.ndarray = rows[np.argmax(np.linalg.norm(cut, ord=order, axis=1))]
    return found


def _exact(question: MomentQuestion, held: Rows) -> np.ndarray:
    """The sum of one party without noise."""
    features = within_norm(question.feature_map.transform(held.rows), question.noise.l1_bound)
    total: np.ndarray = (2.0 * held.labels - 1.0) @ features
    return total


def _mechanism(question: MomentQuestion) -> str:
    promised = question.promise()
    return promised.mechanism if isinstance(promised, Guarantee) else ""


def _moment(question: Question) -> MomentQuestion:
    if not isinstance(question, MomentQuestion):
        raise InputError(f"the worst case of sums is for the mean operator, got '{question.kind}'")
    return question
