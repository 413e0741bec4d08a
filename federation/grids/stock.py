"""Grids that Flower itself provides, as a simulation sees them: nodes numbered by their partition.

Flower's nodes have random ids and join when they are ready, so they are called up: each tells its partition number, as
its own configuration has it. Both sides of that call are here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path

from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.run import Run

from federation.contract.errors import FederationError, InputError, QuorumError
from federation.grids.nodes import Placement
from federation.grids.simulation import Progress, SimulationGrid

ROLL_CALL = "roll_call"  # the query that `present` answers
_PATIENCE = 120.0  # seconds for a node to join and to say which partition it is
_PAUSE = 0.1  # seconds between pulls that brought nothing, as in Flower's own loop
_DEATHS = ("ActorDiedError", "ActorUnavailableError", "RayActorError")
DIED = "the worker process died, and Flower's simulation does not replace it; --engine ray does"


def present(message: Message, context: Context) -> Message:
    """Answers a roll call: which partition this node is, and how many there are where its configuration says so.

    Raises `InputError` when the configuration has no partition number, or one that is none.
    """
    if "partition-id" not in context.node_config:
        raise InputError("the node's configuration lacks 'partition-id'; number the nodes from 0")
    own = context.node_config
    try:
        known = {name: int(own[name]) for name in ("partition-id", "num-partitions") if name in own}
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError("partition-id and num-partitions of a node must be whole numbers; correct them") from error
    return Message(RecordDict({"node": ConfigRecord(known)}), reply_to=message)


class StockGrid(SimulationGrid):
    """Numbers the nodes of a Flower grid: node n is partition n - 1."""

    def __init__(self, grid: Grid, on_reply: Progress | None = None) -> None:
        super().__init__(on_reply)
        self._attach(grid)

    def _attach(self, grid: Grid) -> None:
        """Begin with a grid none of whose nodes is known."""
        self._grid = grid
        self._published: Path | None = None
        self._ids: dict[int, int] = {}  # Flower's, of the nodes whose partitions are known
        self._total = 0  # partitions, 0 where nodes do not know
        self._serving = 0  # nodes
        self.died = False  # a worker process, which Flower's simulation does not get over

    @property
    def partitions(self) -> int:
        """How many nodes there will be, by what the first one knows. Raises `QuorumError` when none joins."""
        self._call_up(1)
        return self._total or len(list(self._grid.get_node_ids()))

    def cohort(self, parties: int, wanted: int | None, most: int) -> int:
        """`wanted`, or an even share of the parties for each node. Raises `InputError` for too few nodes."""
        nodes = self.partitions
        if wanted is not None and -(-parties // wanted) > nodes:
            raise InputError(
                f"engine.parties_per_node: {wanted} needs {-(-parties // wanted)} nodes, and this run has {nodes}; "
                "start it with more or set auto"
            )
        return wanted if wanted is not None else -(-parties // nodes)

    def assign(self, placement: Placement) -> None:
        """Tell the nodes of this machine whom they serve, and wait for as many as serve someone.

        Raises `QuorumError` when they do not join.
        """
        self._published = placement.publish(self._grid.run.run_id)
        self._call_up(placement.nodes)
        self._serving, self._sent, self._answered = placement.nodes, 0, 0

    def _call_up(self, needed: int) -> None:
        """Learn the partitions of nodes until 0 to needed - 1 have answered."""
        deadline = time.monotonic() + _PATIENCE
        while not set(range(needed)) <= set(self._ids) and not (needed == 1 and self._ids):
            known = set(self._ids.values())
            absent = [node for node in self._grid.get_node_ids() if node not in known]
            asked = [Message(RecordDict(), node, f"query.{ROLL_CALL}", group_id="") for node in absent]
            for reply in self._grid.send_and_receive(asked, timeout=max(0.0, deadline - time.monotonic())):
                self._register(reply)
            if time.monotonic() > deadline:
                raise QuorumError(
                    f"{len(self._ids)} of {needed} nodes joined within {_PATIENCE:g} seconds; start the "
                    "others, or ask for fewer nodes"
                )
            if not absent:
                time.sleep(_PAUSE)

    def _register(self, reply: Message) -> None:
        if reply.has_error():
            raise FederationError(f"a node cannot be used: {self._reason(reply)}")
        try:
            known = reply.content["node"]
            partition, total = int(known["partition-id"]), int(known.get("num-partitions", 0))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError("a node answered the roll call with something else; start it with this version") from error
        if partition in self._ids:
            raise InputError(
                f"two nodes are both partition {partition}; nothing is released, as one is not who it says"
            )
        self._ids[partition] = reply.metadata.src_node_id
        self._total = total

    def _reason(self, reply: Message) -> str:
        """An error's cause without the traceback in which Flower's simulation wraps it."""
        text = re.sub(r"\x1b\[\d+m", "", str(reply.error.reason))
        if any(name in text for name in _DEATHS):
            self.died = True
            return DIED
        return text.strip().splitlines()[-1] if text.strip() else "no reason given"

    def set_run(self, run: Run) -> None:
        """Describe the run to the underlying grid."""
        self._grid.set_run(run)

    @property
    def run(self) -> Run:
        """The run's description."""
        return self._grid.run

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        """A message from the aggregator to one node, by its number."""
        return Message(content, self._ids[dst_node_id - 1], message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        """Numbers of all nodes that serve a party."""
        return range(1, self._serving + 1)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Send messages; returns their ids."""
        ids = list(self._grid.push_messages(messages))
        self._sent += len(ids)
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Replies that have arrived, after a pause when there is none; causes of errors are one line each."""
        replies = list(self._grid.pull_messages(message_ids))
        for reply in replies:
            if reply.has_error():
                reply.error = Error(reply.error.code, self._reason(reply))
            self._heard()
        if not replies:
            time.sleep(_PAUSE)
        return replies

    def close(self) -> None:
        """Withdraw what was published for the nodes."""
        if self._published is not None:
            self._published.unlink(missing_ok=True)
