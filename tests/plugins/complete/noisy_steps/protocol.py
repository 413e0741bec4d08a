"""Noisy gradient steps: every round releases a noisy mean gradient, under one guarantee for all rounds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from aggregator.collectors.vectors import VECTOR_CHECKS, VectorAnswers
from aggregator.contract.ledger import ATTENDANCE, COUNTED_ONCE
from aggregator.contract.protocol import Place, Promise, Protocol, Refused, Requires, Sent, Trust
from aggregator.contract.session import Asked, RoundsOfNoise, RoundValue, Session
from aggregator.contract.worst_case import Rows, TrustedWorstCase, WorstCase
from aggregator.trial.plan import PublicNumbers
from aggregator.trial.trial import World
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.query import MOST_ROUNDS, OFF, Question
from federation.features.feature_map import Ball, FeatureMap
from noisy_steps.gradient import GradientQuestion

UNIT_BALL = Ball(1.0)


@dataclass(frozen=True)
class NoisySteps(Protocol):
    """Parties send gradients of norm at most 1; the aggregator adds noise to their mean in every round.

    noise: `gaussian` (uses delta), `pure` or `off` (NON-PRIVATE).
    rounds: gradient steps, and queries to each party.
    rate: the length of a step.
    """

    requires: ClassVar[Requires] = Requires(two_classes=True)
    task: ClassVar[str] = "classification"
    model: ClassVar[str] = "linear"

    noise: Literal["gaussian", "pure", "off"] = "gaussian"
    rounds: int = 3
    rate: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.rounds <= MOST_ROUNDS:
            raise InputError(f"rounds must be from 1 to {MOST_ROUNDS}, got {self.rounds}")
        if not 0 < self.rate <= 1e6:
            raise InputError(f"rate must be a positive number up to 1e6, got {self.rate}")

    def noise_at(self, trust: Trust) -> Place | Refused:
        if trust is not Trust.AGGREGATOR:
            return Refused("the aggregator adds the noise in every round; choose trust: aggregator")
        return Place.NOWHERE if self.noise == OFF else Place.AGGREGATOR

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        sends = (Sent(f"a gradient in each of {self.rounds} rounds", public.features, False),)
        if self.noise == OFF:
            return Promise(NoGuarantee("noise is off"), sends)
        delta = public.delta if self.noise == "gaussian" else 0.0
        return Promise(Guarantee(epsilon, delta, Unit.PARTY, Adjacency.REPLACE, "noisy_steps"), sends)

    def begin(self, world: World, epsilon: float, draws: int) -> Session:
        return StepsSession(world, self, draws)

    def worst_case(self, units: int, public: PublicNumbers) -> WorstCase:
        world = {"parties": 4, "parties_per_node": 4}
        return TurnedGradients("4 parties, one party turns its gradients round", np.eye(2), 40_000, world=world)


class StepsSession(Session):
    """One query in the first round, and then one for each noise draw, as the weights of the draws differ."""

    def __init__(self, world: World, options: NoisySteps, draws: int) -> None:
        world.require_two_classes()
        self._view, self._parties, self._options = world.views.at(OFF, math.inf), world.plan.terms.parties, options
        self._weights = np.zeros((draws, self.feature_map.dimension))
        self._round = 0
        self._answers: list[VectorAnswers[GradientQuestion]] = [self._asked(0).collector]

    @property
    def feature_map(self) -> FeatureMap:
        """The public feature map."""
        return self._view.public.feature_map

    def rounds_of_noise(self) -> RoundsOfNoise:
        """One mean gradient in each round."""
        mean = self._answers[0].mean
        assumptions = (*self._answers[0].assumptions(), COUNTED_ONCE, ATTENDANCE)
        return RoundsOfNoise(
            self._options.rounds, mean.sensitivity, mean.dimension, assumptions, noise=self._options.noise
        )

    def questions(self) -> Sequence[Asked]:
        """Ask for gradients at the weights of every draw, which are equal in the first round."""
        if self._round == self._options.rounds:
            return []
        return [self._asked(draw) for draw in range(len(self._weights) if self._round else 1)]

    def take(self, answers: Sequence[Any]) -> None:
        """Keep the sums of the gradients."""
        self._answers = list(answers)

    def value(self) -> RoundValue:
        """The mean gradient of every draw."""
        means = np.array([answers.value() for answers in self._answers])
        return RoundValue(means if self._round else means[0], self._answers[0].mean.sensitivity)

    def release(self, noisy: np.ndarray) -> None:
        """Go one step against the noisy gradient."""
        self._weights = self._weights - self._options.rate * noisy
        self._round += 1

    @property
    def guarantee(self) -> NoGuarantee:
        """Of gradients without noise."""
        return NoGuarantee("noise is off")

    @property
    def checks(self) -> tuple[str, ...]:
        """Gradients were checked and clipped on arrival."""
        return VECTOR_CHECKS

    def learn(self, draw: int) -> np.ndarray:
        """The weights (2, d) of one draw."""
        weights = self._weights[draw]
        return np.stack([-weights / 2, weights / 2])

    def _asked(self, draw: int) -> Asked:
        weights = self._weights[draw]
        question = GradientQuestion(self.feature_map, weights, rounds=self._options.rounds, round=self._round)
        return Asked(question, self._view.training, VectorAnswers(question, self._parties, UNIT_BALL), draw)


class TurnedGradients(TrustedWorstCase):
    """The first party sends the same unit vector in every round, with signs that alternate; there it turns them round.

    Signs that alternate show noise that two rounds share: it cancels in the difference.
    """

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        return ()

    def sent(self, there: bool, question: Question) -> Mapping[str, np.ndarray]:
        sent = np.zeros((4, question.fields()["gradient"].numbers))
        sent[0, 0] = (-1.0) ** (question.turn + there)
        return {"gradient": sent}
