"""A question that promises half of what its answers spend."""

from dataclasses import dataclass, replace
from typing import ClassVar

from class_sums.answer import answer as honest
from class_sums.protocol import ClassSums
from class_sums.question import ClassSumsQuestion

from federation.contract.guarantee import Guarantee, NoGuarantee
from parties.guard.answering import NoisyAct
from parties.party_data.cohort import Cohort


@dataclass(frozen=True)
class HalfPromiseQuestion(ClassSumsQuestion):
    """Noise for epsilon, a promise of half of it."""

    kind: ClassVar[str] = "half_promised_sums"

    def _promised(self) -> Guarantee | NoGuarantee:
        promised = super()._promised()
        return replace(promised, epsilon=promised.epsilon / 2) if isinstance(promised, Guarantee) else promised


def answer(cohort: Cohort, question: HalfPromiseQuestion) -> NoisyAct:
    """As the honest one does."""
    return honest(cohort, question)


@dataclass(frozen=True)
class HalfPromise(ClassSums):
    """It promises half of what it spends."""

    asks: ClassVar[type[ClassSumsQuestion]] = HalfPromiseQuestion
