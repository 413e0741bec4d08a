import json
from pathlib import Path

import numpy as np
import pytest

from aggregator.models import ReleasedModels
from aggregator.perturbation import Perturbable
from aggregator.plan import VariantPlan, WorldPlan
from aggregator.releasing import release, stacked
from federation.errors import BudgetExceededError, InputError
from federation.grids.launch import open_grid, run_server_app
from federation.grids.nodes import simulated_nodes
from federation.guarantee import NoGuarantee
from federation.ledger import Budget, Ledger
from federation.reference import Reference


def perturbable(dimension=2):
    return Perturbable(np.zeros(dimension), 0.1, lambda noisy, _: noisy.reshape(-1, 2, dimension // 2), (), ())


def test_one_release_per_epsilon_with_its_guarantee(make_plan):
    ledger = Ledger()
    releases = release(make_plan(), "v", "pure", perturbable(), ledger)
    assert [r.guarantee.epsilon for r in releases] == [1.0, 10.0]
    assert [r.guarantee.delta for r in releases] == [0.0, 0.0]
    weights = stacked(releases)[1]
    assert weights.shape == (2, 3, 2, 1)
    assert np.abs(weights[0]).mean() > np.abs(weights[1]).mean()
    assert len(ledger.entries) == 2


def test_a_seeded_run_says_that_it_is_a_simulation(make_plan):
    for seed, expected in ((1, True), (None, False)):
        [first, _] = release(make_plan(noise_seed=seed), "v", "gaussian", perturbable(), Ledger())
        assert any("keyed by a seed" in a.text for a in first.guarantee.assumptions) is expected


def test_equal_plans_draw_equal_noise_and_other_variants_other(make_plan):
    draw = [stacked(release(make_plan(), name, "pure", perturbable(), Ledger()))[1] for name in ("a", "a", "b")]
    np.testing.assert_array_equal(draw[0], draw[1])
    assert not (draw[0] == draw[2]).any()


def test_noise_depends_on_epsilon_and_delta_too(make_plan):
    plans = [make_plan(epsilons=(e,), delta=d) for e, d in ((1.0, 1e-6), (2.0, 1e-6), (1.0, 1e-5))]
    drawn = [stacked(release(plan, "a", "gaussian", perturbable(), Ledger()))[1].ravel() for plan in plans]
    correlations = [abs(np.corrcoef(drawn[0], other)[0, 1]) for other in drawn[1:]]
    assert max(correlations) < 0.99


def test_without_noise_nothing_is_guaranteed(make_plan):
    ledger = Ledger(Budget(0.1, 0.0))
    [only] = release(make_plan(), "v", "off", perturbable(), ledger)
    assert isinstance(only.guarantee, NoGuarantee)
    np.testing.assert_array_equal(only.weights, np.zeros((1, 2, 1)))
    assert ledger.to_dict(1e-6)["non_private"]


def test_the_budget_stops_a_release(make_plan):
    ledger = Ledger(Budget(5.0, 1e-6))
    with pytest.raises(BudgetExceededError):
        release(make_plan(), "v", "pure", perturbable(), ledger)
    assert len(ledger.entries) == 1  # epsilon 1 fitted, epsilon 10 did not


def test_models_round_trip_and_predict(make_plan, public):
    plan = make_plan()
    grid = open_grid("inline")
    grid.assign(simulated_nodes(plan.parties, 40, Reference("synthetic:Parties"), 1))
    run_server_app(grid, {"plan": str(Path(plan.directory) / "plan.json")})
    models = ReleasedModels.load(Path(plan.directory) / "soft_vote.npz")
    scores = models.scores(public.rows, 1, 0)
    np.testing.assert_array_equal(scores, models.feature_map.transform(public.rows) @ models.weights[1, 0].T)
    assert models.guarantees[1]["epsilon"] == 10.0
    copy = Path(plan.directory) / "copy.npz"
    models.save(copy)
    assert copy.read_bytes() == (Path(plan.directory) / "soft_vote.npz").read_bytes()


def test_no_vote_is_written(make_plan):
    plan = make_plan(variants=(VariantPlan("soft_vote", "soft_vote", {}),))
    grid = open_grid("inline")
    grid.assign(simulated_nodes(plan.parties, 40, Reference("synthetic:Parties"), 1))
    run_server_app(grid, {"plan": str(Path(plan.directory) / "plan.json")})
    assert {path.name for path in Path(plan.directory).iterdir()} == {"plan.json", "world.json", "soft_vote.npz"}
    with np.load(Path(plan.directory) / "soft_vote.npz") as stored:
        assert not {name for name in stored.files if "vote" in name or "count" in name}
    summary = json.loads((Path(plan.directory) / "world.json").read_text())
    assert set(summary) == {"ledger", "bytes_per_party", "individual", "failures", "seconds", "answered"}


@pytest.mark.parametrize("content", ["", "{}", "[1]"])
def test_damaged_plans_and_models_are_input_errors(tmp_path, content):
    (tmp_path / "x").write_text(content)
    with pytest.raises(InputError):
        WorldPlan.load(tmp_path / "x")
    with pytest.raises(InputError):
        ReleasedModels.load(tmp_path / "x")
