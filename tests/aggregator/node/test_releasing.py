import json
from pathlib import Path

import numpy as np
import pytest

from aggregator.contract.ledger import Budget, Ledger
from aggregator.contract.session import Perturbable
from aggregator.server.releasing import Release, release
from aggregator.trial.plan import VariantPlan, WorldPlan
from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.guarantee import NoGuarantee
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid, run_server_app
from federation.engines.nodes import Placement


def perturbable(noise, dimension=2):
    return Perturbable(
        np.zeros(dimension), 0.1, lambda noisy, _: noisy.reshape(-1, 2, dimension // 2), (), (), noise=noise
    )


def released(plan, name="v", noise="pure", epsilon=1.0, ledger=None):
    return release(plan, name, epsilon, perturbable(noise), ledger or Ledger())


def test_a_release_has_its_draws_and_its_guarantee(make_plan):
    ledger = Ledger()
    few, many = (released(make_plan(), epsilon=epsilon, ledger=ledger) for epsilon in (1.0, 10.0))
    assert (few.guarantee.epsilon, few.guarantee.delta) == (1.0, 0.0)
    assert few.weights.shape == many.weights.shape == (3, 2, 1)
    assert np.abs(few.weights).mean() > np.abs(many.weights).mean()
    assert len(ledger.entries) == 2


def test_a_seeded_run_says_that_it_is_a_simulation(make_plan):
    for seed, expected in ((1, True), (None, False)):
        first = released(make_plan(noise_seed=seed), noise="gaussian")
        assert any("keyed by a seed" in a.text for a in first.guarantee.assumptions) is expected


def test_without_a_seed_no_two_releases_share_noise(make_plan):
    plan = make_plan(noise_seed=None)
    draws = np.concatenate([released(plan).weights.ravel() for _ in range(2)])
    assert len(np.unique(draws)) == len(draws)


def test_of_several_draws_one_is_covered(make_plan):
    for draws, expected in ((1, False), (3, True)):
        texts = [a.text for a in released(make_plan(draws=draws)).guarantee.assumptions]
        assert any(f"one of the {draws} draws is published" in text for text in texts) is expected


@pytest.mark.parametrize("change", [{"noise_seed": 1}, {"draws": 2}, {"individual": 3}, {"servers": "two"}])
def test_outside_a_simulation_nothing_is_seeded_or_repeated(make_plan, change):
    sound = {"simulation": False, "noise_seed": None, "draws": 1, "individual": 0}
    assert not make_plan(**sound).simulation
    with pytest.raises(InputError, match="outside a simulation"):
        make_plan(**{**sound, **change})


def test_equal_plans_draw_equal_noise_and_other_variants_other(make_plan):
    draw = [released(make_plan(), name).weights for name in ("a", "a", "b")]
    np.testing.assert_array_equal(draw[0], draw[1])
    assert not (draw[0] == draw[2]).any()


def test_noise_depends_on_epsilon_and_delta_too(make_plan):
    settings = ((1.0, 1e-6), (2.0, 1e-6), (1.0, 1e-5))
    drawn = [released(make_plan(delta=d), noise="gaussian", epsilon=e).weights.ravel() for e, d in settings]
    correlations = [abs(np.corrcoef(drawn[0], other)[0, 1]) for other in drawn[1:]]
    assert max(correlations) < 0.99


def test_the_budget_stops_a_release(make_plan):
    ledger = Ledger(Budget(5.0, 1e-6))
    released(make_plan(), epsilon=1.0, ledger=ledger)
    with pytest.raises(BudgetExceededError):
        released(make_plan(), epsilon=10.0, ledger=ledger)
    assert len(ledger.entries) == 1  # epsilon 1 fitted, epsilon 10 did not


def test_no_vote_is_written(make_plan):
    plan = make_plan(variants=(VariantPlan("soft_vote", "soft_vote", {}),))
    grid = open_grid("inline")
    grid.assign(Placement(plan.parties, 40, Reference("support.synthetic:Parties"), 1))
    run_server_app(grid, {"plan": str(Path(plan.directory) / "plan.json")})
    assert {path.name for path in Path(plan.directory).iterdir()} == {"plan.json", "world.json", "soft_vote.npz"}
    with np.load(Path(plan.directory) / "soft_vote.npz") as stored:
        assert not {name for name in stored.files if "vote" in name or "count" in name}
    summary = json.loads((Path(plan.directory) / "world.json").read_text())
    assert set(summary) == {
        "ledger", "diagnostics", "outlooks", "remarks", "bytes_per_party", "individual", "failures", "failed_variants",
        "seconds", "answered", "disclosure",
    }  # fmt: skip


@pytest.mark.parametrize("content", ["", "{}", "[1]"])
def test_damaged_plans_are_input_errors(tmp_path, content):
    (tmp_path / "x").write_text(content)
    with pytest.raises(InputError):
        WorldPlan.load(tmp_path / "x")


def test_a_release_needs_a_guarantee():
    with pytest.raises(InputError, match="guarantee"):
        Release("v", np.zeros((1, 2, 3)), None)
    assert Release("v", np.zeros((1, 2, 3)), NoGuarantee("noise is off")).guarantee.to_dict()["non_private"]
