"""A budget is a gate before any question: no party of any protocol is asked, or pays, for what will be refused."""

import json

import pytest

from aggregator.contract.registry import protocol, protocol_names
from aggregator.world.plan import VariantPlan
from federation.contract.errors import BudgetExceededError
from scenarios.testing import parties as small

SMALL = {"noisy_weighted_llp": {"size": 4}, "weighted_lba": {"size": 4}}
TRUSTING = ("soft_vote", "majority_vote", "parameter_average")  # whose parties have no allowance


def run(folder, kind, epsilon, budget, variants=None):
    """Run a deployed plan; returns how many questions were asked. Raises what the run raises."""
    found, grid = protocol(kind), small.CountingGrid()
    changes = {} if variants is None else {"variants": variants}
    plan = small.plan(
        found, kind, SMALL.get(kind, {}), folder, simulation=False, noise_seed=None, draws=1, parties_per_node=1,
        epsilons=(epsilon,), budget=budget, **changes,
    )  # fmt: skip
    holdings = small.provider(found.requires)
    nodes = small.Deployment(plan.parties, 1, holdings, 1, str(folder), private=kind not in TRUSTING)
    try:
        small.run(plan, nodes, grid)
    finally:
        run.asked = grid.asked
    return grid.asked


@pytest.mark.parametrize("kind", protocol_names())
def test_nobody_is_asked_and_nobody_pays_beyond_the_budget(kind, tmp_path):
    with pytest.raises(BudgetExceededError, match="would spend epsilon=5"):
        run(tmp_path, kind, 5.0, {"epsilon": 1.0, "delta": 1e-3})
    assert run.asked == 0
    assert not list(tmp_path.glob("spent-*.json"))


@pytest.mark.parametrize("kind", protocol_names())
def test_within_the_budget_everybody_is_asked_and_pays_no_more(kind, tmp_path):
    assert run(tmp_path, kind, 5.0, {"epsilon": 5.0, "delta": 1e-3}) >= small.PARTIES
    ledgers = sorted(tmp_path.glob("spent-*.json"))
    assert len(ledgers) == (0 if kind in TRUSTING else small.PARTIES)
    for ledger in ledgers:
        [[spent]] = json.loads(ledger.read_text()).values()
        assert spent["epsilon"] <= 5.0 * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["mean_operator", "label_sums", "soft_vote"])
def test_releases_that_only_together_exceed_the_budget_are_refused_in_a_deployment(kind, tmp_path):
    further = {"mean_operator": {"noise": "pure"}, "label_sums": {"noise": "pure"}, "soft_vote": {"noise": "gaussian"}}
    variants = (VariantPlan("checked", kind, {}), VariantPlan("other", kind, further[kind]))
    with pytest.raises(BudgetExceededError, match="all releases of the plan together"):
        run(tmp_path, kind, 5.0, {"epsilon": 7.0, "delta": 1e-3}, variants)
    assert run.asked == 0


@pytest.mark.parametrize("kind", protocol_names())
def test_what_promises_nothing_is_refused_where_there_is_a_budget(kind, tmp_path):
    variants = (VariantPlan("checked", kind, {**SMALL.get(kind, {}), "noise": "off"}),)
    with pytest.raises(BudgetExceededError, match="has no guarantee, and there is a budget"):
        run(tmp_path, kind, 5.0, {"epsilon": 7.0, "delta": 1e-3}, variants)
    assert run.asked == 0
