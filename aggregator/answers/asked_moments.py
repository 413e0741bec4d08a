"""What is asked in one noisy sum over all rows of a party: who makes its noise, what it promises, who collects it."""

from __future__ import annotations

from aggregator.answers.moment_answers import MomentAnswers
from aggregator.answers.robust_sums import Robustness
from aggregator.answers.shared_moments import SharedMoments
from aggregator.contract.premises import LOCAL, local_guarantee, summed
from aggregator.contract.session import Asked
from aggregator.world.plan import WorldPlan
from federation.contract.guarantee import Guarantee, NoGuarantee
from federation.queries.row_sums import SummedQuestion
from federation.queries.votes import Training


def asked_moments(
    question: SummedQuestion, training: Training, plan: WorldPlan
) -> tuple[Asked, Guarantee | NoGuarantee]:
    """The question with its collector, and what answers promise: each by itself, or their sum where noise is shared.

    Raises `InputError` for numbers that no noise works with, and where no masked sum of the parties can be.
    """
    whose = summed(plan, question.mechanism().additive) if question.shared else LOCAL
    promised = local_guarantee(plan, question.promise(), whose)
    collector: MomentAnswers | SharedMoments
    if question.shared:
        collector = SharedMoments(question, plan)
    else:
        promise = promised if isinstance(promised, Guarantee) else None
        collector = MomentAnswers(question, plan.parties, promise, Robustness(plan.robust, plan.alike))
    return Asked(question, training, collector), promised
