"""The session of a protocol whose parties add their vectors up unseen, with shares of one noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aggregator.answers.shared_vectors import SharedVectors
from aggregator.contract.diagnostics import diagnose
from aggregator.contract.outlook import Outlook
from aggregator.contract.perturbable import Decoder
from aggregator.contract.premises import large_delta, local_guarantee, summed
from aggregator.contract.session import Asked, OneRound
from aggregator.ensembles.aim import Aim
from aggregator.ensembles.decoding import PUBLIC_ROWS
from aggregator.ensembles.refinement import Refinement
from aggregator.world.world import World
from federation.contract.trust import honest
from federation.engines.codec import question_digest
from federation.features.feature_map import Ball
from federation.queries.votes import ClassifierQuestion, VectorNoise, VectorSumQuestion


@dataclass(frozen=True, eq=False)
class Summand:
    """What parties add up: the vector that answers `asked`, brought into the `ball`, by a `question` of this class.

    `decoder` is for the mean of so many noisy vectors, and `width` how many numbers it has per class contrast.
    """

    question: type[VectorSumQuestion]
    asked: ClassifierQuestion
    ball: Ball
    decoder: Decoder
    width: int


def louder(parties: int, quorum: float, colluding: float) -> float:
    """How many times as loud as the whole noise is that of all parties' shares, if all answer.

    Raises `InputError` where no honest party can be counted on.

    Examples:
        >>> round(louder(1000, quorum=0.9, colluding=0.1), 3)
        1.118
    """
    return math.sqrt(parties / honest(parties, quorum, colluding))


class SummedSession(OneRound):
    """Asks once for each epsilon, as every one has noise of its own; the vectors are the same."""

    def __init__(self, world: World, summand: Summand, refinement: Refinement, noise: VectorNoise, draws: int) -> None:
        plan = self._plan = world.plan
        self._summand, self._refinement, self._noise = summand, refinement, noise
        self._spectrum = world.views.spectrum
        contributors = honest(plan.parties, plan.quorum, plan.colluding)
        question = summand.question(
            noise,
            summand.asked,
            summand.ball,
            contributors,
            release=world.release(noise, (question_digest(summand.asked), summand.ball, contributors)),
            draws=draws,
            seeded=plan.noise_seed is not None,
        )
        further = (PUBLIC_ROWS, *large_delta(plan, noise.kind))
        promised = local_guarantee(plan, question.promise(), summed(plan, question.mechanism().additive), further)
        asked = Asked(question, summand.asked.training, SharedVectors(question, plan))
        super().__init__(refinement.feature_map, [asked], promised, question.release)

    def outlook(self) -> Outlook | None:
        """How loud the noise of all shares will be, of which more come than are needed; None where that is little."""
        plan, noise = self._plan, self._noise
        return Aim(noise.kind, noise.epsilon, noise.delta).outlook(
            len(plan.classes),
            self._summand.width,
            plan.parties,
            self._spectrum,
            louder=louder(plan.parties, plan.quorum, plan.colluding),
        )

    @property
    def checks(self) -> tuple[str, ...]:
        """How the sum was made, and what became of the models."""
        return (*self._collected.told, *self._refinement.checks)

    def learn(self, draw: int) -> np.ndarray:
        """The weights (C, d) of one noise draw."""
        weights: np.ndarray = self._weights[draw]
        return weights

    def diagnostics(self) -> dict[str, float]:
        """How much of the first draw is signal."""
        collected = self._collected
        return diagnose(self._summand.decoder, collected.mechanism, collected.means[0])

    @property
    def _collected(self) -> SharedVectors:
        [found] = self.answers
        assert isinstance(found, SharedVectors)
        return found

    @cached_property
    def _weights(self) -> np.ndarray:
        decode = self._refinement.refined(self._summand.decoder.decode)
        return decode(self._collected.means, self._collected.mechanism)
