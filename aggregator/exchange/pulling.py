"""Replies are fetched by several hands: whoever sends half of one, or nonsense, holds up and costs nobody else.

Flower's grid fetches replies one after the other. It waits minutes for the rest of one that has been begun, and an
exception over one loses those that it had fetched before.
"""

from __future__ import annotations

import queue
import threading
from collections import defaultdict

from flwr.app import Message
from flwr.serverapp import Grid

_MOST_HANDS = 32  # sites beyond so many share hands, and so the delays of those that share one with them
_PAUSE = 0.5  # seconds between two tries of a hand


class Pulling:
    """The replies to letters that are out, by Flower's ids of the messages that carry them."""

    def __init__(self, grid: Grid, sites: int) -> None:
        self._grid = grid
        self._hands = min(sites, _MOST_HANDS)
        self._waiting: defaultdict[int, set[str]] = defaultdict(set)
        self._closed = threading.Event()
        self._came: queue.SimpleQueue[tuple[str, Message | Exception]] = queue.SimpleQueue()
        for hand in range(self._hands):
            threading.Thread(target=self._pull, args=(hand,), daemon=True).start()

    def expect(self, site: int, sent: str) -> None:
        """A letter has gone to a site."""
        self._waiting[site % self._hands].add(sent)

    def arrived(self, seconds: float) -> list[tuple[str, Message | Exception]]:
        """What has come, each with the id of its letter, after at most so many seconds; what failed is an exception."""
        found = []
        try:
            found.append(self._came.get(timeout=seconds))
            while True:
                found.append(self._came.get_nowait())
        except queue.Empty:
            return found

    def close(self) -> None:
        """Fetch nothing more."""
        self._closed.set()

    def _pull(self, hand: int) -> None:
        while not self._closed.wait(_PAUSE):
            for sent in [*self._waiting[hand]]:
                came: list[Message | Exception]
                try:
                    came = list(self._grid.pull_messages([sent]))
                except Exception as error:  # whatever a hostile site sends, it must not end the run
                    came = [error]
                if came:
                    self._waiting[hand].discard(sent)
                    self._came.put((sent, came[0]))
