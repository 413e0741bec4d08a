"""The Flower ClientApp: one handler per question that this installation can answer, and one for the roll call.

Messages cross the trust boundary here. What a node serves, and what it may be asked, stands in its own configuration
(`parties.holdings.cohort.Cohort`), never in a message; a question is checked against its types as it is read
(`federation.grids.codec`) and against the node's limits, declarations and allowance before a row is touched
(`parties.guard.answering`); and an error leaves a deployed node as its type alone, as its text could quote what a
party holds, or name a file of the site.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from federation.contract.errors import FederationError
from federation.contract.submission import check_submission
from federation.grids.codec import decode_question, encode_submission
from federation.grids.nodes import node_config
from federation.grids.replies import PREPARE, failed
from federation.grids.stock import ROLL_CALL, present
from parties.guard.answering import answered
from parties.guard.registry import kinds, question_type
from parties.holdings.cohort import Cohort, Tampering, Unconfigured

app = ClientApp()
_log = logging.getLogger(__name__)


def _guarded(act: Callable[[Cohort, Message], RecordDict]) -> Callable[[Message, Context], Message]:
    """A handler that replies with what `act` makes of a message, or with an error that quotes nothing private."""

    def handle(message: Message, context: Context) -> Message:
        simulated = "seed" in context.node_config
        try:
            cohort = Cohort.from_config(node_config(context))
            simulated = cohort.seed is not None
            return Message(act(cohort, message), reply_to=message)
        except Exception as error:  # its text may quote what a site holds, so only a simulation's node tells it
            _log.debug("a node could not answer", exc_info=True)
            if not simulated and isinstance(error, FederationError):
                _log.warning("this node does not answer: %s", error)  # in its own log, which stays there
            return failed(message, error, told=simulated or isinstance(error, Unconfigured))

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
