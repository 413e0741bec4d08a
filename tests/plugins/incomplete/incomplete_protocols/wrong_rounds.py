"""Protocols in rounds that depart from what they planned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from noisy_steps.protocol import NoisySteps, StepsSession

from aggregator.contract.session import RoundsOfNoise, RoundValue, Session
from aggregator.trial.trial import World


class HalfNoiseSession(StepsSession):
    """Plans half of the sensitivity that its values have."""

    def rounds_of_noise(self) -> RoundsOfNoise:
        planned = super().rounds_of_noise()
        return replace(planned, sensitivity=planned.sensitivity / 2)

    def value(self) -> RoundValue:
        exact = super().value()
        return replace(exact, sensitivity=exact.sensitivity / 2)


class ExtraRoundSession(StepsSession):
    """Plans a round less than it releases in."""

    def rounds_of_noise(self) -> RoundsOfNoise:
        planned = super().rounds_of_noise()
        return replace(planned, rounds=planned.rounds - 1)


class LouderRoundSession(StepsSession):
    """Releases twice the gradient in the second round."""

    def value(self) -> RoundValue:
        exact = super().value()
        return RoundValue(2 * exact.value, 2 * exact.sensitivity) if self._round == 1 else exact


class OtherDimensionSession(StepsSession):
    """Releases a part of the gradient in the second round."""

    def value(self) -> RoundValue:
        exact = super().value()
        return replace(exact, value=exact.value[..., :1]) if self._round == 1 else exact


class ExactQuerySession(StepsSession):
    """Goes on from the gradient without noise."""

    def release(self, noisy: np.ndarray) -> None:
        super().release(np.broadcast_to(self.value().value, noisy.shape))


class ExactModelSession(StepsSession):
    """Learns from the gradient without noise."""

    def release(self, noisy: np.ndarray) -> None:
        self._exact = self.value().value
        super().release(noisy)

    def learn(self, draw: int) -> np.ndarray:
        return np.stack([self._exact[draw], -self._exact[draw]])


@dataclass(frozen=True)
class WrongRounds(NoisySteps):
    """Its rounds are not those that it planned."""

    session: ClassVar[Any] = StepsSession

    def begin(self, world: World, epsilon: float, draws: int) -> Session:
        return self.session(world, self, draws)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class HalfNoise(WrongRounds):
    """Half of the noise."""

    session: ClassVar[Any] = HalfNoiseSession


@dataclass(frozen=True)
class ExtraRound(WrongRounds):
    """A round too many."""

    session: ClassVar[Any] = ExtraRoundSession


@dataclass(frozen=True)
class LouderRound(WrongRounds):
    """A larger sensitivity in one round."""

    session: ClassVar[Any] = LouderRoundSession


@dataclass(frozen=True)
class OtherDimension(WrongRounds):
    """Another dimension in one round."""

    session: ClassVar[Any] = OtherDimensionSession


@dataclass(frozen=True)
class ExactQuery(WrongRounds):
    """Queries that show exact responses."""

    session: ClassVar[Any] = ExactQuerySession


@dataclass(frozen=True)
class ExactModel(WrongRounds):
    """A model that shows exact responses."""

    session: ClassVar[Any] = ExactModelSession
