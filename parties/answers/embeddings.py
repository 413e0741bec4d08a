"""Answers `embeddings`, `noisy_embeddings` and `rows`: what the bags of each party look like, without any label."""

from __future__ import annotations

import numpy as np

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.queries.bags import EmbeddingsQuestion, NoisyEmbeddingsQuestion, RowsQuestion, largest_bag
from parties.answers.bags import bags_of
from parties.answers.rows import private_features, rows_at_a_time
from parties.guard.answering import Arrays, NoisyAct, PlainAct
from parties.holdings.cohort import Cohort


def answer(cohort: Cohort, question: EmbeddingsQuestion) -> PlainAct:
    """The mean of every bag behind the feature map (Iyer et al. 2016, Sec. 2); zeros for bags that are not there."""

    def act(party: int) -> Arrays:
        bags = bags_of(cohort, party, question.bags)
        means = np.zeros(question.fields()["means"].shape)
        for bag, rows in bags.each():
            means[bag] = question.feature_map.mean(rows)
        return {"sizes": bags.sizes, "means": means}

    return act


def answer_noisily(cohort: Cohort, question: NoisyEmbeddingsQuestion) -> NoisyAct:
    """Label counts and mean embedding of every bag, private together; zeros for bags that are not there.

    Raises `InputError` for a feature map that does not bound its rows' norms.
    """
    if [step.kind for step in question.feature_map.steps[-1:]] != ["fourier"]:
        raise InputError("the noise of an embedding is for random Fourier features, whose rows have norm 1")
    mechanism = question.mechanism()
    classes, weight = question.bags.classes, question.label_weight
    most = largest_bag(rows_at_a_time(question.feature_map))

    def act(party: int, bits: NoiseBits) -> Arrays:
        bags = bags_of(cohort, party, question.bags, private_rows=True)
        if bags.sizes.max() > most:  # sizes are public
            raise InputError(
                f"a bag of party {party} has {bags.sizes.max():.0f} rows; the noise covers the rounding of sums over "
                f"at most {most} behind this feature map: divide the bag, or make fewer features"
            )
        fields = question.fields()
        counts, means = np.zeros(fields["counts"].shape), np.zeros(fields["means"].shape)
        for bag, rows in bags.each():
            total = np.zeros(question.feature_map.dimension)
            for tile in private_features(question.feature_map, rows):
                total += tile.sum(axis=0)
            noisy = mechanism.release(np.concatenate([weight * bags.counts[bag], total]), bits, question.draws)
            found = noisy[:, :classes] / weight
            # Moved alike, so that the counts of each draw sum to the public size.
            counts[:, bag] = found + (len(rows) - found.sum(axis=1, keepdims=True)) / classes
            means[:, bag] = noisy[:, classes:] / len(rows)
        return {"sizes": bags.sizes, "counts": counts, "means": means}

    return act


def send_rows(cohort: Cohort, question: RowsQuestion) -> PlainAct:
    """The rows of every bag behind the feature map, filled up with zeros."""

    def act(party: int) -> Arrays:
        bags = bags_of(cohort, party, question.bags)
        rows = np.zeros(question.fields()["rows"].shape)
        for bag, raw in bags.each():
            held = question.feature_map.transform(raw)
            if len(held) > question.largest:
                raise InputError(f"a bag has {len(held)} rows, declared are at most {question.largest}")
            rows[bag, : len(held)] = held
        return {"sizes": bags.sizes, "rows": rows}

    return act
