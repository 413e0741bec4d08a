"""Messages to a node that keeps dying: its cohort halves until the culprit alone is lost, and nobody with it."""

import numpy as np
import pytest
from flwr.app import Error, Message, RecordDict
from flwr.common.constant import ErrorCode
from support.worlds import SYNTHETIC

from federation.contract.query import Field, Submission
from federation.engines.codec import decode_submission, encode_submission
from federation.engines.inline import InlineGrid
from federation.engines.nodes import Placement
from federation.engines.ray import DIED, Recovery

FIELDS = {"size": Field(())}


def served(context):
    first, count = (context.node_config[name] for name in ("first-party", "parties"))
    return range(first, first + count)


def answer(context, message):
    parties = np.array(served(context))
    sizes = Submission("counts", parties, {"size": 10.0 * parties})
    return Message(encode_submission(sizes, FIELDS), reply_to=message)


@pytest.fixture
def messages():
    grid = InlineGrid("parties.app:app")
    return [grid.create_message(RecordDict(), "query.counts", 1, "") for _ in range(2)]


def node(parties):
    [context] = Placement(parties, parties, SYNTHETIC, 1).contexts()
    return context


def recovered(messages, parties, deadly):
    """All replies, when whoever serves one of the `deadly` dies each time."""
    recovery, waiting = Recovery(messages), [node(parties)]
    while recovery.outstanding:
        context = waiting.pop(0)
        if deadly & set(served(context)):
            waiting += recovery.divide(context)
        else:
            recovery.add(context, [answer(context, message) for message in messages])
    assert waiting == []
    return recovery.replies()


def test_of_a_whole_node_replies_pass_as_they_are(messages):
    context = node(5)
    replies = [answer(context, message) for message in messages]
    recovery = Recovery(messages)
    recovery.add(context, replies)
    assert recovery.outstanding == 0
    assert recovery.replies() is replies


def test_an_error_of_a_whole_node_passes_as_it_is(messages):
    recovery = Recovery(messages)
    recovery.add(node(5), [Message(Error(1, "disk full"), reply_to=message) for message in messages])
    assert {reply.error.reason for reply in recovery.replies()} == {"disk full"}


@pytest.mark.parametrize(("parties", "deadly"), [(2, {1}), (7, {0}), (8, {3, 4}), (13, {12})])
def test_the_culprit_is_lost_alone(messages, parties, deadly):
    replies = recovered(messages, parties, deadly)
    assert [reply.metadata.reply_to_message_id for reply in replies] == [m.metadata.message_id for m in messages]
    for reply in replies:
        found = decode_submission(reply.content, FIELDS)
        assert sorted(found.parties) == [party for party in range(parties) if party not in deadly]
        np.testing.assert_array_equal(found.arrays["size"], 10.0 * found.parties)
        assert found.failures == dict.fromkeys(deadly, DIED)


@pytest.mark.parametrize("parties", [1, 4])
def test_where_everybody_is_lost_every_message_has_an_error(messages, parties):
    replies = recovered(messages, parties, set(range(parties)))
    assert [reply.error.code for reply in replies] == [ErrorCode.CLIENT_APP_CRASHED] * len(messages)
    assert {reply.error.reason for reply in replies} == {DIED}


def test_an_error_of_a_part_loses_the_parties_of_that_part(messages):
    recovery = Recovery(messages)
    first, second = recovery.divide(node(5))
    recovery.add(first, [Message(Error(1, "disk full"), reply_to=message) for message in messages])
    assert recovery.outstanding == 1
    recovery.add(second, [answer(second, message) for message in messages])
    found = decode_submission(recovery.replies()[0].content, FIELDS)
    assert found.failures == {0: "disk full", 1: "disk full"}
    assert sorted(found.parties) == [2, 3, 4]
