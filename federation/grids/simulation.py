"""What a simulation asks of every grid: to place parties behind nodes, world by world."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable

from flwr.app import Message
from flwr.serverapp import Grid

from federation.grids.nodes import Placement, cohort_size

Progress = Callable[[int, int], None]


class SimulationGrid(Grid):  # type: ignore[misc, unused-ignore]  # flwr is not typed
    """A Flower grid whose nodes are numbered from 1 and serve whom the latest placement says.

    `on_reply(answered, sent)` is called after every reply.
    """

    workers = 1  # processes that answer at the same time
    _sent = _answered = 0

    def __init__(self, on_reply: Progress | None = None) -> None:
        self._on_reply = on_reply

    def _heard(self) -> None:
        """Tell of one more reply."""
        self._answered += 1
        if self._on_reply is not None:
            self._on_reply(self._answered, self._sent)

    def cohort(self, parties: int, wanted: int | None, most: int) -> int:
        """Parties behind each node of a world with so many: `wanted`, or up to `most` when None, as suits this grid."""
        return cohort_size(parties, self.workers, wanted, most)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Push, then pull until all have replied or `timeout` seconds have passed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        waiting = set(self.push_messages(messages))
        replies: list[Message] = []
        while waiting and (deadline is None or time.monotonic() < deadline):
            ready = list(self.pull_messages(waiting))
            replies += ready
            waiting -= {reply.metadata.reply_to_message_id for reply in ready}
        return replies

    @abstractmethod
    def assign(self, placement: Placement) -> None:
        """Serve this placement from now on, as when a new world begins; what was under way is forgotten."""

    @abstractmethod
    def close(self) -> None:
        """End what this grid started."""
