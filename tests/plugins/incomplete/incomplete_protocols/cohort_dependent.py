"""An answer that depends on who else is behind the node."""

from dataclasses import dataclass
from typing import ClassVar

from class_sums.answer import answer as honest
from class_sums.protocol import ClassSums
from class_sums.question import ClassSumsQuestion

from federation.contract.randomness import NoiseBits
from parties.guard.answering import Arrays, NoisyAct
from parties.party_data.cohort import Cohort


@dataclass(frozen=True)
class CohortQuestion(ClassSumsQuestion):
    """As the honest one."""

    kind: ClassVar[str] = "cohort_sums"


def answer(cohort: Cohort, question: CohortQuestion) -> NoisyAct:
    """Tells how many parties the node serves."""
    act = honest(cohort, question)

    def divided(party: int, bits: NoiseBits) -> Arrays:
        return {name: array + cohort.count for name, array in act(party, bits).items()}

    return divided


@dataclass(frozen=True)
class CohortDependent(ClassSums):
    """Its answers depend on the parties behind a node."""

    asks: ClassVar[type[ClassSumsQuestion]] = CohortQuestion
