"""The worst pair of neighbours of bags that are the same at all parties, of whose answers only sums are seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aggregator.contract.worst_case import (
    PARTIES,
    QUORUM,
    Rows,
    Seen,
    Statistic,
    SummedWorstCase,
    additive_ratio,
    in_one_sum,
)
from aggregator.protocols.class_ratio.worst_bags import WorstBags
from federation.contract.errors import InputError
from federation.contract.query import PrivateQuestion, Question, Submission
from federation.queries.bags import BagTotalsQuestion, EmbeddingTotalsQuestion

RUNS = 60_000  # each of which is drawn by every party


@dataclass(frozen=True, eq=False)
class WorstCommon(SummedWorstCase):
    """Parties that hold all what the one of `bags` holds, but for what changes at the first."""

    bags: WorstBags | None = None

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """All parties that are summed."""
        others = self._one.side(False, question, runs) * (self.added(_totals(question)) - 1)
        return (*self._one.side(there, question, runs), *others)

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """All that are summed."""
        return self.added(question)

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """The noisy totals of all bags, (runs, N)."""
        [sent] = submissions
        noisy = [array.sum(axis=0) for name, array in sorted(sent.arrays.items()) if array.ndim == 4]
        return {"totals": np.concatenate([array.reshape(len(array), -1) for array in noisy], axis=1)}

    def statistic(self, question: PrivateQuestion) -> Statistic:
        """The log likelihood ratio up to scale."""
        asked = _totals(question)
        here, there = (self._centre(side, asked) for side in (False, True))
        return lambda seen: additive_ratio(asked.mechanism().additive, seen["totals"], here, there)

    @property
    def _one(self) -> WorstBags:
        assert self.bags is not None, "made with a worst case of one party"
        return self.bags

    def _centre(self, there: bool, question: BagTotalsQuestion) -> np.ndarray:
        """The totals without noise (N,)."""
        if self.answered is not None:
            return np.asarray(self.answered(there)["totals"][0])
        others, rows = self.added(question) - 1, self._one.side(there, question, 1)[0]
        counts = np.zeros((question.bags.count, question.bags.classes))
        own = self._one.counts(there)
        counts[: len(own)] = own + others * self._one.counts(False)
        if not isinstance(question, EmbeddingTotalsQuestion) or not question.protects_rows:
            return counts.ravel()
        sums = np.zeros((question.bags.count, question.feature_map.dimension))
        alike = self._one.side(False, question, 1)[0]
        for held, times in ((rows, 1), (alike, others)):
            sums[0] += times * question.feature_map.transform(held.rows).sum(axis=0)
        return np.concatenate([question.label_weight * counts.ravel(), sums.ravel()])


def worst_common(one: WorstBags, *, missing: bool) -> WorstCommon:
    """What changes at the party of `one`, beside others that share its noise; or half of the shares are missing."""
    bags = max(one.classes, int(one.world["bags"]))  # as many as class ratios need
    world = {**one.world, "parties": PARTIES, "quorum": QUORUM, "bags": bags, "common_bags": True}
    return WorstCommon(
        in_one_sum(one.described.split(", ", 2)[2]),
        one.public,
        RUNS,
        world=world,
        options=one.options,
        shared=True,
        missing=missing,
        bags=one,
    )


def _totals(question: Question) -> BagTotalsQuestion:
    if not isinstance(question, BagTotalsQuestion):
        raise InputError(f"the worst case of common bags is for their totals, got '{question.kind}'")
    return question
