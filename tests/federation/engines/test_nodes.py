"""Who serves whom: cohorts cover all parties and share out evenly, placements reach nodes, and cohorts halve.

The queue of our own grids: questions to one node are answered in a row, and nothing of an earlier world is left.

What goes wrong at a node becomes an error reply with a one-line reason.

What every grid of a simulation does alike: cohorts for its workers, progress, and waiting for replies.

Flower's own grids as a simulation sees them: nodes with random ids, numbered by what their configuration says.
"""

import time
from pathlib import Path

import numpy as np
import pytest
from flwr.app import DEFAULT_TTL, Context, Error, Message, RecordDict
from flwr.common.constant import ErrorCode
from flwr.supercore.run import Run
from support.flower_nodes import RUN, ScatteredGrid, partitions
from support.worlds import SYNTHETIC, run

from federation.contract.errors import FederationError, InputError, QuorumError
from federation.contract.plugins import Reference
from federation.engines import nodes as stock
from federation.engines.inline import InlineGrid, open_grid
from federation.engines.nodes import (
    PREPARE,
    ROLL_CALL,
    Placement,
    QueueGrid,
    StockGrid,
    cohort_size,
    halves,
    handle,
    in_company,
    most_per_node,
    node_config,
    present,
)
from parties.app import app
from parties.party_data import cohort as holdings


@pytest.mark.parametrize("parties", [1, 5, 1000, 12345])
@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize(("wanted", "most"), [(None, 4096), (None, 16), (99, 16)])
def test_cohorts_cover_all_parties_and_share_out_evenly(parties, workers, wanted, most):
    grid = Echo()
    grid.workers = workers
    size = grid.cohort(parties, wanted, most)
    assert size == cohort_size(parties, workers, wanted, most)
    assert 1 <= size <= (most if wanted is None else wanted)
    nodes = Placement(parties, size, SYNTHETIC, 1).contexts()
    assert wanted or len(nodes) <= workers or parties > workers * most
    held = [(node.node_config["first-party"], node.node_config["parties"]) for node in nodes]
    assert [first for first, _ in held] == list(np.cumsum([0, *(count for _, count in held[:-1])]))
    assert sum(count for _, count in held) == parties


@pytest.mark.parametrize("rows", [1, 1352, 54021, 10**9])
def test_answers_of_a_node_fit_into_memory(rows):
    assert 16 <= most_per_node(True, rows) <= max(16, 2**24 / rows)
    assert most_per_node(False, rows) == 16


@pytest.mark.usefixtures("flower_process")
def test_a_published_placement_reads_back():
    placement = Placement(10, 4, Reference("support.synthetic:Parties", {"broken": [1]}), 3)
    path = placement.publish(RUN)
    assert path.parent.stat().st_mode & 0o77 == 0  # nobody else may write there
    for partition in range(placement.nodes):
        found = node_config(Context(RUN, 1, {"partition-id": partition}, RecordDict(), {}))
        assert found == placement.config(partition)


@pytest.mark.usefixtures("flower_process")
def test_without_a_published_placement_a_configuration_is_what_it_is():
    for config in ({"partition-id": 0, "holdings": "its own"}, {}, {"partition-id": 0}):
        assert node_config(Context(RUN, 1, config, RecordDict(), {})) == config


def test_nodes_of_consecutive_parties_are_told_of_their_company():
    nodes = Placement(10, 3, SYNTHETIC, 1).contexts()
    together = in_company(nodes[1:])
    told = [(node.node_config["first-of-company"], node.node_config["company"]) for node in together]
    assert told == [(3, 7)] * 3
    for node, before in zip(together, nodes[1:], strict=True):
        assert node.state is before.state  # a node keeps what it has noted
        assert node.node_config.items() >= before.node_config.items()
    assert in_company([nodes[0], nodes[2]]) == [nodes[0], nodes[2]]
    assert in_company([]) == []


@pytest.mark.parametrize("count", [1, 2, 3, 8, 13])
def test_cohorts_halve_down_to_single_parties(count):
    waiting, alone = Placement(count, count, SYNTHETIC, 1).contexts(), []
    while waiting:
        node = waiting.pop()
        parts = halves(node)
        sizes = [part.node_config["parties"] for part in parts]
        assert not parts or (sum(sizes) == node.node_config["parties"] and max(sizes) - min(sizes) <= 1)
        assert all(part.node_config["seed"] == 1 for part in parts)
        waiting += parts
        if not parts:
            alone.append(node.node_config["first-party"])
    assert sorted(alone) == list(range(count))


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


