"""The Ray engine: worker processes on this machine or on an existing cluster, and recovery from their deaths.

A worker serves whole nodes, a few ahead of need. The driver puts the records of a query into the object store once for
all trials that send the same query. When nothing else is left to do, an idle worker also gets a copy of a late node.
The first response counts, since all are the same.

When a worker dies, the driver retries each node of that worker once, alone, on a fresh worker. If a node kills this
worker too, the driver splits the node in halves until only the faulty part is lost. One party's data must never decide
whether another party is counted, and losing the whole batch would do that.

`Recovery` keeps the messages to one node until every part of the node has replied. A node has one part unless it keeps
killing its worker.
"""

import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import ray
from flwr.app import Array, Context, Error, Message, Metadata, RecordDict
from flwr.common.constant import ErrorCode
from ray.exceptions import RayActorError, RayError

from federation.contract.errors import FederationError, InputError, QuorumError
from federation.contract.plugins import Reference
from federation.contract.randomness import digest
from federation.engines.codec import merge_submissions
from federation.engines.nodes import PREPARE, Placement, Progress, QueueGrid, halves, handle, in_company
from federation.engines.ray_cluster import Head, connect

_AHEAD = 2  # bundles of works in flight per worker: one running, one waiting
_MOST_DEATHS = 200  # of workers in one world, before it is given up
_LATE = 3  # times what bundles usually take, after which an idle worker gets a copy
_WAIT = 1.0  # seconds, after which the aggregator may look at its own time limit
_PATIENCE = 60.0  # seconds without any worker, before waiting for processors is given up
_SLOW = 300.0  # the same where this process has started Ray: nobody else holds processors, so the machine is busy


_Letters = tuple[Context, list[tuple[Any, int]]]  # a node, and for each of its messages metadata and contents' number


@ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")
class _Worker:
    """One process that serves nodes; keeps the public contents that it has seen."""

    def __init__(self, client_app: str, search_path: list[str]) -> None:
        from threadpoolctl import threadpool_limits

        sys.path += [entry for entry in search_path if entry not in sys.path]  # what the driver can import
        self._app = Reference(client_app).load()
        self._limits = threadpool_limits(1)
        self._contents: dict[Any, RecordDict] = {}

    def ready(self) -> None:
        """Nothing to do: the process has started."""

    def prepare(self, context: Context, metadata: Metadata) -> None:
        """Load what such nodes serve; what goes wrong shows when they are asked."""
        handle(self._app, Message(content=RecordDict(), metadata=metadata), context)

    def serve(self, references: list[Any], bundle: list[_Letters]) -> list[tuple[list[Message], RecordDict]]:
        """For each node its replies in order, and its state, which lives with the driver lest a crash reset it."""
        held = self._contents
        self._contents = {one: held[one] if one in held else ray.get(one) for one in references}
        answers = []
        contexts = in_company([context for context, _ in bundle])
        for context, (_, letters) in zip(contexts, bundle, strict=True):
            replies = []
            for metadata, number in letters:
                message = Message(content=self._contents[references[number]], metadata=metadata)
                replies.append(handle(self._app, message, context))
            answers.append((replies, context.state))
        return answers


class _Shared:
    """Object references of questions' records by digest: equal records are put once, those of the last world kept."""

    def __init__(self) -> None:
        self._last: dict[str, Any] = {}
        self.forget_unused()

    def forget_unused(self) -> None:
        """Keep what was asked for since the last call."""
        self._kept, self._last = self._last, {}
        self._known: dict[int, tuple[RecordDict, Any]] = {}  # by id; holding the records keeps ids from being reused

    def reference(self, content: RecordDict) -> Any:
        """Where these records are in the object store; put there on first use."""
        if id(content) not in self._known:
            key = _digest(content)
            if key not in self._last:
                self._last[key] = self._kept[key] if key in self._kept else ray.put(content)
            self._known[id(content)] = (content, self._last[key])
        return self._known[id(content)][1]


def _digest(content: RecordDict) -> str:
    """Equal for equal records; Flower's own object ids are no help, as records that have one cannot be pickled."""
    named = [(f"{name}|{key}", value) for name, record in content.items() for key, value in record.items()]
    arrays = {name: value.numpy() for name, value in named if isinstance(value, Array)}
    return digest(repr([(name, value) for name, value in named if name not in arrays]), arrays)


@dataclass
class _Work:
    """The unanswered messages of one node, or of a part of it; a suspect has killed a worker."""

    context: Context
    node: "Recovery"
    suspect: bool = False


@dataclass(eq=False)
class _Bundle:
    """Works that went to a worker in one call, and as a copy to another where they were late."""

    works: list[_Work]
    sent: float = field(default_factory=time.monotonic)
    copies: int = 0  # that are under way
    done: bool = False

    @property
    def is_single(self) -> bool:
        """Whether a copy may be sent: there is none, and nothing in it has killed a worker."""
        return self.copies == 1 and not self.done and not any(work.suspect for work in self.works)


