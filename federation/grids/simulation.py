"""What a simulation asks of every grid: to place parties behind nodes, world by world."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from flwr.serverapp import Grid

from federation.grids.nodes import Placement, cohort_size

Progress = Callable[[int, int], None]


class SimulationGrid(Grid):
    """A Flower grid whose nodes are numbered from 1 and serve whom the latest placement says."""

    workers = 1  # processes that answer at the same time

    def cohort(self, parties: int, wanted: int | None, most: int) -> int:
        """Parties behind each node of a world with so many: `wanted`, or up to `most` when None, as suits this grid."""
        return cohort_size(parties, self.workers, wanted, most)

    @abstractmethod
    def assign(self, placement: Placement) -> None:
        """Serve this placement from now on, as when a new world begins; what was under way is forgotten."""

    @abstractmethod
    def close(self) -> None:
        """End what this grid started."""
