"""The Flower ClientApp: one handler per question that this installation can answer.

What a node serves stands in its own configuration (`parties.holdings.Cohort`), never in a message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_type_hints

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from federation.grids.codec import decode_question, encode_submission
from federation.messages import check_submission
from federation.registry import questions
from parties.holdings import Cohort

app = ClientApp()


def _handler(answer: Callable[[Cohort, Any], Any]) -> Callable[[Message, Context], Message]:
    question_type = get_type_hints(answer)["question"]

    def handle(message: Message, context: Context) -> Message:
        question = decode_question(message.content, question_type)
        submission = answer(Cohort.from_config(context.node_config), question)
        check_submission(question, submission)  # a fault of ours is found here, not at the aggregator
        return Message(encode_submission(submission, question.fields()), reply_to=message)

    return handle


for _name, _entry in questions().items():
    app.query(_name)(_handler(_entry.load()))
