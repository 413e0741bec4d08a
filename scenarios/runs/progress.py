"""Live progress on the terminal: worlds with what is known of the time left, and within one rounds and answers."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager

from scenarios.runs.left import Left

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


def words(left: Left) -> str:
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
