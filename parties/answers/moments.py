"""Answers `mean_operator`: the sum of y x over a party's rows, with noise or a share of it (Patrini et al. 2015).

The noise is on the sum or, where a party has few rows, on every label: randomised response.
"""

from __future__ import annotations

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import protected
from federation.contract.query import OFF
from federation.contract.randomness import NoiseBits
from federation.numerics.rows import within_norm
from federation.queries.row_sums import MomentQuestion, SummedQuestion
from parties.answers.rows import two_classes
from parties.guard.answering import Arrays, NoisyAct
from parties.holdings.cohort import Cohort

GRID = 2.0**26  # sums without noise are whole multiples of its inverse: their total is the same in any order


def answer(cohort: Cohort, question: MomentQuestion) -> NoisyAct:
    """Size and noisy sums of every party (Algorithm 2, on sums in place of means)."""
    unit = protected(question.protect)
    response, below = question.label_noise(), question.response_below

    def act(party: int, bits: NoiseBits) -> Arrays:
        size, total, few = 0, np.zeros(question.feature_map.dimension), []
        for rows, classes in two_classes(cohort, party, question.feature_map, unit):
            size, signs, cut = size + len(rows), 2.0 * classes - 1.0, within_norm(rows, question.noise.l1_bound)
            if size < below:
                few.append((cut, signs))
            total += signs @ cut
        require_declared(question, party, size)
        if response is not None and size < below:
            sums = np.sum([response.release(cut, signs, bits, question.draws) for cut, signs in few], axis=0)
        else:
            sums = noisy_sum(question, total, bits)
        said = {"response": np.asarray(float(size < below))} if question.by_size else {}
        return {"size": np.asarray(float(size)), "sums": sums, **said}

    return act


def require_declared(question: SummedQuestion, party: int, size: int) -> None:
    """Raises `InputError` for a number of rows, which is public, out of the declared range."""
    if not question.least_rows <= size <= question.most_rows:
        raise InputError(f"party {party} holds {size} rows, declared are {question.least_rows} to {question.most_rows}")


def noisy_sum(question: SummedQuestion, total: np.ndarray, bits: NoiseBits) -> np.ndarray:
    """A party's sum with noise (draws, D), or as it is where that is off."""
    if question.noise.kind == OFF:
        return np.repeat(np.rint(total * GRID)[None] / GRID, question.draws, axis=0)
    return question.mechanism().release(total, bits, question.draws)
