"""The grid without processes: the ClientApp is called where the aggregator runs."""

from __future__ import annotations

from federation.contract.reference import Reference
from federation.grids.nodes import in_company
from federation.grids.queue import QueueGrid
from federation.grids.replies import handle
from federation.grids.simulation import Progress


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
