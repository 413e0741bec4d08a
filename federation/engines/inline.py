"""The inline engine: the client app runs in the process of the aggregator.

`MeasuredGrid` also measures the seconds and bytes of the parties, apart from the aggregator's.
"""

import time
from typing import Any, Literal

from flwr.app import Array, Context, Message, RecordDict

from federation.contract.plugins import Reference
from federation.engines.nodes import Progress, QueueGrid, SimulationGrid, handle, in_company


class InlineGrid(QueueGrid):
    """Answers node by node, a few of many small ones, when replies are pulled.

    `client_app` is `module:attribute`, as in Flower.
    """

    def __init__(self, client_app: str, on_reply: Progress | None = None) -> None:
        super().__init__(on_reply)
        self._app = Reference(client_app).load()

    def _advance(self) -> None:
        if self._queue:
            taken = self._next_few(busy=1)
            contexts = in_company([self.nodes[node] for node, _ in taken])
            for context, (_, messages) in zip(contexts, taken, strict=True):
                self._accept(handle(self._app, message, context) for message in messages)

    def close(self) -> None:
        """Nothing is held that would have to be released."""


CLIENT_APP = "parties.app:app"


def open_grid(
    kind: Literal["inline", "ray", "flower"],
    *,
    workers: int | None = None,
    address: str | None = None,
    on_reply: Progress | None = None,
) -> SimulationGrid:
    """A grid with no nodes yet: `assign` a placement world by world, and close the grid after use.

    `workers` (one per processor when None) is for `ray` and `flower`, `address` for `ray`. Raises `InputError` when
    Ray cannot be used.
    """
    if kind == "inline":
        return InlineGrid(CLIENT_APP, on_reply)
    if kind == "flower":
        from federation.engines.flower import FlowerGrid

        return FlowerGrid(CLIENT_APP, workers, on_reply)
    from federation.engines.ray import RayGrid

    return RayGrid(CLIENT_APP, workers, address, on_reply)


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