def test_messages_say_whom_they_are_for_and_a_local_run_has_no_description_until_one_is_set(grid):
    known = grid.create_message(RecordDict(), "query.a", 3, "group").metadata
    assert (known.dst_node_id, known.message_type, known.group_id, known.ttl) == (3, "query.a", "group", DEFAULT_TTL)
    assert grid.create_message(RecordDict(), "query.a", 3, "", ttl=5.0).metadata.ttl == 5.0
    with pytest.raises(RuntimeError, match="which"):
        _ = grid.run
    described = Run.create_empty(7)
    grid.set_run(described)
    assert grid.run is described


CONTEXT = Context(1, 1, {}, RecordDict(), {})


def asked(kind):
    return InlineGrid("parties.app:app").create_message(RecordDict(), f"query.{kind}", 5, "")


def failing(error):
    def app(message, context):
        raise error

    return app


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (InputError("rows must be finite; remove row 3"), "rows must be finite; remove row 3"),
        (ValueError("disk\nfull"), "ValueError: disk"),
        (KeyError("holdings"), "KeyError: 'holdings'"),
        (MemoryError(), "MemoryError: "),
    ],
)
def test_an_exception_becomes_an_error_reply_of_one_line(error, reason):
    message = asked("votes")
    reply = handle(failing(error), message, CONTEXT)
    assert reply.has_error()
    assert (reply.error.code, reply.error.reason) == (ErrorCode.CLIENT_APP_RAISED_EXCEPTION, reason)
    assert reply.metadata.reply_to_message_id == message.metadata.message_id


def test_an_answer_passes_as_it_is_and_what_ends_the_process_is_no_failure_of_an_app():
    message = asked("votes")
    answer = Message(RecordDict(), reply_to=message)
    assert handle(lambda *given: answer if given == (message, CONTEXT) else None, message, CONTEXT) is answer
    with pytest.raises(KeyboardInterrupt):
        handle(failing(KeyboardInterrupt()), message, CONTEXT)


class Slow(Echo):
    """Answers one node a pull; nodes beyond `last` never answer."""

    last = 10

    def _advance(self):
        for node in [node for node in self._queue if node <= self.last][:1]:
            messages = self._queue.pop(node)
            self._accept(Message(RecordDict(), reply_to=message) for message in messages)


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
    grid.assign(Placement(2, 1, SYNTHETIC, 1))  # another world is counted from the start
    list(grid.send_and_receive([grid.create_message(RecordDict(), "query.a", 1, "")]))
    assert heard == [(1, 4), (2, 4), (3, 4), (4, 4), (1, 1)]
    assert [list(grid.send_and_receive([], timeout=timeout)) for timeout in (None, 0)] == [[], []]


def test_a_time_limit_returns_what_has_arrived():
    grid, messages = opened()
    grid.last = 2
    began = time.monotonic()
    replies = list(grid.send_and_receive(messages, timeout=0.1))
    assert 0.1 <= time.monotonic() - began < 5
    assert len(replies) == 2


def nodes(count):
    """Each with one party."""
    return Placement(count, 1, SYNTHETIC, 1)


@pytest.mark.usefixtures("flower_process")
def test_scattered_nodes_release_the_bytes_of_inline(make_plan, flower_process):
    plan = make_plan(individual=10)
    heard = []
    grid = StockGrid(ScatteredGrid(partitions(7)), on_reply=lambda *counts: heard.append(counts))
    assert grid.partitions == 7
    size = grid.cohort(plan.terms.parties, None, 4096)
    assert size == 6
    assert run(grid, plan, size) == run(open_grid("inline"), plan, 40)
    assert heard[-1] == (14, 14)
    assert run(grid, plan, 10) == run(open_grid("inline"), plan, 40)  # the same nodes serve another placement
    assert list(grid.get_node_ids()) == [1, 2, 3, 4]
    grid.close()
    assert list((flower_process / "federation").iterdir()) == []


