"""Flower's own simulation as a grid: `flwr.simulation.run_simulation` with the project's two apps.

One simulation serves all worlds that fit its number of nodes. It runs in a thread of this process, and its ServerApp
lends its grid to the aggregator's app, whose failures thus reach the caller as they are.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

import ray
from flwr.app import Context, Message
from flwr.serverapp import Grid, ServerApp
from ray._private.state import actors

from federation.contract.errors import FederationError, InputError
from federation.contract.plugins import Reference
from federation.engines.nodes import Placement, Progress, SimulationGrid, StockGrid, cohort_size, processors
from federation.engines.ray_cluster import Head, connect, hush

_FEW = 100  # nodes: Flower's simulation looks through all messages for every one of them,
_MOST_PER_NODE = 4096  # but with so many parties a node has enough to do
_PATIENCE = 60.0  # seconds for the simulation to start
_GRACE = 5.0  # seconds for workers to end what they are at


class _Simulation:
    """One `run_simulation` in a thread, from its start to `close`."""

    def __init__(self, client_app: str, workers: int, nodes: int) -> None:
        self._close = threading.Event()
        self._grid: Future[Grid] = Future()
        connect(None, workers, {"PYTHONPATH": os.pathsep.join(sys.path)})  # workers import what this process can
        self.head = Head()
        self._thread = threading.Thread(target=self._run, args=(Reference(client_app).load(), nodes), daemon=True)
        self._thread.start()

    def _run(self, client_app: Any, nodes: int) -> None:
        from flwr.simulation import run_simulation

        def lend(grid: Grid, _: Context) -> None:
            self._grid.set_result(grid)
            self._close.wait()

        server = ServerApp()
        server.main()(lend)
        resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
        try:
            run_simulation(server, client_app, nodes, backend_config=resources)
            raise RuntimeError("it ends before it begins")
        except BaseException as error:
            if not self._grid.done():
                self._grid.set_exception(error)

    @property
    def grid(self) -> Grid:
        """The simulation's grid, once it has started. Raises `FederationError` when it cannot."""
        try:
            error = self._grid.exception(_PATIENCE)
        except TimeoutError:
            error = TimeoutError("it does not begin")
        if error is not None:
            raise FederationError(f"Flower's simulation cannot run: {type(error).__name__}: {error}") from error
        return self._grid.result()

    def close(self) -> None:
        """End the simulation and Ray; workers that do not end by themselves are killed."""
        self._close.set()
        self._thread.join(_GRACE)
        if self._thread.is_alive() and not self.head.lost:  # a party's code hangs; Flower would wait for ever
            for worker in actors().values():
                if worker["State"] == "ALIVE":
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(worker["Pid"], signal.SIGKILL)
            self._thread.join()
        if ray.is_initialized():
            ray.shutdown()


class FlowerGrid(StockGrid):
    """Nodes of Flower's own simulation over `workers` Ray actors, one per processor when None.

    Raises `InputError` when Ray is already initialised in this process, as Flower's simulation would end it.
    """

    def __init__(self, client_app: str, workers: int | None, on_reply: Progress | None = None) -> None:
        if ray.is_initialized():
            raise InputError(
                "Ray is already initialised in this process, and Flower's simulation would shut it down; "
                "call ray.shutdown() first or use --engine ray"
            )
        self._client_app = client_app
        self.workers = workers or processors()
        self._simulation: _Simulation | None = None
        self._size = 0
        self._show = hush("flwr")
        SimulationGrid.__init__(self, on_reply)  # there is no grid to number yet

    def cohort(self, parties: int, wanted: int | None, most: int) -> int:
        """`wanted`, or when None what keeps nodes few."""
        few = min(_MOST_PER_NODE, -(-parties // _FEW))
        return cohort_size(parties, self.workers, wanted, max(most, few))

    def assign(self, placement: Placement) -> None:
        """Serve this placement; starts a simulation of as many nodes unless the last one has them, all alive."""
        if self._simulation is None or self._size < placement.nodes or self.died:
            self._end()
            self._simulation = _Simulation(self._client_app, self.workers, placement.nodes)
            self._size = placement.nodes
            self._attach(self._simulation.grid)
        super().assign(placement)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """As of every grid of Flower. Raises `FederationError` where Ray has ended: no node could be heard again."""
        replies = super().pull_messages(message_ids)
        if self._simulation is not None:
            self._simulation.head.require()
        return replies

    def _end(self) -> None:
        if self._simulation is not None:
            super().close()
            self._simulation.close()
            self._simulation = None

    def close(self) -> None:
        """End the simulation, if one runs, and Ray with it."""
        self._end()
        self._show()
