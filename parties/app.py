"""The Flower ClientApp of a simulation: one handler for each installed kind of query, and one for the roll call.

Messages cross the trust boundary here as they do at a site (`parties.site`). A node's own configuration names the
parties that it serves (`parties.party_data.cohort.Cohort`); no message does. A query is checked against its types as
it is read (`federation.engines.codec`), and against the node's limits before a row is touched
(`parties.guard.answering`).

The app does not serve real rows: Flower's own node runs whatever app a submitted run brings along.
"""

import logging
from collections.abc import Callable

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from federation.contract.query import check_submission
from federation.engines.codec import decode_question, encode_submission
from federation.engines.nodes import PREPARE, ROLL_CALL, failed, node_config, present
from parties.guard.answering import answered, kinds, question_type
from parties.party_data.cohort import Cohort, Tampering

app = ClientApp()
_log = logging.getLogger(__name__)


def _guarded(act: Callable[[Cohort, Message], RecordDict]) -> Callable[[Message, Context], Message]:
    """A handler that replies with what `act` makes of a message, or with an error and its cause."""

    def handle(message: Message, context: Context) -> Message:
        try:
            return Message(act(Cohort.from_config(node_config(context)), message), reply_to=message)
        except Exception as error:
            _log.debug("a node could not answer", exc_info=True)
            return failed(message, error)

    return handle


def _handler(kind: str) -> Callable[[Message, Context], Message]:
    """Answers with what is installed, which is imported when it is asked for: a broken package costs no other."""

    def respond(cohort: Cohort, message: Message) -> RecordDict:
        question = decode_question(message.content, question_type(kind))
        submission = answered(cohort, question)
        check_submission(question, submission)  # a fault of ours is found here, not at the aggregator
        if isinstance(cohort.provider, Tampering):
            submission = cohort.provider.sent(question, submission)
        return encode_submission(submission, question.fields())

    return _guarded(respond)


def _prepare(cohort: Cohort, message: Message) -> RecordDict:
    """Load where this node's rows come from, while the aggregator still looks at the public rows."""
    cohort.provider  # noqa: B018
    return RecordDict()


app.query(PREPARE)(_guarded(_prepare))
app.query(ROLL_CALL)(present)
for _kind in kinds():
    app.query(_kind)(_handler(_kind))
