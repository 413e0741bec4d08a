"""The aggregator's app: runs a plan or what makes plans, and leaves releases only where enough parties answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flwr.app import Context, RecordDict
from support.worlds import run

from aggregator.server import app as module
from federation.contract.errors import FederationError, InputError, QuorumError
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid, run_server_app
from federation.engines.nodes import Placement

BROKEN = Reference("support.synthetic:Parties", {"broken": list(range(25))})


class Nodes:
    """In place of the grid that numbers Flower's nodes: notes that it was closed."""

    def __init__(self, grid):
        self.grid, self.closed = grid, False
        opened.append(self)

    def close(self):
        self.closed = True


opened: list[Nodes] = []


def simulated(nodes, config):
    """The simulation that a configuration names; fails where it says so."""
    assert (nodes.closed, nodes.grid) == (False, "a grid")
    if config.get("scenario") == "bad":
        raise InputError("no such scenario")


def context(**config):
    return Context(1, 0, {}, RecordDict(), {"simulation": f"{__name__}:simulated", **config})


@pytest.fixture
def nodes(monkeypatch):
    opened.clear()
    monkeypatch.setattr(module, "StockGrid", Nodes)
    return opened


def test_without_a_plan_the_simulation_gets_the_nodes_which_are_closed_then(nodes):
    module.app("a grid", context())
    assert [one.closed for one in nodes] == [True]


def test_nodes_are_closed_when_the_simulation_fails(nodes):
    with pytest.raises(InputError, match="no such scenario"):
        module.app("a grid", context(scenario="bad"))
    assert [one.closed for one in nodes] == [True]


def test_a_plan_is_run_in_place_of_the_simulation(make_plan):
    plan = make_plan()
    files, summary = run(open_grid("inline"), plan, 40)
    assert list(files) == ["soft_vote.npz"]
    assert (summary["answered"], summary["failures"], summary["failed_variants"]) == (40, {}, {})
    assert summary["individual"] is None
    assert list(summary["bytes_per_party"]) == ["soft_vote"]


def test_below_the_quorum_nothing_is_released(make_plan, tmp_path):
    plan = make_plan(quorum=0.5)
    with pytest.raises(QuorumError, match="15 of 40"):
        run(open_grid("inline"), plan, 40, BROKEN)
    assert {path.name for path in tmp_path.iterdir()} == {"plan.json"}


def test_at_the_quorum_those_who_answered_are_enough_and_the_failures_are_told(make_plan):
    _, summary = run(open_grid("inline"), make_plan(quorum=15 / 40), 40, BROKEN)
    assert summary["answered"] == 15
    assert sum(summary["failures"].values()) == 25


def test_the_baseline_of_parties_alone_is_asked_of_so_many(make_plan):
    _, summary = run(open_grid("inline"), make_plan(individual=5), 40)
    assert 0.3 < summary["individual"]["accuracy"] <= 1.0
    few, none = make_plan(individual=5, quorum=0.9), Reference("support.synthetic:Parties", {"broken": [0]})
    with pytest.raises(QuorumError, match="4 of 5"):  # the baseline has a quorum of its own
        run(open_grid("inline"), few, 40, none)


def test_a_plan_that_cannot_be_read_asks_nobody(tmp_path):
    grid = open_grid("inline")
    grid.assign(Placement(1, 1, Reference("support.synthetic:NoSuchProvider"), 1))
    with pytest.raises(InputError):
        run_server_app(grid, {"plan": str(tmp_path / "missing.json")})


def test_outside_a_simulation_the_others_are_released_before_the_failure_is_raised(make_plan, monkeypatch):
    from aggregator.server.variants import VariantRun
    from aggregator.trial.plan import VariantPlan

    finish = VariantRun.finish

    def failing(self, ledger):
        if self._variant.name == "bad":
            raise InputError("no room")
        return finish(self, ledger)

    monkeypatch.setattr(VariantRun, "finish", failing)
    variants = tuple(VariantPlan(name, "soft_vote", {}) for name in ("bad", "good"))
    plan = make_plan(variants=variants, simulation=False, noise_seed=None, draws=1)
    with pytest.raises(FederationError, match=r"^variant 'bad': no room$"):
        run(open_grid("inline"), plan, 40)
    assert [path.name for path in Path(plan.directory).glob("*.npz")] == ["good.npz"]
    summary = json.loads((Path(plan.directory) / "world.json").read_text())
    assert summary["failed_variants"] == {"bad": "no room"}
