"""Runs a plan over a grid, as a simulation does, and reads what it left."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from federation.grids.launch import run_server_app
from federation.grids.nodes import Placement
from federation.reference import Reference

SYNTHETIC = Reference("synthetic:Parties")


def run(grid, plan, per_node, holdings=SYNTHETIC):
    """The bytes of every released file, and the summary without clock times."""
    folder = Path(plan.directory)
    replace(plan, parties_per_node=per_node).save(folder / "plan.json")
    grid.assign(Placement(plan.parties, per_node, holdings, seed=1))
    run_server_app(grid, {"plan": str(folder / "plan.json")})
    summary = json.loads((folder / "world.json").read_text())
    files = {path.name: path.read_bytes() for path in sorted(folder.glob("*.npz"))}
    del summary["seconds"]
    return files, summary
