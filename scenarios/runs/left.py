"""How long a run will still take, by what its worlds have taken so far: an honest figure, or a bound, or none."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_TELLING = 0.02  # share of a round's answers, from which the others can be told
_SHORT = 1.0  # seconds of answers, before which nothing can


@dataclass(frozen=True)
class Remaining:
    """Seconds that are left; `bound` where something comes on top that has not been seen yet."""

    seconds: float
    bound: bool


class Left:
    """Hears how far a run is, world by world, and says how long the rest takes.

    A world consists of answers, whose time grows with its parties, and of what follows the last of them (releasing and
    scoring), whose time is taken to be that of the worlds before. In the first world nothing is known of that, nor of
    later rounds of questions: then there is a bound only. `clock` is in seconds.

    Examples:
        >>> now = [0.0]
        >>> left = Left(lambda: now[0])
        >>> left.begin([100, 300])
        >>> left.world()
        >>> now[0] = 10.0
        >>> left.answers(5, 10)
        >>> left.remaining()  # 10 s for the other half, and three times 20 s for the next world
        Remaining(seconds=70.0, bound=True)
        >>> now[0] = 20.0
        >>> left.answers(10, 10)
        >>> now[0] = 24.0
        >>> left.world_done()
        >>> left.remaining()  # three times 20 s, and 4 s of releasing and scoring
        Remaining(seconds=64.0, bound=False)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._parties: list[int] = []
        self._answering: list[float] = []  # seconds of the answers of each world that is done
        self._after: list[float] = []  # and of what followed
        self._started = self._round = self._heard = 0.0
        self._share, self._sent, self._before, self._under_way = 0.0, 0, 0, False

    def begin(self, parties: Sequence[int]) -> None:
        """Worlds of so many parties are to come, in this order."""
        self._parties = list(parties)

    def world(self) -> None:
        """The next world begins."""
        self._started = self._round = self._heard = self._clock()
        self._share, self._sent, self._before, self._under_way = 0.0, 0, 0, True

    def answers(self, answered: int, sent: int) -> None:
        """So many of the messages that were sent are answered; a round's are all sent before its first answer."""
        if sent > self._sent:
            self._round, self._before, self._sent = self._heard, self._sent, sent
        self._heard = self._clock()
        self._share = (answered - self._before) / (sent - self._before)

    def world_done(self) -> None:
        """The world is complete."""
        self._answering.append(self._heard - self._started)
        self._after.append(self._clock() - self._heard)
        self._under_way = False

    def remaining(self) -> Remaining | None:
        """Of all worlds; None where nothing can be said yet."""
        done = len(self._answering)
        coming = self._parties[done + self._under_way :]
        known, served = sum(self._answering), sum(self._parties[:done])
        after = sum(self._after) / done if done else 0.0
        left = 0.0
        if self._under_way:
            own = self._rest_of_round()
            if own is None and not done:
                return None
            now = self._parties[done]
            if done:
                usual = known / served * now + after - (self._clock() - self._started)
                left = max(usual, own or 0.0, 0.0)
            else:
                assert own is not None
                left = max(0.0, own - (self._clock() - self._heard))
                known, served = self._heard - self._started + own, now
        elif not done:
            return None
        return Remaining(left + sum(known / served * each + after for each in coming), bound=not done)

    def _rest_of_round(self) -> float | None:
        """Seconds from the latest answer on, at the pace of this round; None before there is one."""
        taken = self._heard - self._round
        if self._share < 1 and (self._share < _TELLING or taken < _SHORT):
            return None
        return taken * (1 - self._share) / self._share