@pytest.mark.usefixtures("flower_process")
@pytest.mark.parametrize("published", ["nowhere", "for another run"])
def test_a_node_without_holdings_says_so(monkeypatch, make_plan, published):
    """As where what is published for the nodes does not reach their machine."""
    publish = Placement.publish
    elsewhere = {"nowhere": lambda placement, run: Path("nowhere")}
    elsewhere["for another run"] = lambda placement, run: publish(placement, run + 1)
    monkeypatch.setattr(Placement, "publish", elsewhere[published])
    with pytest.raises(QuorumError, match=r"40.*holdings"):
        run(StockGrid(ScatteredGrid(partitions(2))), make_plan(), 20)


@pytest.mark.usefixtures("flower_process")
@pytest.mark.parametrize(
    ("configurations", "error", "told"),
    [
        ([{}], FederationError, r"partition-id.*0"),
        ([{"partition-id": 1}, {"partition-id": 1}, {"partition-id": 0}], InputError, "1"),
    ],
)
def test_nodes_without_a_number_of_their_own_cannot_be_used(configurations, error, told):
    with pytest.raises(error, match=told):
        StockGrid(ScatteredGrid(configurations)).assign(nodes(len(configurations) - 1 or 1))


@pytest.mark.usefixtures("flower_process")
def test_more_nodes_than_there_are_cannot_be_asked_for_and_absent_ones_are_named(monkeypatch):
    monkeypatch.setattr(stock, "_PATIENCE", 0.3)
    with pytest.raises(InputError, match=r"engine\.parties_per_node.*1.*200.*4"):
        StockGrid(ScatteredGrid(partitions(4))).cohort(200, 1, 4096)
    with pytest.raises(QuorumError, match=r"2.*3.*0\.3"):
        StockGrid(ScatteredGrid(partitions(2))).assign(nodes(3))


@pytest.mark.usefixtures("flower_process")
def test_a_node_that_answers_the_roll_call_with_something_else_ends_the_run(monkeypatch):
    grid = ScatteredGrid(partitions(1))

    def garbled(messages, timeout=None):
        return [Message(RecordDict(), reply_to=message) for message in messages]

    monkeypatch.setattr(grid, "send_and_receive", garbled)
    with pytest.raises(InputError):
        StockGrid(grid).assign(nodes(1))


@pytest.mark.usefixtures("flower_process")
@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("\x1b[36mray::run()\x1b[39m\n  Traceback\nValueError: disk full\n", "ValueError: disk full"),
        ("<class 'ray.exceptions.ActorDiedError'>:<'The actor\n died'>", stock.DIED),
        ("", "no reason given"),
    ],
)
def test_errors_are_told_on_one_line(reason, told):
    class Failing(ScatteredGrid):
        def pull_messages(self, message_ids):
            replies = super().pull_messages(message_ids)
            return [Message(Error(0, reason), reply_to=reply) for reply in replies]

    grid = Failing(partitions(1))
    numbered = StockGrid(grid)
    numbered._ids = dict(enumerate(grid.get_node_ids()))
    numbered.assign(nodes(1))
    message = numbered.create_message(RecordDict(), "query.roll_call", 1, "")
    [reply] = numbered.pull_messages(numbered.push_messages([message]))
    assert reply.error.reason == told
    assert numbered.died == (told == stock.DIED)


@pytest.mark.usefixtures("flower_process")
def test_a_message_cannot_say_what_a_node_serves(make_plan):
    # The configuration of the run comes from the aggregator, like its messages: neither may name holdings.
    context = Context(RUN, 5, {"partition-id": 0}, RecordDict(), {"holdings": SYNTHETIC.to_json()})
    assert handle(app, asked("votes"), context).error.reason == "the node's configuration lacks 'holdings'"


@pytest.mark.usefixtures("flower_process")
def test_what_fails_when_rows_are_loaded_is_told_in_a_simulation(monkeypatch):
    monkeypatch.setattr(holdings, "provider_of", lambda reference: failing(InputError("row 3 holds 'secret'"))(0, 0))
    context = Context(RUN, 5, Placement(1, 1, SYNTHETIC, 1).config(0), RecordDict(), {})
    assert handle(app, asked(PREPARE), context).error.reason == "row 3 holds 'secret'"


@pytest.mark.usefixtures("flower_process")
@pytest.mark.parametrize("config", [{"partition-id": "x"}, {"partition-id": 0, "num-partitions": "many"},
                                    {"partition-id": float("inf")}])  # fmt: skip
def test_a_partition_that_is_no_number_is_refused(config):
    with pytest.raises(InputError, match="partition-id"):
        present(asked(ROLL_CALL), Context(RUN, 5, config, RecordDict(), {}))
