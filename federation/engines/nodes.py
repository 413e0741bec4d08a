"""Nodes of a simulation and the grids that all engines share: placement of parties, messages and replies.

Each node serves one batch of consecutive party numbers, which the node's own configuration names. Stock Flower
configures its simulated nodes with a partition number only. `Placement.publish` can therefore also give the placement
to the nodes of one run on this machine, as a file in Flower's home.

- `SimulationGrid` is the interface of every engine: it places parties on nodes, trial by trial.
- `QueueGrid` queues messages by node, so that a node answers all queries to it in a row.
- `StockGrid` wraps a grid that Flower itself provides. Its nodes are numbered by their partition.
- `handle` turns an exception at a node into an error reply with a one-line reason, on every engine.

Flower's nodes have random numbers and join when they are ready. `StockGrid` therefore sends a roll call, and each node
replies with the partition number in its configuration (`present`). Both sides of this call are in this module.
"""

import json
import os
import re
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from flwr.app import DEFAULT_TTL, ConfigRecord, Context, Error, Message, Metadata, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid
from flwr.supercore.run import Run

from federation.contract.errors import FederationError, InputError, QuorumError
from federation.contract.plugins import Reference

_ANSWERS = 1 << 24  # entries that one node answers at most: larger arrays are returned to the system and fetched again
_MOST_BATCHED, _MOST_ALONE = 4096, 16


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def most_per_node(batched: bool, rows: int) -> int:
    """Parties that it pays to put behind one node when each answers about `rows` public rows.

    Parties that are trained together gain from company; those trained one by one do not, and few of them per node
    show progress and share out evenly.
    """
    return min(_MOST_BATCHED, max(_MOST_ALONE, _ANSWERS // rows)) if batched else _MOST_ALONE


def cohort_size(parties: int, workers: int, wanted: int | None, most: int) -> int:
    """Parties behind each node: `wanted`, or at most `most` in equally many nodes for each worker when None.

    Results do not depend on it. Parties that are trained together take less time each the more they are.

    Examples:
        >>> cohort_size(1000, workers=4, wanted=None, most=4096), cohort_size(1000, workers=4, wanted=None, most=16)
        (250, 16)
    """
    if wanted is not None:
        return min(wanted, parties)
    shares = -(-parties // (workers * most))
    return -(-parties // (workers * shares))


@dataclass(frozen=True)
class Placement:
    """Who serves whom in a simulated world: partition i the parties i*per_node to (i+1)*per_node - 1.

    `holdings` is the provider of the parties' rows (`parties.party_data.cohort.Provider`), `seed` keys their
    randomness.

    Examples:
        >>> placement = Placement(parties=10, per_node=4, holdings=Reference("builtins:dict"), seed=1)
        >>> [(node["first-party"], node["parties"]) for node in map(placement.config, range(placement.nodes))]
        [(0, 4), (4, 4), (8, 2)]
    """

    parties: int
    per_node: int
    holdings: Reference
    seed: int

    @property
    def nodes(self) -> int:
        """How many nodes serve a party."""
        return -(-self.parties // self.per_node)

    def config(self, partition: int) -> dict[str, Any]:
        """The configuration of a node that `parties.party_data.cohort.Cohort` reads."""
        first = partition * self.per_node
        return {
            "partition-id": partition,
            "holdings": self.holdings.to_json(),
            "first-party": first,
            "parties": min(self.per_node, self.parties - first),
            "seed": self.seed,
        }

    def contexts(self) -> list[Context]:
        """One context per node; node n is partition n - 1."""
        return [Context(1, number + 1, self.config(number), RecordDict(), {}) for number in range(self.nodes)]

    def publish(self, run_id: int) -> Path:
        """Tell the nodes of a Flower run on this machine; returns the file, for the caller to remove after the run."""
        path = _published(run_id)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = [self.parties, self.per_node, self.holdings.to_json(), self.seed]
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(record))
        partial.replace(path)
        return path


def _published(run_id: int) -> Path:
    home = os.environ.get("FLWR_HOME")
    return (Path(home) if home else Path.home() / ".flwr") / "federation" / f"{run_id}.json"


def node_config(context: Context) -> Mapping[str, Any]:
    """A node's own configuration; what it lacks comes from the placement published for its run, if there is one."""
    config: Mapping[str, Any] = context.node_config
    if "holdings" in config or "partition-id" not in config:
        return config
    try:
        parties, per_node, holdings, seed = json.loads(_published(context.run_id).read_text())
    except OSError:
        return config
    return Placement(parties, per_node, Reference.from_json(holdings), seed).config(int(config["partition-id"]))


def in_company(contexts: Sequence[Context]) -> list[Context]:
    """The same nodes, told whose parties are served by their process in a row: those may be trained together.

    Nodes of consecutive parties, in order; of others each is told nothing.
    """
    served = [(int(node.node_config["first-party"]), int(node.node_config["parties"])) for node in contexts]
    if not served or any(first + count != following for (first, count), (following, _) in pairwise(served)):
        return list(contexts)
    company = {"first-of-company": served[0][0], "company": sum(count for _, count in served)}
    return [replace(context, node_config={**context.node_config, **company}) for context in contexts]


def halves(context: Context) -> list[Context]:
    """The two halves of a node's cohort as nodes of their own, none when it is a single party."""
    first, count = int(context.node_config["first-party"]), int(context.node_config["parties"])
    if count == 1:
        return []
    middle = count // 2
    return [
        replace(context, node_config={**context.node_config, "first-party": start, "parties": size})
        for start, size in ((first, middle), (first + middle, count - middle))
    ]


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


class SimulationGrid(Grid):  # type: ignore[misc, unused-ignore]  # flwr is not typed
    """A Flower grid whose nodes are numbered from 1 and serve whom the latest placement says.

    `on_reply(answered, sent)` is called after every reply.
    """

    workers = 1  # processes that answer at the same time
    _sent = _answered = 0

    def __init__(self, on_reply: "Progress | None" = None) -> None:
        self._on_reply = on_reply

    def _heard(self) -> None:
        """Tell of one more reply."""
        self._answered += 1
        if self._on_reply is not None:
            self._on_reply(self._answered, self._sent)

    def cohort(self, parties: int, wanted: int | None, most: int) -> int:
        """Parties behind each node of a world with so many: `wanted`, or up to `most` when None, as suits this grid."""
        return cohort_size(parties, self.workers, wanted, most)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Push, then pull until all have replied or `timeout` seconds have passed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        waiting = set(self.push_messages(messages))
        replies: list[Message] = []
        while waiting and (deadline is None or time.monotonic() < deadline):
            ready = list(self.pull_messages(waiting))
            replies += ready
            waiting -= {reply.metadata.reply_to_message_id for reply in ready}
        return replies

    @abstractmethod
    def assign(self, placement: Placement) -> None:
        """Serve this placement from now on, as when a new world begins; what was under way is forgotten."""

    @abstractmethod
    def close(self) -> None:
        """End what this grid started."""


class StockGrid(SimulationGrid):
    """Numbers the nodes of a Flower grid: node n is partition n - 1."""

    def __init__(self, grid: Grid, on_reply: "Progress | None" = None) -> None:
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


_TOGETHER = 64  # parties that small nodes make up together in one call, as each call and each training has its price
_SHARES = 8  # calls that a process has before it at least, where several nodes go to it together


class QueueGrid(SimulationGrid):
    """A Flower grid in this process."""

    def __init__(self, on_reply: "Progress | None" = None) -> None:
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


PREPARE = "prepare"  # the query with which a grid asks a process to load what a node serves, ahead of any question


def failed(message: Message, error: Exception) -> Message:
    """The reply of a node that could not answer, with the error's text: no more than a simulation's user may read."""
    reason = str(error) if isinstance(error, FederationError) else f"{type(error).__name__}: {error}".splitlines()[0]
    return Message(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, reason), reply_to=message)


def handle(app: ClientApp, message: Message, context: Context) -> Message:
    """The app's reply; an exception becomes an error reply, as in a deployment."""
    try:
        return app(message, context)
    except Exception as error:  # a party's app may fail in any way; the aggregator must hear of it
        return failed(message, error)


Progress = Callable[[int, int], None]