class RayGrid(QueueGrid):
    """Nodes served by `workers` Ray actors, one per processor when None; `address` joins an existing cluster.

    Raises `InputError` when there is no cluster, or none of its processors becomes free.
    """

    def __init__(
        self, client_app: str, workers: int | None, address: str | None = None, on_reply: Progress | None = None
    ) -> None:
        self._client_app = client_app
        self._owns_ray = connect(address, workers)
        self._head = Head()
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._starting: dict[Any, Any] = {}  # what becomes ready with a worker -> the worker
        self._load: dict[Any, int] = {}  # bundles in flight of every worker that has started
        self._flying: dict[Any, tuple[Any, _Bundle]] = {}
        self._shared = _Shared()
        super().__init__(on_reply)
        try:
            for _ in range(self.workers):
                self._start()
            while not self._load:  # so that starting up is no part of the first world
                self._advance()
        except BaseException:
            self.close()
            raise

    def assign(self, placement: Placement) -> None:
        """Serve this placement from now on; workers still busy with earlier nodes are replaced.

        Raises `FederationError` where Ray has ended since the last answer.
        """
        self._head.require()
        super().assign(placement)
        self._shared.forget_unused()
        for worker in self._load:
            self._prepare(worker)

    def _reset(self, nodes: dict[int, Context]) -> None:
        super()._reset(nodes)
        for worker in {worker for worker, _ in self._flying.values()}:
            self._replace(worker)
        self._flying.clear()
        self._deaths = 0
        self._suspects: deque[_Work] = deque()
        self._taken: list[float] = []  # seconds from sending bundles to their answers

    def _start(self) -> None:
        worker = _Worker.remote(self._client_app, sys.path)  # type: ignore[attr-defined]
        self._starting[worker.ready.remote()] = worker
        self._alone_since = time.monotonic()

    def _prepare(self, worker: Any) -> None:
        """Let a worker load the placement's holdings while the aggregator still fits its feature map."""
        if self.nodes:
            node = next(iter(self.nodes))
            message = self.create_message(RecordDict(), f"query.{PREPARE}", node, "")
            worker.prepare.remote(self.nodes[node], message.metadata)

    def _submit(self, worker: Any, bundle: _Bundle) -> None:
        self._head.require()
        numbers: dict[Any, int] = {}  # of references
        letters: list[_Letters] = []
        for work in bundle.works:
            parts = [(message.metadata, self._shared.reference(message.content)) for message in work.node.messages]
            letters.append((work.context, [(data, numbers.setdefault(one, len(numbers))) for data, one in parts]))
        self._flying[worker.serve.remote(list(numbers), letters)] = (worker, bundle)
        self._load[worker] += 1
        bundle.copies += 1

    def _fill(self) -> None:
        """Every worker has something to do before any has something waiting."""
        for ahead in range(1, _AHEAD + 1):
            for worker in list(self._load):
                if self._suspects:
                    if not self._load[worker]:  # a suspect runs alone, so that it cannot take others down again
                        self._submit(worker, _Bundle([self._suspects.popleft()]))
                elif self._queue and self._load[worker] < ahead:
                    taken = self._next_few(busy=len(self._load))
                    works = [_Work(self.nodes[node], Recovery(messages)) for node, messages in taken]
                    self._submit(worker, _Bundle(works))
        for worker in [] if self._suspects else list(self._load):
            if not self._load[worker] and (late := self._late()) is not None:
                self._submit(worker, late)

    def _late(self) -> _Bundle | None:
        """What has been under way for longest, where that is far longer than usual and no copy of it is."""
        alone = [bundle for _, bundle in self._flying.values() if bundle.is_single]
        if not alone or not self._taken:
            return None
        oldest = min(alone, key=lambda bundle: bundle.sent)
        usual = max(_WAIT, _LATE * median(self._taken))
        return oldest if time.monotonic() > oldest.sent + usual else None

    def _advance(self) -> None:
        self._fill()
        waiting = [*self._flying, *self._starting]
        if not waiting:
            return
        ready, _ = ray.wait(waiting, num_returns=1, timeout=_WAIT)
        self._head.require()
        for future in ready:
            if future in self._starting:
                self._welcome(future)
            else:
                self._land(future)
        waited = time.monotonic() - self._alone_since
        if not self._load and waited > (_SLOW if self._owns_ray else _PATIENCE):
            self._give_up()

    def _give_up(self) -> None:
        if self._owns_ray:
            raise InputError(
                f"no worker could start on this machine within {_SLOW:g} seconds: it is too busy or lacks memory; end "
                "other work, or ask for fewer engine.workers"
            )
        have, free = (int(found().get("CPU", 0)) for found in (ray.cluster_resources, ray.available_resources))
        raise InputError(
            f"no worker could start within {_PATIENCE:g} seconds: Ray has {have} processors and {free} of them are "
            "free; end what holds them, add nodes, or ask for fewer engine.workers"
        )

    def _welcome(self, future: Any) -> None:
        """A worker has started, or cannot: then its code is at fault, not what it serves."""
        worker = self._starting.pop(future)
        try:
            ray.get(future)
        except RayError as error:
            self._deaths += 1
            if getattr(error, "actor_init_failed", False) or self._deaths > _MOST_DEATHS:
                cause = [line for line in str(error).splitlines() if line.strip()][-1].strip()
                raise InputError(
                    f"workers cannot start: {cause}; the project and its data must be installed on every node"
                ) from error
            self._start()
        else:
            self._load[worker] = 0
            self._prepare(worker)

    def _land(self, future: Any) -> None:
        """A bundle has come back, or its worker has died."""
        worker, bundle = self._flying.pop(future)
        bundle.copies -= 1
        if worker in self._load:
            self._load[worker] -= 1
        try:
            answers = ray.get(future)
        except RayError as error:  # the process or its machine has died, memory has run out, or no handler caught it
            self._bury(worker, bundle, error)
            return
        if bundle.done:
            return
        bundle.done = True
        self._taken.append(time.monotonic() - bundle.sent)
        for work, (replies, state) in zip(bundle.works, answers, strict=True):
            work.context.state = state
            work.node.add(work.context, replies)
            self._conclude(work.node)

    def _conclude(self, node: "Recovery") -> None:
        if node.outstanding == 0:
            self._accept(node.replies())

    def _replace(self, worker: Any) -> None:
        if self._load.pop(worker, None) is not None:  # its other work may have told us already
            ray.kill(worker)
            self._start()

    def _bury(self, worker: Any, bundle: _Bundle, error: RayError) -> None:
        """Start a worker in place of a dead one; retry works that no other has, one by one, then in halves."""
        self._deaths += isinstance(error, RayActorError)
        if self._deaths > _MOST_DEATHS:
            raise QuorumError(
                f"Ray workers keep dying ({self._deaths} in this world); look for lack of memory or a classifier "
                "that ends its process, or run with --engine inline to see its error"
            )
        self._replace(worker)
        for work in [] if bundle.done or bundle.copies else bundle.works:
            parts = work.node.divide(work.context) if work.suspect else [work.context]
            self._suspects += [_Work(part, work.node, suspect=True) for part in parts]
            self._conclude(work.node)

    def close(self) -> None:
        """End this grid's workers, and Ray if this grid started it."""
        with suppress(FederationError):
            self._head.require()  # nobody is there to end workers, where the head was lost after the last answer
        for worker in [] if self._head.lost else [*self._load, *self._starting.values()]:
            ray.kill(worker)
        self._load.clear()
        self._starting.clear()
        self._flying.clear()
        if self._owns_ray:
            ray.shutdown()
            self._owns_ray = False
        self._head.release()


