"""What every grid of a simulation does alike: cohorts for its workers, progress, and waiting for replies."""

import time

import pytest
from flwr.app import Message, RecordDict
from support.worlds import SYNTHETIC

from federation.engines.nodes import Placement, QueueGrid, cohort_size


class Slow(QueueGrid):
    """Answers one node a pull; nodes beyond `last` never answer."""

    last = 10

    def _advance(self):
        for node in [node for node in self._queue if node <= self.last][:1]:
            messages = self._queue.pop(node)
            self._accept(Message(RecordDict(), reply_to=message) for message in messages)

    def close(self):
        """Nothing to release."""


def opened(heard=None):
    grid = Slow(None if heard is None else lambda *counts: heard.append(counts))
    grid.assign(Placement(8, 2, SYNTHETIC, 1))
    return grid, [grid.create_message(RecordDict(), "query.a", node, "") for node in grid.get_node_ids()]


def test_all_replies_are_waited_for_and_each_is_heard_of():
    heard = []
    grid, messages = opened(heard)
    replies = list(grid.send_and_receive(messages))
    answered = {reply.metadata.reply_to_message_id for reply in replies}
    assert answered == {message.metadata.message_id for message in messages}
    assert heard == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_another_world_is_counted_from_the_start():
    heard = []
    grid, messages = opened(heard)
    list(grid.send_and_receive(messages[:3]))
    grid.assign(Placement(2, 1, SYNTHETIC, 1))
    list(grid.send_and_receive([grid.create_message(RecordDict(), "query.a", 1, "")]))
    assert heard == [(1, 3), (2, 3), (3, 3), (1, 1)]


def test_a_time_limit_returns_what_has_arrived():
    grid, messages = opened()
    grid.last = 2
    began = time.monotonic()
    replies = list(grid.send_and_receive(messages, timeout=0.1))
    assert 0.1 <= time.monotonic() - began < 5
    assert len(replies) == 2


def test_nothing_to_send_is_nothing_to_wait_for():
    grid, _ = opened()
    assert list(grid.send_and_receive([])) == []
    assert list(grid.send_and_receive([], timeout=0)) == []


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("wanted", [None, 5])
def test_cohorts_suit_the_workers_of_the_grid(workers, wanted):
    grid, _ = opened()
    grid.workers = workers
    assert grid.cohort(1000, wanted, 16) == cohort_size(1000, workers, wanted, 16)
