"""Exchanges of a world with parties that remember what they have answered."""

from dataclasses import replace

from support.two_class_parties import plan_fixture

from federation.contract.plugins import Reference
from federation.engines.inline import run_server_app
from federation.engines.nodes import Placement
from scenarios.testing.small_trials import SitesGrid

plan = plan_fixture("error_marginals", {"constant": {"learner": "linear", "rounds": 1}})


def test_a_second_run_begins_exchanges_of_its_own(plan, tmp_path):
    """Its answers are paid for again; under the names of the first run parties would refuse them."""
    chosen = plan(epsilons=(1.0,), draws=1, parties=1, parties_per_node=1, noise_seed=None)
    replace(chosen, simulation=False).save(tmp_path / "plan.json")
    grid = SitesGrid()
    for runs in (1, 2):
        grid.assign(Placement(1, 1, Reference("support.two_class_parties:Parties"), seed=1))
        run_server_app(grid, {"plan": str(tmp_path / "plan.json")})
        assert [cost.query for cost in grid.costs[0]] == [0] * runs
        assert len({cost.release for cost in grid.costs[0]}) == runs
