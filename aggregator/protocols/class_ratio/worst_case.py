"""The worst pair of neighbours of `class_ratio`: one row here or moved there, beside rows that are spread evenly.

The worst pair of neighbours of bags that are the same at all parties, of whose answers only sums are seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aggregator.contract.worst_case import (
    PARTIES,
    QUORUM,
    PrivateWorstCase,
    Rows,
    Seen,
    Statistic,
    SummedWorstCase,
    additive_ratio,
    in_one_sum,
)
from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee
from federation.contract.query import PrivateQuestion, Question, Submission
from federation.features.feature_map import FeatureMap
from federation.queries.bags import BagTotalsQuestion, CountsQuestion, EmbeddingTotalsQuestion, NoisyEmbeddingsQuestion

LEAST = 10  # rows of every class beside those that change
ONE_FREQUENCY = 2  # random features: two rows can then be as far from each other as the sensitivity reckons
_TINY = 1e-9  # of a record: what stands for a share that was rounded to 0


@dataclass(frozen=True, eq=False)
class WorstBags(PrivateWorstCase):
    """One party with `units` rows that leave class 0 for class 1, and the feature 0 for one far away.

    All other rows are spread evenly, `least` of every class. With `rows_per_person` units are persons, who have two
    rows in each bag, of which one counts, and are in one bag more than count; without there is one bag.
    """

    units: int = 1
    classes: int = 2
    rows_per_person: int = 0
    least: int = LEAST

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """Bags that are all alike."""
        persons, bags = bool(self.rows_per_person), self.rows_per_person + 1
        of_units = self.units * (2 if persons else 1)
        labels = np.concatenate([np.full(of_units, int(there)), np.repeat(np.arange(self.classes), self.least)])
        rows = np.zeros((len(labels), 1))
        rows[:of_units] = there * _farthest(question)
        others = np.arange(bags * self.classes * self.least).reshape(bags, -1) + self.units
        people = [np.concatenate([np.arange(of_units) % self.units, some]) for some in others]
        numbers = np.repeat(np.arange(bags), len(labels))
        known = np.concatenate(people) if persons else None
        return (Rows(np.tile(rows, (bags, 1)), np.tile(labels, bags), numbers, known),)

    def statistic(self, question: PrivateQuestion) -> Statistic:
        """The log likelihood ratio up to scale for integer noise and, behind one sigma, Dirichlet shares."""
        first, second = self.counts(False), self.counts(True)
        if isinstance(question, NoisyEmbeddingsQuestion):
            return self._joint(question, first, second)
        if not isinstance(question, CountsQuestion):
            raise InputError(f"the worst case of bags is for counts and embeddings, got '{question.kind}'")
        promised = question.promise()
        name = promised.mechanism if isinstance(promised, Guarantee) else ""
        if name == "count_gaussian":
            return lambda sent: np.tensordot(sent["counts"], first - second, 2)
        if name in ("lattice_laplace", "count_laplace"):
            return lambda sent: (np.abs(sent["counts"] - second) - np.abs(sent["counts"] - first)).sum(axis=(1, 2))
        shift = question.noise.pseudo_count or 0
        return lambda sent: np.tensordot(np.log(np.maximum(sent["counts"] + shift, _TINY)), first - second, 2)

    def _joint(self, question: NoisyEmbeddingsQuestion, first: np.ndarray, second: np.ndarray) -> Statistic:
        """By the inner product with the change of weighted counts and of sums of rows."""
        sums = [
            question.feature_map.transform(one.rows).sum(axis=0)[None]
            for there in (False, True)
            for one in self.side(there, question, 1)
        ]
        by_counts = question.label_weight**2 * (first - second)
        by_means = first.sum(axis=1)[:, None] * (sums[0] - sums[1])

        def ratio(sent: Seen) -> np.ndarray:
            return np.asarray(np.tensordot(sent["counts"], by_counts, 2) + np.tensordot(sent["means"], by_means, 2))

        return ratio

    def counts(self, there: bool) -> np.ndarray:
        """Rows that count, (bags, classes): of a person one in each bag, and in no more bags than are declared."""
        counts = np.full((self.rows_per_person + 1, self.classes), float(self.least))
        counts[: self.rows_per_person or 1, int(there)] += self.units
        return counts


def _farthest(question: Question) -> float:
    """The feature whose row behind the map of one frequency is opposite to that of the feature 0."""
    if isinstance(question, EmbeddingTotalsQuestion) and question.protects_rows:
        return _opposite(question.feature_map)
    if not isinstance(question, NoisyEmbeddingsQuestion):
        return 0.0
    return _opposite(question.feature_map)


def _opposite(feature_map: FeatureMap) -> float:
    candidates = np.linspace(0, 100, 100_001)
    here = feature_map.transform(np.zeros((1, 1)))[0]
    return float(candidates[np.argmin(feature_map.transform(candidates[:, None]) @ here)])


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
