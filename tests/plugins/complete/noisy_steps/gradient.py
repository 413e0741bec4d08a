"""The query of one round, and how a party responds to it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from federation.contract.guarantee import Unit
from federation.contract.query import Field, RoundQuestion, Submission, within
from federation.features.feature_map import FeatureMap
from parties.guard.answering import Arrays, gathered
from parties.party_data.cohort import Cohort
from parties.responses.rows import two_classes


@dataclass(frozen=True)
class GradientQuestion(RoundQuestion):
    """Send the mean gradient of your rows' logistic loss at these weights, shortened to norm 1.

    The response goes to a trusted aggregator only, which adds noise to the mean over the parties.
    """

    kind: ClassVar[str] = "gradient"
    varies: ClassVar[tuple[str, ...]] = (*RoundQuestion.varies, "weights")

    feature_map: FeatureMap
    weights: np.ndarray

    def fields(self) -> dict[str, Field]:
        """One vector."""
        return {"gradient": within(1.0 + 1e-9, self.feature_map.dimension)}


def respond(cohort: Cohort, question: GradientQuestion) -> Submission:
    """Compute the gradient of every party behind a node."""

    def act(party: int) -> Arrays:
        total, count = np.zeros(question.feature_map.dimension), 0
        for rows, classes in two_classes(cohort, party, question.feature_map, Unit.ROW):
            predicted = 1 / (1 + np.exp(-np.clip(rows @ question.weights, -30, 30)))
            total += (predicted - classes) @ rows
            count += len(rows)
        mean = total / max(count, 1)
        return {"gradient": mean / max(1.0, float(np.linalg.norm(mean)))}

    return gathered(cohort, question, act)
