"""Runs a ServerApp over a grid in this process."""

from __future__ import annotations

from typing import Literal

from flwr.app import Context, RecordDict
from flwr.serverapp import Grid

from federation.contract.reference import Reference
from federation.grids.inline import InlineGrid
from federation.grids.simulation import Progress, SimulationGrid

CLIENT_APP = "parties.node.app:app"
SERVER_APP = "aggregator.node.app:app"


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
        from federation.grids.flower import FlowerGrid

        return FlowerGrid(CLIENT_APP, workers, on_reply)
    from federation.grids.ray import RayGrid

    return RayGrid(CLIENT_APP, workers, address, on_reply)


def run_server_app(grid: Grid, run_config: dict[str, str]) -> None:
    """Run the aggregator's app over `grid`, on one numerical thread, so that results are reproducible."""
    from threadpoolctl import threadpool_limits

    app = Reference(SERVER_APP).load()
    context = Context(run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config=dict(run_config))
    with threadpool_limits(1):
        app(grid, context)
