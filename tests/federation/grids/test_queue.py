"""The queue of our own grids: questions to one node are answered in a row, and nothing of an earlier world is left."""

import pytest
from flwr.app import DEFAULT_TTL, Message, RecordDict
from flwr.supercore.run import Run
from support.worlds import SYNTHETIC

from federation.engines.nodes import Placement, QueueGrid


class Echo(QueueGrid):
    """Answers node by node with nothing, and notes whom it served."""

    served = ()

    def _advance(self):
        if self._queue:
            node, messages = self._next()
            self.served += ((node, [message.metadata.message_type for message in messages]),)
            self._accept(Message(RecordDict(), reply_to=message) for message in messages)

    def close(self):
        """Nothing to release."""


@pytest.fixture
def grid():
    made = Echo()
    made.assign(Placement(6, 2, SYNTHETIC, 1))
    return made


def pushed(grid, *asked):
    return list(grid.push_messages([grid.create_message(RecordDict(), kind, node, "") for node, kind in asked]))


def test_all_questions_to_a_node_are_answered_in_a_row_the_longest_waiting_first(grid):
    identifiers = pushed(grid, (2, "query.a"), (1, "query.a"), (2, "query.b"))
    assert len(set(identifiers)) == 3
    assert grid.served == ()  # nothing runs before replies are pulled
    first = [reply.metadata.reply_to_message_id for reply in grid.pull_messages(identifiers)]
    assert first == [identifiers[0], identifiers[2]]
    assert grid.served == ((2, ["query.a", "query.b"]),)
    assert [reply.metadata.reply_to_message_id for reply in grid.pull_messages(identifiers)] == [identifiers[1]]
    assert list(grid.pull_messages(identifiers)) == []


@pytest.mark.parametrize(
    ("nodes", "parties", "busy", "together"),
    [
        (1000, 1, 1, 64),
        (1000, 1, 4, 31),
        (1000, 30, 1, 2),
        (1000, 100, 1, 1),
        (8, 1, 1, 1),
        (1, 1, 1, 1),
        (17, 1, 1, 2),
    ],
)
def test_small_nodes_go_together_while_there_are_many(nodes, parties, busy, together):
    grid = Echo()
    grid.assign(Placement(nodes * parties, parties, SYNTHETIC, 1))
    pushed(grid, *((node, "query.a") for node in grid.get_node_ids()))
    assert [node for node, _ in grid._next_few(busy)] == list(range(1, together + 1))


def test_replies_wait_for_whoever_asked(grid):
    mine, theirs = pushed(grid, (1, "query.a"), (1, "query.b"))
    assert [reply.metadata.reply_to_message_id for reply in grid.pull_messages([theirs])] == [theirs]
    assert [reply.metadata.reply_to_message_id for reply in grid.pull_messages({mine})] == [mine]
    assert len(grid.served) == 1  # the second was ready


def test_a_new_world_forgets_what_was_under_way(grid):
    waiting = pushed(grid, (1, "query.a"))
    grid.assign(Placement(9, 3, SYNTHETIC, 2))
    assert list(grid.pull_messages(waiting)) == []
    assert list(grid.get_node_ids()) == [1, 2, 3]
    assert {node.node_config["parties"] for node in grid.nodes.values()} == {3}
    assert grid.served == ()


def test_messages_say_whom_they_are_for_and_how_long_they_count(grid):
    message = grid.create_message(RecordDict(), "query.a", 3, "group")
    known = message.metadata
    assert (known.dst_node_id, known.message_type, known.group_id, known.ttl) == (3, "query.a", "group", DEFAULT_TTL)
    assert grid.create_message(RecordDict(), "query.a", 3, "", ttl=5.0).metadata.ttl == 5.0


def test_a_local_run_has_no_description_until_one_is_set(grid):
    with pytest.raises(RuntimeError, match="which has no description"):
        _ = grid.run
    described = Run.create_empty(7)
    grid.set_run(described)
    assert grid.run is described
