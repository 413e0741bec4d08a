"""Live progress on the terminal: worlds with an estimate of the time left, and within one rounds and answers."""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager

_log = logging.getLogger(__name__)


class Progress:
    """Hears how far a run has come; this one does nothing of it."""

    def note(self, text: str) -> None:
        """A line for people, such as how the data set was read."""

    def begin(self, worlds: int, done: int) -> None:
        """A run of so many worlds begins, of which some were done before."""

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
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._worlds = self._bars.add_task("worlds", total=None)
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

    def world(self, label: str) -> None:
        """Name the world under way."""
        self._bars.update(self._worlds, description=f"worlds ({label})")
        self._round = self._before = self._sent = 0
        self._bars.update(self._answers, description="answers", completed=0, visible=True)

    def answers(self, answered: int, sent: int) -> None:
        """Show the answers of this round, and which one it is from the second on."""
        if sent > self._sent:
            self._round, self._before, self._sent = self._round + 1, self._sent, sent
        name = "answers" if self._round == 1 else f"answers, round {self._round}"
        self._bars.update(self._answers, description=name, total=sent - self._before, completed=answered - self._before)

    def world_done(self) -> None:
        """One world more."""
        self._bars.update(self._answers, visible=False)
        self._bars.advance(self._worlds)
