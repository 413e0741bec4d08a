"""How a party answers."""

from __future__ import annotations

import numpy as np

from class_sums.question import ClassSumsQuestion
from federation.contract.guarantee import Unit
from federation.contract.randomness import NoiseBits
from federation.numerics.rows import within_norm
from parties.guard.answering import Arrays, NoisyAct
from parties.party_data.cohort import Cohort
from parties.responses.rows import two_classes


def answer(cohort: Cohort, question: ClassSumsQuestion) -> NoisyAct:
    """Counts and sums of both classes of a party, all with noise."""

    def act(party: int, bits: NoiseBits) -> Arrays:
        total = np.zeros((2, question.width))
        for rows, classes in two_classes(cohort, party, question.feature_map, Unit.ROW):
            ones = np.column_stack([within_norm(rows), np.ones(len(rows))])
            total += np.stack([ones[classes == label].sum(axis=0) for label in (0, 1)])
        exact = total.ravel()
        if question.noise.kind == "off":
            return {"sums": np.tile(exact, (question.draws, 1))}
        return {"sums": question.mechanism().release(exact, bits, question.draws)}

    return act
