"""Protocols in rounds that depart from what they planned."""

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


def _protocol(name: str, session: type[StepsSession]) -> type[WrongRounds]:
    """Make a protocol whose rounds are those of a session."""
    own = {"__doc__": session.__doc__, "__module__": __name__, "session": session}
    return dataclass(frozen=True)(type(name, (WrongRounds,), own))


HalfNoise = _protocol("HalfNoise", HalfNoiseSession)
ExtraRound = _protocol("ExtraRound", ExtraRoundSession)
LouderRound = _protocol("LouderRound", LouderRoundSession)
OtherDimension = _protocol("OtherDimension", OtherDimensionSession)
ExactQuery = _protocol("ExactQuery", ExactQuerySession)
ExactModel = _protocol("ExactModel", ExactModelSession)
