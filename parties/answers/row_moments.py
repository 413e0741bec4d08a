"""Answers `row_moments`: X'X, X'y and y'y over a party's private rows, with noise or a share of it."""

from __future__ import annotations

import numpy as np

from federation.contract.errors import InputError
from federation.contract.question import OFF
from federation.contract.randomness import NoiseBits
from federation.numerics.norms import within_norm
from federation.questions.row_moments import RowMomentsQuestion
from parties.answers.rows import real_labels
from parties.guard.answering import Arrays, NoisyAct
from parties.holdings.cohort import Cohort

_GRID = 2.0**26  # sums without noise are whole multiples of its inverse: their total is the same in any order


def answer(cohort: Cohort, question: RowMomentsQuestion) -> NoisyAct:
    """Size and noisy sums of every party, over rows that are cut to norm 1 and labels from -1 to 1.

    Nothing in a row or a label makes a party fail, but for several rows of one person.
    """
    noise = None if question.noise.kind == OFF else question.mechanism()
    statistic, most = question.statistic, question.rows.most

    def act(party: int, bits: NoiseBits) -> Arrays:
        size, total = 0, np.zeros(statistic.dimension)
        for rows, labels in real_labels(cohort, party, question.rows):
            size += len(rows)
            total += statistic.of(within_norm(rows), labels)
        if not 0 < size <= most:
            raise InputError(f"party {party} holds {size} rows, declared are 1 to {most}")
        if noise is None:
            sums = np.repeat(np.rint(total * _GRID)[None] / _GRID, question.draws, axis=0)
        else:
            sums = noise.release(total, bits, question.draws)
        return {"size": np.asarray(float(size)), "sums": sums}

    return act
