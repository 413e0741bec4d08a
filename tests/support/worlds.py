"""Plans of worlds with variants by name, runs of a plan over a grid, as a simulation does, and what they left."""

import json
from pathlib import Path

import pytest

from aggregator.server.app import run_plan
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid
from federation.engines.nodes import Placement

SYNTHETIC = Reference("support.synthetic:Parties")


def plan_fixture(variants, **fields):
    """A fixture that makes plans with these fields: of the variants that it is told by name, or of all."""

    @pytest.fixture
    def plan(make_plan):
        def make(*names, **changes):
            chosen = tuple(variants[name] for name in names or variants)
            return make_plan(**{**fields, "variants": chosen, **changes})

        return make

    return plan


def run(grid, plan, per_node, holdings=SYNTHETIC):
    """The bytes of every released file, and the summary without clock times."""
    folder = Path(plan.run.directory)
    grid.assign(Placement(plan.terms.parties, per_node, holdings, seed=1))
    run_plan(grid, plan.changed(parties_per_node=per_node))
    summary = json.loads((folder / "world.json").read_text())
    files = {path.name: path.read_bytes() for path in sorted(folder.glob("*.npz"))}
    del summary["seconds"]
    return files, summary


def run_in_cohorts(plan, holdings, sizes=(1, 4)):
    """Files and summary of a run with all parties on one node, which must be the same with `sizes` of them on each."""
    whole = run(open_grid("inline"), plan, plan.terms.parties, holdings)
    for per_node in sizes:
        assert run(open_grid("inline"), plan, per_node, holdings) == whole
    assert sorted(whole[0]) == sorted(f"{variant.name}.npz" for variant in plan.variants)
    return whole


def guarantees(summary):
    """That of the first release of each variant."""
    return {entry["variant"]: entry["guarantee"] for entry in reversed(summary["ledger"]["releases"])}
