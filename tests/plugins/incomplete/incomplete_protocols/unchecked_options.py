"""A protocol that takes an option out of range, and fails over it when it is asked to begin."""

from dataclasses import dataclass
from typing import Any

from class_sums.protocol import ClassSums
from class_sums.question import ClassSumsQuestion

from aggregator.trial.trial import World


@dataclass(frozen=True)
class UncheckedOptions(ClassSums):
    """Its option `groups` is a divisor, and 0 is taken."""

    groups: int = 1

    def query(self, trial: World, noise: Any, **sent: Any) -> ClassSumsQuestion:
        assert trial.plan.terms.parties // self.groups >= 0
        return super().query(trial, noise, **sent)
