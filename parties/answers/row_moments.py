"""Answers `row_moments`: X'X, X'y and y'y over a party's private rows, with noise or a share of it."""

from __future__ import annotations

import numpy as np

from federation.contract.randomness import NoiseBits
from federation.numerics.norms import within_norm
from federation.questions.row_moments import RowMomentsQuestion
from parties.answers.moments import noisy_sum, require_declared
from parties.answers.rows import real_labels
from parties.guard.answering import Arrays, NoisyAct
from parties.holdings.cohort import Cohort


def answer(cohort: Cohort, question: RowMomentsQuestion) -> NoisyAct:
    """Size and noisy sums of every party, over rows that are cut to norm 1 and labels from -1 to 1.

    Nothing in a row or a label makes a party fail, but for several rows of one person.
    """
    statistic = question.statistic

    def act(party: int, bits: NoiseBits) -> Arrays:
        size, total = 0, np.zeros(statistic.dimension)
        for rows, labels in real_labels(cohort, party, question.rows):
            size += len(rows)
            total += statistic.of(within_norm(rows), labels)
        require_declared(question, party, size)
        return {"size": np.asarray(float(size)), "sums": noisy_sum(question, total, bits)}

    return act
