"""A budget is a gate before any question: no party of any protocol is asked for what will be refused."""

import pytest

from aggregator.contract.registry import protocol, protocol_names
from aggregator.trial.plan import VariantPlan
from federation.contract.errors import BudgetExceededError
from federation.engines.nodes import Placement
from scenarios.testing import small_trials as small

SMALL = {"noisy_weighted_llp": {"size": 4}, "weighted_lba": {"size": 4}}
TRUSTING = ("soft_vote", "majority_vote", "parameter_average")  # whose answers have no noise of their own


def run(folder, kind, epsilon, budget, variants=None):
    """Run a deployed plan; returns what was asked and paid. Raises what the run raises."""
    found, grid = protocol(kind), small.SitesGrid()
    changes = {} if variants is None else {"variants": variants}
    plan = small.plan(
        found, kind, SMALL.get(kind, {}), folder, simulation=False, noise_seed=None, draws=1, parties_per_node=1,
        epsilons=(epsilon,), budget=budget, **changes,
    )  # fmt: skip
    try:
        small.run(plan, Placement(plan.terms.parties, 1, small.provider(found.requires), small.SEED), grid)
    finally:
        run.asked = grid.asked
    return grid


@pytest.mark.parametrize("kind", protocol_names())
def test_nobody_is_asked_beyond_the_budget_or_where_nothing_is_promised(kind, tmp_path):
    with pytest.raises(BudgetExceededError, match=r"epsilon.*5"):
        run(tmp_path, kind, 5.0, {"epsilon": 1.0, "delta": 1e-3})
    assert run.asked == 0
    variants = (VariantPlan("checked", kind, {**SMALL.get(kind, {}), "noise": "off"}),)
    with pytest.raises(BudgetExceededError):
        run(tmp_path, kind, 5.0, {"epsilon": 7.0, "delta": 1e-3}, variants)
    assert run.asked == 0


@pytest.mark.parametrize("kind", protocol_names())
def test_within_the_budget_everybody_is_asked_and_pays_no_more(kind, tmp_path):
    grid = run(tmp_path, kind, 5.0, {"epsilon": 5.0, "delta": 1e-3})
    assert grid.asked >= small.PARTIES
    for party in range(small.PARTIES):
        assert grid.costs[party]
        assert (grid.paid(party) == 0) == (kind in TRUSTING)
        assert grid.paid(party) <= 5.0 * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["mean_operator", "label_sums", "soft_vote"])
def test_releases_that_only_together_exceed_the_budget_are_refused_in_a_deployment(kind, tmp_path):
    further = {"mean_operator": {"noise": "pure"}, "label_sums": {"noise": "pure"}, "soft_vote": {"noise": "gaussian"}}
    variants = (VariantPlan("checked", kind, {}), VariantPlan("other", kind, further[kind]))
    with pytest.raises(BudgetExceededError):
        run(tmp_path, kind, 5.0, {"epsilon": 7.0, "delta": 1e-3}, variants)
    assert run.asked == 0
