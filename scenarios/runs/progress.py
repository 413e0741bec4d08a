"""Progress of a run: its costs by phase, the remaining time, and their display on a terminal or in a log.

The remaining time follows from the finished trials: an honest figure, a bound, or none.
"""

import logging
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

_log = logging.getLogger(__name__)


class Progress:
    """Hears how far a run has come; this one does nothing of it."""

    def note(self, text: str) -> None:
        """A line for people, such as how the data set was read."""

    def begin(self, worlds: int, done: int) -> None:
        """A run of so many worlds begins, of which some were done before."""

    def expect(self, parties: Sequence[int]) -> None:
        """The worlds to come have so many parties, in this order."""

    def world(self, label: str) -> None:
        """A world begins."""

    def answers(self, answered: int, sent: int) -> None:
        """Nodes have answered so many of the messages sent; those of a round are all sent before its first answer."""

    def world_done(self) -> None:
        """The world is complete."""


class LoggedProgress(Progress):
    """Logs what it hears, and passes it on to another one."""

    def __init__(self, other: Progress) -> None:
        self._other = other
        self._worlds = self._begun = 0
        self._started = 0.0

    def note(self, text: str) -> None:
        """Log it."""
        _log.info("%s", text)
        self._other.note(text)

    def begin(self, worlds: int, done: int) -> None:
        """Log how many there are."""
        self._worlds, self._begun = worlds, done
        _log.info("%d worlds, %d of them done before", worlds, done)
        self._other.begin(worlds, done)

    def expect(self, parties: Sequence[int]) -> None:
        """Pass it on."""
        self._other.expect(parties)

    def world(self, label: str) -> None:
        """Log which one of how many begins."""
        self._begun, self._started = self._begun + 1, time.perf_counter()
        _log.info("world %d of %d (%s)", self._begun, self._worlds, label)
        self._other.world(label)

    def answers(self, answered: int, sent: int) -> None:
        """Log it, for files that hear everything."""
        _log.debug("world %d: %d of %d messages are answered", self._begun, answered, sent)
        self._other.answers(answered, sent)

    def world_done(self) -> None:
        """Log how long it took."""
        _log.info("world %d of %d took %.2f s", self._begun, self._worlds, time.perf_counter() - self._started)
        self._other.world_done()


class TerminalProgress(Progress, AbstractContextManager["TerminalProgress"]):
    """Bars on standard error, from the first world to the end of the context."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars
        from rich.text import Text

        left = self._left = Left()

        class LeftColumn(ProgressColumn):
            """What is left of the whole run, beside its worlds."""

            def render(self, task: Task) -> Text:
                return Text(f"left {words(left)}" if task.fields.get("whole") else "")

        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            LeftColumn(),
            console=Console(stderr=True),
        )
        self._worlds = self._bars.add_task("worlds", total=None, whole=True)
        self._answers = self._bars.add_task("answers", total=None, visible=False)
        self._round = self._before = self._sent = 0

    def __exit__(self, *raised: object) -> None:
        if self._bars.live.is_started:
            self._bars.stop()

    def note(self, text: str) -> None:
        """Print it."""
        self._bars.console.print(text, highlight=False)

    def begin(self, worlds: int, done: int) -> None:
        """Show all worlds."""
        self._bars.start()
        self._bars.update(self._worlds, total=worlds, completed=done)

    def expect(self, parties: Sequence[int]) -> None:
        """Know what the time left depends on."""
        self._left.begin(parties)

    def world(self, label: str) -> None:
        """Name the world under way."""
        self._left.world()
        self._bars.update(self._worlds, description=f"worlds ({label})")
        self._round = self._before = self._sent = 0
        self._bars.update(self._answers, description="answers", completed=0, visible=True)

    def answers(self, answered: int, sent: int) -> None:
        """Show the answers of this round, and which one it is from the second on."""
        self._left.answers(answered, sent)
        if sent > self._sent:
            self._round, self._before, self._sent = self._round + 1, self._sent, sent
        name = "answers" if self._round == 1 else f"answers, round {self._round}"
        self._bars.update(self._answers, description=name, total=sent - self._before, completed=answered - self._before)

    def world_done(self) -> None:
        """One world more."""
        self._left.world_done()
        self._bars.update(self._answers, visible=False)
        self._bars.advance(self._worlds)


def words(left: "Left") -> str:
    """What is left as h:mm:ss, a bound while no world is done, or that it is not known yet.

    Examples:
        >>> words(Left())
        'not known yet'
    """
    found = left.remaining()
    if found is None:
        return "not known yet"
    minutes, seconds = divmod(round(found.seconds), 60)
    return f"{'more than ' if found.bound else ''}{minutes // 60}:{minutes % 60:02}:{seconds:02}"


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
        """Return the remaining time of all trials; None where nothing can be said yet."""
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


_RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes in which the peak memory of a process is told


@dataclass
class Costs:
    """Accumulates over phases and worlds; memory is this process's peak so far, in MiB."""

    clock = staticmethod(time.perf_counter)

    seconds: dict[str, float] = field(default_factory=dict)
    peak_mebibytes: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent inside to `name`."""
        started = self.clock()
        try:
            yield
        finally:
            self.add(name, self.clock() - started)

    def add(self, name: str, seconds: float) -> None:
        """Add seconds measured elsewhere to `name`, and note the peak memory reached."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self.peak_mebibytes[name] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT / 2**20
        _log.info("phase %s: %.2f s, peak memory %.0f MiB", name, seconds, self.peak_mebibytes[name])


@contextmanager
def silent() -> Iterator[None]:
    """Log nothing in the meantime."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
