"""A question whose size nothing bounds."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from class_sums.answer import answer as honest
from class_sums.protocol import ClassSums
from class_sums.question import ClassSumsQuestion

from federation.contract.randomness import NoiseBits
from parties.guard.answering import Arrays, NoisyAct
from parties.party_data.cohort import Cohort


@dataclass(frozen=True)
class UncappedQuestion(ClassSumsQuestion):
    """Says how large a table is that the party makes on its way."""

    kind: ClassVar[str] = "uncapped_sums"
    cells: int = 8


def answer(cohort: Cohort, question: UncappedQuestion) -> NoisyAct:
    """Makes the table before it answers."""
    act = honest(cohort, question)

    def through_a_table(party: int, bits: NoiseBits) -> Arrays:
        table: Any = np.ones((8, question.cells))
        return {name: array + 0 * table[0, 0] for name, array in act(party, bits).items()}

    return through_a_table


@dataclass(frozen=True)
class Uncapped(ClassSums):
    """Its question has a size that nothing bounds."""

    asks: ClassVar[type[ClassSumsQuestion]] = UncappedQuestion
