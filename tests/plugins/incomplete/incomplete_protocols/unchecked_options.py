"""A protocol that takes an option out of range, and fails over it when it is asked to begin."""

from __future__ import annotations

from dataclasses import dataclass

from class_sums.protocol import ClassSums, ClassSumsSession

from aggregator.contract.session import Session
from aggregator.trial.trial import World


@dataclass(frozen=True)
class UncheckedOptions(ClassSums):
    """Its option `groups` is a divisor, and 0 is taken."""

    groups: int = 1

    def begin(self, world: World, epsilon: float, draws: int) -> Session:
        assert world.plan.parties // self.groups >= 0
        return ClassSumsSession(world, self, epsilon, draws)
