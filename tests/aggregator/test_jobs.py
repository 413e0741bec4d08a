"""Variants that fail in a deployment: the others are released first, and then it is told."""

import json
from pathlib import Path

import pytest

from aggregator.central.central_job import CentralJob
from aggregator.world.plan import VariantPlan
from federation.contract.errors import FederationError
from federation.grids.launch import open_grid, run_server_app
from federation.grids.nodes import Placement
from federation.reference import Reference


def test_the_others_are_released_and_the_app_fails(make_plan, monkeypatch):
    monkeypatch.delenv("FEDERATION_DEBUG", raising=False)
    whole = CentralJob.finish

    def failing(self, ledger):
        if self._variant.name == "a":
            raise MemoryError("no room")
        return whole(self, ledger)

    monkeypatch.setattr(CentralJob, "finish", failing)
    plan = make_plan(
        variants=tuple(VariantPlan(name, "soft_vote", {}) for name in "ab"),
        simulation=False, noise_seed=None, draws=1,
    )  # fmt: skip
    grid, folder = open_grid("inline"), Path(plan.directory)
    grid.assign(Placement(plan.parties, 40, Reference("synthetic:Parties"), 1))
    with pytest.raises(FederationError, match=r"^variant 'a': unexpected MemoryError: no room; run with"):
        run_server_app(grid, {"plan": str(folder / "plan.json")})
    assert [path.name for path in folder.glob("*.npz")] == ["b.npz"]
    assert list(json.loads((folder / "world.json").read_text())["failed_variants"]) == ["a"]