DIED = "the worker process died while serving this party"


@dataclass
class Recovery:
    """Collects the replies to one node's messages until no part is outstanding."""

    messages: list[Message]
    outstanding: int = 1
    divided: bool = False
    _parts: list[list[Message]] = field(default_factory=list)
    _failures: dict[int, str] = field(default_factory=dict)

    def divide(self, context: Context) -> list[Context]:
        """The halves to serve instead of `context`, none when its only party is lost for good."""
        parts, self.divided = halves(context), True
        self.outstanding += len(parts) - 1
        if not parts:
            self._lose(context, DIED)
        return parts

    def add(self, context: Context, replies: list[Message]) -> None:
        """Keep one part's replies; of a divided node an error loses the parties of the part."""
        self.outstanding -= 1
        error = next((reply.error for reply in replies if reply.has_error()), None)
        if self.divided and error is not None:
            self._lose(context, str(error.reason))
        else:
            self._parts.append(replies)

    def replies(self) -> list[Message]:
        """One reply per message, once nothing is outstanding; those of an undivided node as they are."""
        if not self.divided:
            return self._parts[0]
        if not self._parts:
            error = Error(ErrorCode.CLIENT_APP_CRASHED, next(iter(self._failures.values())))
            return [Message(error, reply_to=message) for message in self.messages]
        return [
            Message(merge_submissions([part[number].content for part in self._parts], self._failures), reply_to=message)
            for number, message in enumerate(self.messages)
        ]

    def _lose(self, context: Context, reason: str) -> None:
        first, count = int(context.node_config["first-party"]), int(context.node_config["parties"])
        self._failures.update(dict.fromkeys(range(first, first + count), reason))
