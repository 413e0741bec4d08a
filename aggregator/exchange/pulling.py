"""Replies are fetched by several hands: whoever sends half of one, or nonsense, holds up and costs nobody else.

Flower's grid fetches replies one after the other. It waits three minutes for the rest of one that has been begun, as
by a site that is killed while it sends, and an exception over one loses those that it had fetched before.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import defaultdict
from dataclasses import dataclass

from flwr.app import Message
from flwr.serverapp import Grid

_MOST_HANDS = 32  # sites beyond so many share hands, and so the delays of those that share one with them
_PAUSE = 0.5  # seconds between two tries of a hand
_REST = 30.0  # seconds that a hand waits for the rest of a reply, and twice as many after each that took longer


@dataclass
class _Hand:
    """A thread, for how many seconds it may take over one reply, and of which letter it is fetching that since when."""

    rest: float
    fetching: str = ""
    since: float = 0.0


class Pulling:
    """The replies to letters that are out, by Flower's ids of the messages that carry them."""

    def __init__(self, grid: Grid, sites: int) -> None:
        self._grid = grid
        self._waiting: defaultdict[int, set[str]] = defaultdict(set)
        self._closed = threading.Event()
        self._came: queue.SimpleQueue[tuple[str, Message | Exception]] = queue.SimpleQueue()
        self._hands = [_Hand(_REST) for _ in range(min(sites, _MOST_HANDS))]
        for place, hand in enumerate(self._hands):
            self._set_to_work(place, hand)

    def expect(self, site: int, sent: str) -> None:
        """A letter has gone to a site."""
        self._waiting[site % len(self._hands)].add(sent)

    def arrived(self, seconds: float) -> list[tuple[str, Message | Exception]]:
        """What has come, each with the id of its letter, after at most so many seconds; what failed is an exception."""
        self._give_up()
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

    def _set_to_work(self, place: int, hand: _Hand) -> None:
        self._hands[place] = hand
        threading.Thread(target=self._pull, args=(place, hand), daemon=True).start()

    def _give_up(self) -> None:
        """Put another in the place of each hand that takes too long over a reply: what it brings yet is dropped."""
        for place, hand in enumerate(self._hands):
            sent = hand.fetching
            if sent and time.monotonic() > hand.since + hand.rest:
                self._waiting[place].discard(sent)
                self._came.put((sent, TimeoutError(f"its rest did not come in {hand.rest:g} s")))
                self._set_to_work(place, _Hand(2 * hand.rest))

    def _pull(self, place: int, hand: _Hand) -> None:
        while not self._closed.wait(_PAUSE):
            for sent in [*self._waiting[place]]:
                came: list[Message | Exception]
                hand.since, hand.fetching = time.monotonic(), sent
                try:
                    came = list(self._grid.pull_messages([sent]))
                except Exception as error:  # whatever a hostile site sends, it must not end the run
                    came = [error]
                if self._hands[place] is not hand:
                    return
                hand.fetching = ""
                if came:
                    self._waiting[place].discard(sent)
                    self._came.put((sent, came[0]))
