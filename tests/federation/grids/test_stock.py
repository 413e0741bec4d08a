"""Flower's own grids as a simulation sees them: nodes with random ids, numbered by what their configuration says."""

from pathlib import Path

import pytest
from flwr.app import Context, Error, Message, RecordDict
from support.flower_nodes import RUN, ScatteredGrid, partitions
from support.worlds import SYNTHETIC, run

from federation.contract.errors import FederationError, InputError, QuorumError
from federation.engines import nodes as stock
from federation.engines.inline import InlineGrid, open_grid
from federation.engines.nodes import PREPARE, ROLL_CALL, Placement, StockGrid, handle, present
from parties.app import app
from parties.party_data import cohort as holdings

pytestmark = pytest.mark.usefixtures("flower_process")


def nodes(count):
    """Each with one party."""
    return Placement(count, 1, SYNTHETIC, 1)


def test_scattered_nodes_release_the_bytes_of_inline(make_plan, flower_process):
    plan = make_plan(individual=10)
    heard = []
    grid = StockGrid(ScatteredGrid(partitions(7)), on_reply=lambda *counts: heard.append(counts))
    assert grid.partitions == 7
    size = grid.cohort(plan.parties, None, 4096)
    assert size == 6
    assert run(grid, plan, size) == run(open_grid("inline"), plan, 40)
    assert heard[-1] == (14, 14)
    assert run(grid, plan, 10) == run(open_grid("inline"), plan, 40)  # the same nodes serve another placement
    assert list(grid.get_node_ids()) == [1, 2, 3, 4]
    grid.close()
    assert list((flower_process / "federation").iterdir()) == []


def test_a_node_without_holdings_says_so(monkeypatch, make_plan):
    """As where what is published for the nodes does not reach their machine."""
    monkeypatch.setattr(Placement, "publish", lambda placement, run: Path("nowhere"))
    with pytest.raises(QuorumError, match="40 x the node's configuration lacks 'holdings'"):
        run(StockGrid(ScatteredGrid(partitions(2))), make_plan(), 20)


def test_a_node_without_a_number_cannot_be_used():
    with pytest.raises(FederationError, match="lacks 'partition-id'; number the nodes from 0"):
        StockGrid(ScatteredGrid([{}])).assign(nodes(1))


def test_a_node_that_answers_the_roll_call_with_something_else_ends_the_run(monkeypatch):
    grid = ScatteredGrid(partitions(1))
    answer = grid.send_and_receive

    def garbled(messages, timeout=None):
        return [Message(RecordDict(), reply_to=message) for message in messages] if messages else answer([])

    monkeypatch.setattr(grid, "send_and_receive", garbled)
    with pytest.raises(InputError, match="answered the roll call with something else"):
        StockGrid(grid).assign(nodes(1))


def test_two_nodes_with_one_number_end_the_run():
    with pytest.raises(InputError, match="two nodes are both partition 1"):
        StockGrid(ScatteredGrid([{"partition-id": 1}, {"partition-id": 1}, {"partition-id": 0}])).assign(nodes(2))


def test_absent_nodes_are_named_with_their_number(monkeypatch):
    monkeypatch.setattr(stock, "_PATIENCE", 0.3)
    with pytest.raises(QuorumError, match=r"2 of 3 nodes joined within 0\.3 seconds"):
        StockGrid(ScatteredGrid(partitions(2))).assign(nodes(3))


def test_more_nodes_than_there_are_cannot_be_asked_for():
    grid = StockGrid(ScatteredGrid(partitions(4)))
    with pytest.raises(InputError, match=r"engine\.parties_per_node: 1 needs 200 nodes, and this run has 4"):
        grid.cohort(200, 1, 4096)


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


def test_what_is_published_for_another_run_is_not_taken(monkeypatch, make_plan):
    publish = Placement.publish
    monkeypatch.setattr(Placement, "publish", lambda placement, run: publish(placement, run + 1))
    with pytest.raises(QuorumError, match="lacks 'holdings'"):
        run(StockGrid(ScatteredGrid(partitions(2))), make_plan(), 20)


def test_a_message_cannot_say_what_a_node_serves(make_plan):
    # The configuration of the run comes from the aggregator, like its messages: neither may name holdings.
    context = Context(RUN, 5, {"partition-id": 0}, RecordDict(), {"holdings": SYNTHETIC.to_json()})
    message = InlineGrid("parties.app:app").create_message(RecordDict(), "query.votes", 5, "")
    assert handle(app, message, context).error.reason == "the node's configuration lacks 'holdings'"


def test_what_fails_when_rows_are_loaded_is_told_in_a_simulation(monkeypatch):
    def unreadable(reference):
        raise InputError("row 3 holds 'secret'")

    monkeypatch.setattr(holdings, "provider_of", unreadable)
    context = Context(RUN, 5, Placement(1, 1, SYNTHETIC, 1).config(0), RecordDict(), {})
    message = InlineGrid("parties.app:app").create_message(RecordDict(), f"query.{PREPARE}", 5, "")
    assert handle(app, message, context).error.reason == "row 3 holds 'secret'"


@pytest.mark.parametrize("config", [{"partition-id": "x"}, {"partition-id": 0, "num-partitions": "many"},
                                    {"partition-id": float("inf")}])  # fmt: skip
def test_a_partition_that_is_no_number_is_refused(config):
    message = InlineGrid("parties.app:app").create_message(RecordDict(), f"query.{ROLL_CALL}", 5, "")
    with pytest.raises(InputError, match=r"^partition-id and .* must be whole numbers; correct them$"):
        present(message, Context(RUN, 5, config, RecordDict(), {}))
