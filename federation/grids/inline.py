"""The grid without processes: the ClientApp is called where the aggregator runs."""

from __future__ import annotations

from federation.contract.reference import Reference
from federation.grids.queue import QueueGrid
from federation.grids.replies import handle
from federation.grids.simulation import Progress


class InlineGrid(QueueGrid):
    """Answers node by node, when replies are pulled. `client_app` is `module:attribute`, as in Flower."""

    def __init__(self, client_app: str, on_reply: Progress | None = None) -> None:
        super().__init__(on_reply)
        self._app = Reference(client_app).load()

    def _advance(self) -> None:
        if self._queue:
            node, messages = self._next()
            self._accept(handle(self._app, message, self.nodes[node]) for message in messages)

    def close(self) -> None:
        """Nothing is held that would have to be released."""
