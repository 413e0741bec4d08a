"""Worst pairs of neighbours for audits of `class_ratio`: one row changes, beside rows that are spread evenly.

- `WorstBags` is for bags of one party: one row is here or moved there.
- `WorstCommon` is for bags that are the same at all parties, of whose responses only sums are seen.
"""

from dataclasses import dataclass, field

import numpy as np

from aggregator.contract.worst_case import PARTIES, QUORUM, PrivateWorstCase, Rows, SummedWorstCase, in_one_sum
from federation.contract.query import Question
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
    if not (
        isinstance(question, NoisyEmbeddingsQuestion)
        or (isinstance(question, EmbeddingTotalsQuestion) and question.protects_rows)
    ):
        return 0.0
    candidates = np.linspace(0, 100, 100_001)
    here = question.feature_map.transform(np.zeros((1, 1)))[0]
    return float(candidates[np.argmin(question.feature_map.transform(candidates[:, None]) @ here)])


RUNS = 60_000  # each of which is drawn by every party


@dataclass(frozen=True, eq=False)
class WorstCommon(SummedWorstCase[BagTotalsQuestion]):
    """Parties that hold all what the one of `bags` holds, but for what changes at the first."""

    asks, about = BagTotalsQuestion, "common bags is for their totals"

    bags: WorstBags = field(kw_only=True)

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """All parties that are summed."""
        others = self.bags.side(False, question, runs) * (self.added(question) - 1)
        return (*self.bags.side(there, question, runs), *others)


def worst_common(one: WorstBags, units: int) -> WorstCommon:
    """The change at the party of `one`, beside others that share its noise; for two, half of the shares are missing."""
    bags = max(one.classes, int(one.world["bags"]))  # as many as class ratios need
    world = {**one.world, "parties": PARTIES, "quorum": QUORUM, "bags": bags, "common_bags": True}
    return WorstCommon(
        in_one_sum(one.described.split(", ", 2)[2]),
        one.public,
        RUNS,
        world=world,
        options=one.options,
        units=units,
        shared=True,
        bags=one,
    )
