"""The worst pair of neighbours of `class_ratio`: one row here or moved there, beside rows that are spread evenly.

The worst pair of neighbours of bags that are the same at all parties, of whose answers only sums are seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aggregator.contract.worst_case import (
    PARTIES,
    QUORUM,
    PrivateWorstCase,
    Rows,
    Seen,
    SummedWorstCase,
    in_one_sum,
)
from federation.contract.errors import InputError
from federation.contract.query import PrivateQuestion, Question, Submission
from federation.features.feature_map import FeatureMap
from federation.queries.bags import BagTotalsQuestion, EmbeddingTotalsQuestion, NoisyEmbeddingsQuestion

LEAST = 10  # rows of every class beside those that change
ONE_FREQUENCY = 2  # random features: two rows can then be as far from each other as the sensitivity reckons


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
        """The totals of all bags."""
        return {name: array.sum(axis=0) for name, array in submissions[0].arrays.items()}

    @property
    def _one(self) -> WorstBags:
        assert self.bags is not None, "made with a worst case of one party"
        return self.bags


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
