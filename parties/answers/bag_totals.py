"""Answers `count_totals` and `embedding_totals`: all that a party adds to bags that are the same at all parties.

Of a bag of which it has no row that is zeros, with its share of the noise like all others.
"""

from __future__ import annotations

import numpy as np

from federation.contract.errors import InputError
from federation.contract.query import OFF
from federation.contract.randomness import NoiseBits
from federation.numerics.rows import Floats
from federation.queries.bags import (
    SUM_STEP,
    BagTotalsQuestion,
    CountTotalsQuestion,
    EmbeddingTotalsQuestion,
    largest_bag,
)
from parties.answers.bags import PartyBags, bags_of
from parties.answers.rows import private_features, rows_at_a_time
from parties.guard.answering import Arrays, NoisyAct
from parties.holdings.cohort import Cohort


def answer_counts(cohort: Cohort, question: CountTotalsQuestion) -> NoisyAct:
    """Rows and label counts of every bag, with a share of the noise on the counts."""

    def act(party: int, bits: NoiseBits) -> Arrays:
        bags = bags_of(cohort, party, question.bags)
        return {"sizes": bags.sizes, "counts": _noisy(question, bags.counts, bits)}

    return act


def answer_embeddings(cohort: Cohort, question: EmbeddingTotalsQuestion) -> NoisyAct:
    """The same beside the sum of every bag's rows; where rows are protected, with shares of noise on all of it.

    Raises `InputError` for rows protected behind a feature map that does not bound their norms.
    """
    if question.protects_rows and [step.kind for step in question.feature_map.steps[-1:]] != ["fourier"]:
        raise InputError("the noise of an embedding is for random Fourier features, whose rows have norm 1")
    most = largest_bag(rows_at_a_time(question.feature_map))

    def act(party: int, bits: NoiseBits) -> Arrays:
        hidden = question.protects_rows
        bags = bags_of(cohort, party, question.bags, private_rows=hidden, private_bags=hidden)
        if len(bags.labels) > most:
            raise InputError(
                f"a party has more than {most} rows in bags; the noise covers the rounding of sums over so many "
                "behind this feature map: divide the party, or make fewer features"
            )
        if not question.protects_rows:
            sums = np.rint(_sums(question, bags) / SUM_STEP) * SUM_STEP
            return {"sizes": bags.sizes, "counts": _noisy(question, bags.counts, bits), "sums": sums}
        both = _noisy(question, np.hstack([question.label_weight * bags.counts, _sums(question, bags)]), bits)
        return {"counts": both[..., : question.bags.classes], "sums": both[..., question.bags.classes :]}

    return act


def _sums(question: EmbeddingTotalsQuestion, bags: PartyBags) -> Floats:
    """Of every bag's rows behind the feature map (B, D)."""
    found = np.zeros((question.bags.count, question.feature_map.dimension))
    for bag, rows in bags.each():
        for tile in private_features(question.feature_map, rows):
            found[bag] += tile.sum(axis=0)
    return found


def _noisy(question: BagTotalsQuestion, values: np.ndarray, bits: NoiseBits) -> Floats:
    """Numbers of all bags (B, N) with shares of noise (draws, B, N), or as they are where it is off."""
    if question.noise.kind == OFF:
        return np.repeat(np.rint(values / SUM_STEP)[None] * SUM_STEP, question.draws, axis=0)
    drawn = question.mechanism().release(values.ravel(), bits, question.draws)
    return drawn.reshape(question.draws, *values.shape)
