"""How a party responds."""

import numpy as np

from class_sums.question import ClassSumsQuestion
from federation.numerics.rows import within_norm
from parties.guard.answering import NoisyAct, with_noise
from parties.party_data.cohort import Cohort
from parties.responses.rows import two_classes


def answer(cohort: Cohort, question: ClassSumsQuestion) -> NoisyAct:
    """Counts and sums of both classes of a party, all with noise."""

    def exact(party: int) -> np.ndarray:
        total = np.zeros((2, question.numbers // 2))
        for rows, classes in two_classes(cohort, party, question.feature_map, question.unit):
            ones = np.column_stack([within_norm(rows), np.ones(len(rows))])
            total += np.stack([ones[classes == label].sum(axis=0) for label in (0, 1)])
        return total.ravel()

    return with_noise(question, exact)
