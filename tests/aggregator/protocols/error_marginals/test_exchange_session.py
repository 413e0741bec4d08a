"""Exchanges of a world with parties that remember what they have answered."""

import json
from dataclasses import replace

from support.two_class_parties import plan_fixture

from federation.contract.reference import Reference
from federation.grids.launch import open_grid, run_server_app
from federation.grids.nodes import Placement

plan = plan_fixture("error_marginals", {"constant": {"learner": "linear", "rounds": 1}})


def test_a_second_run_begins_exchanges_of_its_own(plan, tmp_path):
    """Its answers are paid for again; under the names of the first run parties would refuse them."""
    ledger = tmp_path / "spent.json"
    allowance = json.dumps({"ledger": str(ledger), "epsilon": 3.0, "delta": 1e-5})

    class Deployed(Placement):
        def config(self, partition):
            kept = {key: value for key, value in super().config(partition).items() if key != "seed"}
            return {**kept, "allowance": allowance}

    chosen = plan(epsilons=(1.0,), draws=1, parties=1, parties_per_node=1, noise_seed=None)
    replace(chosen, simulation=False).save(tmp_path / "plan.json")
    for runs in (1, 2):
        grid = open_grid("inline")
        grid.assign(Deployed(1, 1, Reference("support.two_class_parties:Parties"), seed=1))
        run_server_app(grid, {"plan": str(tmp_path / "plan.json")})
        assert [record["answered"] for record in json.loads(ledger.read_text())["0"]] == [[0]] * runs
