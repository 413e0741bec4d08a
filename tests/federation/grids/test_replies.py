"""What goes wrong at a node becomes an error reply with a one-line reason."""

import pytest
from flwr.app import Context, Message, RecordDict
from flwr.common.constant import ErrorCode

from federation.contract.errors import InputError
from federation.engines.inline import InlineGrid
from federation.engines.nodes import handle

CONTEXT = Context(1, 1, {}, RecordDict(), {})


@pytest.fixture
def message():
    return InlineGrid("parties.app:app").create_message(RecordDict(), "query.votes", 1, "")


def test_an_answer_passes_as_it_is(message):
    answer = Message(RecordDict(), reply_to=message)
    assert handle(lambda *given: answer if given == (message, CONTEXT) else None, message, CONTEXT) is answer


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (InputError("rows must be finite; remove row 3"), "rows must be finite; remove row 3"),
        (ValueError("disk\nfull"), "ValueError: disk"),
        (KeyError("holdings"), "KeyError: 'holdings'"),
        (MemoryError(), "MemoryError: "),
    ],
)
def test_an_exception_becomes_an_error_reply_of_one_line(message, error, reason):
    def app(message, context):
        raise error

    reply = handle(app, message, CONTEXT)
    assert reply.has_error()
    assert (reply.error.code, reply.error.reason) == (ErrorCode.CLIENT_APP_RAISED_EXCEPTION, reason)
    assert reply.metadata.reply_to_message_id == message.metadata.message_id


def test_what_ends_the_process_is_no_failure_of_an_app(message):
    def app(message, context):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        handle(app, message, CONTEXT)
