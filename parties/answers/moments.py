"""Answers `mean_operator`: the sum of y x over a party's rows, with noise or a share of it (Patrini et al. 2015)."""

from __future__ import annotations

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.question import OFF
from federation.contract.randomness import NoiseBits
from federation.numerics.norms import within_norm
from federation.questions.moments import MomentQuestion
from federation.questions.row_premises import protected
from parties.answers.rows import two_classes
from parties.guard.answering import Arrays, NoisyAct, require_public_features
from parties.holdings.cohort import Cohort

_GRID = 2.0**26  # sums without noise are whole multiples of its inverse: their total is the same in any order


def answer(cohort: Cohort, question: MomentQuestion) -> NoisyAct:
    """Size and noisy sums of every party (Algorithm 2, on sums in place of means).

    Raises `InputError` at a deployed node for a question that takes features to be public when they are not.
    """
    unit = protected(question.protect)
    if unit is Unit.LABEL:
        require_public_features(cohort)
    noise = None if question.noise.kind == OFF else question.mechanism()

    def act(party: int, bits: NoiseBits) -> Arrays:
        size, total = 0, np.zeros(question.feature_map.dimension)
        for rows, classes in two_classes(cohort, party, question.feature_map, unit):
            size += len(rows)
            total += (2.0 * classes - 1.0) @ within_norm(rows, question.noise.l1_bound)
        if not 0 < size <= question.most:
            raise InputError(f"party {party} holds {size} rows, declared are 1 to {question.most}")
        if noise is None:
            sums = np.repeat(np.rint(total * _GRID)[None] / _GRID, question.draws, axis=0)
        else:
            sums = noise.release(total, bits, question.draws)
        return {"size": np.asarray(float(size)), "sums": sums}

    return act
