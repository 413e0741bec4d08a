"""The grid over Ray actors: worker processes on this machine or on an existing cluster.

A worker serves whole nodes, a few ahead of need; the big public arrays of a question are put into the object
store once. A worker that dies costs the nodes it was serving one retry each, alone, on a fresh worker; a node that
kills that one too is served in halves until only the culprit is lost (`federation.grids.recovery`).
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from flwr.app import Context, Error, Message, RecordDict
from flwr.common.constant import ErrorCode
from ray.exceptions import RayActorError, RayTaskError

from federation.errors import FederationError
from federation.grids.queue import Progress, QueueGrid, handle
from federation.grids.recovery import Recovery
from federation.reference import Reference

_AHEAD = 2  # works in flight per worker: one running, one waiting
_MOST_DEATHS = 200  # of workers in one world, before it is given up
_WAIT = 1.0  # seconds, after which the aggregator may look at its own time limit
_OBJECT_STORE = 1 << 30  # bytes; Ray's default takes a third of the machine
_QUIET = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


@ray.remote(num_cpus=1, max_restarts=0)
class _Worker:
    """One process that serves nodes; keeps the public contents that it has seen."""

    def __init__(self, client_app: str, search_path: list[str]) -> None:
        from threadpoolctl import threadpool_limits

        sys.path += [entry for entry in search_path if entry not in sys.path]  # what the driver can import
        self._app = Reference(client_app).load()
        self._limits = threadpool_limits(1)
        self._contents: dict[str, RecordDict] = {}

    def serve(self, context: Context, envelopes: list[tuple[Any, list[Any]]]) -> tuple[list[Message], RecordDict]:
        """Replies in order, and the node's state, which lives with the driver lest a crash reset it."""
        wanted = {reference.hex(): reference for _, [reference] in envelopes}
        for key in [key for key in self._contents if key not in wanted]:
            del self._contents[key]
        for key, reference in wanted.items():
            if key not in self._contents:
                self._contents[key] = ray.get(reference)
        replies = []
        for metadata, [reference] in envelopes:
            message = Message(content=self._contents[reference.hex()], metadata=metadata)
            replies.append(handle(self._app, message, context))
        return replies, context.state


def _processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _connect(address: str | None, workers: int | None) -> bool:
    """Initialise Ray; True when this call started it, and so must end it."""
    if ray.is_initialized():
        return False
    os.environ.update({name: value for name, value in _QUIET.items() if name not in os.environ})
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    try:
        if address is not None:
            ray.init(address=address, **quiet)
        else:
            ray.init(
                address="local",
                num_cpus=workers or _processors(),
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE,
                _node_ip_address="127.0.0.1",
                **quiet,
            )
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = f"cluster at {address}" if address else "local Ray processes"
        raise FederationError(f"cannot start {where}: {str(error).splitlines()[0]}") from error
    return True


@dataclass
class _Work:
    """The unanswered messages of one node, or of a part of one under `recovery`; a suspect has killed a worker."""

    context: Context
    messages: list[Message]
    suspect: bool = False
    recovery: Recovery | None = None


class RayGrid(QueueGrid):
    """Nodes served by `workers` Ray actors, one per processor when None; `address` joins an existing cluster."""

    def __init__(
        self, client_app: str, workers: int | None, address: str | None = None, on_reply: Progress | None = None
    ) -> None:
        self._client_app = client_app
        self._owns_ray = _connect(address, workers)
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._load: dict[Any, int] = {self._start(): 0 for _ in range(self.workers)}  # works in flight per worker
        self._flying: dict[Any, tuple[Any, _Work]] = {}
        super().__init__(on_reply)

    def assign(self, nodes: Sequence[Context]) -> None:
        """Serve these nodes from now on; workers still busy with earlier ones are replaced."""
        super().assign(nodes)
        for worker in {worker for worker, _ in self._flying.values()}:
            ray.kill(worker)
            self._replace(worker)
        self._flying.clear()
        self._deaths = 0
        self._suspects: deque[_Work] = deque()
        self._shared: dict[int, tuple[RecordDict, Any]] = {}

    def _start(self) -> Any:
        return _Worker.remote(self._client_app, sys.path)  # type: ignore[attr-defined]

    def _share(self, content: RecordDict) -> Any:
        """An object reference for a question's records: put once, however many nodes it goes to."""
        if id(content) not in self._shared:
            self._shared[id(content)] = (content, ray.put(content))
        return self._shared[id(content)][1]

    def _submit(self, worker: Any, work: _Work) -> None:
        envelopes = [(message.metadata, [self._share(message.content)]) for message in work.messages]
        self._flying[worker.serve.remote(work.context, envelopes)] = (worker, work)
        self._load[worker] += 1

    def _fill(self) -> None:
        for worker, load in list(self._load.items()):
            if self._suspects:
                if load == 0:  # a suspect runs alone, so that it cannot take others down again
                    self._submit(worker, self._suspects.popleft())
                continue
            while self._queue and self._load[worker] < _AHEAD:
                node, messages = self._next()
                self._submit(worker, _Work(self.nodes[node], messages))

    def _advance(self) -> None:
        self._fill()
        if not self._flying:
            return
        ready, _ = ray.wait(list(self._flying), num_returns=1, timeout=_WAIT)
        for future in ready:
            worker, work = self._flying.pop(future)
            if worker in self._load:
                self._load[worker] -= 1
            try:
                replies, state = ray.get(future)
            except RayActorError as error:
                self._bury(worker, work, error)
            except RayTaskError as error:
                reason = Error(ErrorCode.CLIENT_APP_CRASHED, str(error.cause).splitlines()[0])
                self._collect(work, [Message(reason, reply_to=message) for message in work.messages])
            else:
                if work.recovery is None:
                    work.context.state = state
                self._collect(work, replies)

    def _collect(self, work: _Work, replies: list[Message]) -> None:
        if work.recovery is None:
            self._accept(replies)
            return
        work.recovery.add(work.context, replies)
        self._conclude(work.recovery)

    def _conclude(self, recovery: Recovery) -> None:
        if recovery.outstanding == 0:
            self._accept(recovery.replies())

    def _replace(self, worker: Any) -> None:
        if self._load.pop(worker, None) is not None:  # its other work may have told us already
            self._load[self._start()] = 0

    def _bury(self, worker: Any, work: _Work, error: RayActorError) -> None:
        """Start a worker in place of a dead one; retry its work alone, then in halves."""
        self._deaths += 1
        if getattr(error, "actor_init_failed", False) or self._deaths > _MOST_DEATHS:
            raise FederationError(
                f"Ray workers keep dying ({self._deaths} in this world); look for lack of memory or a classifier "
                "that ends its process, or run with --engine inline to see its error"
            )
        self._replace(worker)
        if not work.suspect:
            work.suspect = True
            self._suspects.append(work)
            return
        recovery = work.recovery or Recovery(work.messages)
        for part in recovery.divide(work.context):
            self._suspects.append(_Work(part, work.messages, suspect=True, recovery=recovery))
        self._conclude(recovery)

    def close(self) -> None:
        """End this grid's workers, and Ray if this grid started it."""
        for worker in self._load:
            ray.kill(worker)
        self._load.clear()
        if self._owns_ray:
            ray.shutdown()
