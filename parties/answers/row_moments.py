"""Answers `row_moments`: X'X, X'y and y'y over a party's private rows, or X'y of public ones, with noise or a share."""

from __future__ import annotations

import numpy as np

from federation.contract.randomness import NoiseBits
from federation.numerics.rows import within_norm
from federation.queries.row_sums import RowMomentsQuestion
from parties.answers.moments import GRID, noisy_sum, require_declared
from parties.answers.rows import from_minus_one, labelled, real_labels
from parties.guard.answering import Arrays, NoisyAct
from parties.holdings.cohort import Cohort


def answer(cohort: Cohort, question: RowMomentsQuestion) -> NoisyAct:
    """Size and noisy sums of every party, over rows that are cut to norm 1 and labels from -1 to 1.

    Nothing in a row or a label makes a party fail, but for several rows of one person. Where labels alone are
    protected, rows keep their length and weigh less, and what they say without labels comes as it is.
    """
    if question.labels_only:
        return _of_labels(cohort, question)
    statistic = question.statistic

    def act(party: int, bits: NoiseBits) -> Arrays:
        size, total = 0, np.zeros(statistic.dimension)
        for rows, labels in real_labels(cohort, party, question.rows):
            size += len(rows)
            total += statistic.of(within_norm(rows), labels)
        require_declared(question, party, size)
        return {"size": np.asarray(float(size)), "sums": noisy_sum(question, total, bits)}

    return act


def _of_labels(cohort: Cohort, question: RowMomentsQuestion) -> NoisyAct:
    def act(party: int, bits: NoiseBits) -> Arrays:
        rows, labels = labelled(cohort, party, question.rows)
        weights = 1 / np.maximum(1.0, np.linalg.norm(rows, axis=1))
        weighted = weights[:, None] * rows
        total = from_minus_one(labels, question.rows) @ weighted
        gram = rows.T @ weighted
        public = {"gram": (gram + gram.T) / 2, "row_sum": weighted.sum(axis=0), "weight": weights.sum()}
        rounded = {name: np.asarray(np.rint(array * GRID) / GRID) for name, array in public.items()}
        return {"size": np.asarray(float(len(rows))), "sums": noisy_sum(question, total, bits), **rounded}

    return act
