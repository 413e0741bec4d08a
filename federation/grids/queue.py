"""What our own grids share: messages queue by node, so all questions to one node are answered in a row."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Set

from flwr.app import DEFAULT_TTL, Context, Message, Metadata, RecordDict
from flwr.supercore.run import Run

from federation.grids.nodes import Placement
from federation.grids.simulation import Progress, SimulationGrid

_TOGETHER = 64  # parties that small nodes make up together in one call, as each call and each training has its price
_SHARES = 8  # calls that a process has before it at least, where several nodes go to it together


class QueueGrid(SimulationGrid):
    """A Flower grid in this process."""

    def __init__(self, on_reply: Progress | None = None) -> None:
        super().__init__(on_reply)
        self._run: Run | None = None
        self._reset({})

    def assign(self, placement: Placement) -> None:
        """Serve this placement from now on, as when a new world begins; what was under way is forgotten."""
        self._reset({context.node_id: context for context in placement.contexts()})

    def _reset(self, nodes: dict[int, Context]) -> None:
        self.nodes = nodes
        self._queue: dict[int, list[Message]] = {}
        self._replies: dict[str, Message] = {}
        self._made = self._sent = self._answered = 0

    def set_run(self, run: Run) -> None:
        """Keep the run's description."""
        self._run = run

    @property
    def run(self) -> Run:
        """The run's description; `RuntimeError` when none was set."""
        if self._run is None:
            raise RuntimeError("this grid serves a local run, which has no description")
        return self._run

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        """A message from the aggregator to one node."""
        self._made += 1
        metadata = Metadata(
            run_id=1,
            message_id=str(self._made),
            src_node_id=0,  # the aggregator
            dst_node_id=dst_node_id,
            reply_to_message_id="",
            group_id=group_id,
            created_at=time.time(),
            ttl=ttl or DEFAULT_TTL,
            message_type=message_type,
        )
        return Message(content=content, metadata=metadata)

    def get_node_ids(self) -> Iterable[int]:
        """Ids of all nodes."""
        return list(self.nodes)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Queue messages; nothing runs before replies are pulled."""
        ids = []
        for message in messages:
            self._queue.setdefault(message.metadata.dst_node_id, []).append(message)
            ids.append(message.metadata.message_id)
        self._sent += len(ids)
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Replies that are ready, after a short wait for the next one when there is none."""
        wanted = message_ids if isinstance(message_ids, Set) else set(message_ids)
        if self._replies.keys().isdisjoint(wanted):
            self._advance()
        return [self._replies.pop(identifier) for identifier in list(self._replies) if identifier in wanted]

    def _accept(self, replies: Iterable[Message]) -> None:
        for reply in replies:
            self._replies[reply.metadata.reply_to_message_id] = reply
            self._heard()

    def _next(self) -> tuple[int, list[Message]]:
        """The node that has waited longest, and all its messages, taken off the queue."""
        node = next(iter(self._queue))
        return node, self._queue.pop(node)

    def _next_few(self, busy: int) -> list[tuple[int, list[Message]]]:
        """The next nodes for one of `busy` processes: one, or several small ones while there are many."""
        each = int(self.nodes[next(iter(self._queue))].node_config["parties"])
        together = min(_TOGETHER // each, (len(self._queue) - 1) // (_SHARES * busy))
        return [self._next() for _ in range(max(1, together))]

    @abstractmethod
    def _advance(self) -> None:
        """Bring in some replies, or return after a short wait."""
