"""The grid without processes, with a clock: seconds and bytes of the parties' side, apart from the aggregator's."""

from __future__ import annotations

import time
from typing import Any

from flwr.app import Array, Context, Message, RecordDict

from federation.grids.inline import InlineGrid
from federation.grids.simulation import Progress


class MeasuredGrid(InlineGrid):
    """An inline grid that adds up what answering takes.

    Attributes:
        answering: processor seconds of this process within the parties' app.
        messages: how many were answered.
        asked: bytes of all different questions, which are what one node is sent.
        sent: bytes of all answers.
    """

    def __init__(self, client_app: str, on_reply: Progress | None = None) -> None:
        super().__init__(client_app, on_reply)
        self._answer, self._app = self._app, self._measured
        self._known: dict[int, RecordDict] = {}  # by id; holding them keeps ids from being used again
        self.answering = 0.0
        self.messages = self.asked = self.sent = 0

    def _measured(self, message: Message, context: Context) -> Any:
        if id(message.content) not in self._known:
            self._known[id(message.content)] = message.content
            self.asked += _bytes(message.content)
        self.messages += 1
        started = time.process_time()
        try:
            reply = self._answer(message, context)
        finally:
            self.answering += time.process_time() - started
        self.sent += 0 if reply.has_error() else _bytes(reply.content)
        return reply


def _bytes(content: RecordDict) -> int:
    """Of the arrays; the few other values of a message weigh nothing beside them."""
    values = (value for record in content.values() for value in record.values())
    return sum(len(value.data) for value in values if isinstance(value, Array))
