"""The same two apps over the inline and the Ray grid: equal bytes, contained failures, no process left behind."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aggregator.plan import VariantPlan
from federation.errors import QuorumError
from federation.grids.launch import open_grid, run_server_app
from federation.grids.nodes import cohort_size, simulated_nodes
from federation.reference import Reference

VARIANTS = (
    VariantPlan("soft_vote", "soft_vote", {}),
    VariantPlan("soft_vote-gaussian", "soft_vote", {"noise": "gaussian"}),
    VariantPlan("published", "soft_vote", {"perturb": "output", "sensitivity": "published"}),
    VariantPlan("majority_vote", "majority_vote", {}),
)
SYNTHETIC = Reference("synthetic:Parties")


def run(grid, plan, per_node, holdings=SYNTHETIC):
    replace(plan, parties_per_node=per_node).save(Path(plan.directory) / "plan.json")
    grid.assign(simulated_nodes(plan.parties, per_node, holdings, seed=1))
    run_server_app(grid, {"plan": str(Path(plan.directory) / "plan.json")})
    summary = json.loads((Path(plan.directory) / "world.json").read_text())
    files = {path.name: path.read_bytes() for path in sorted(Path(plan.directory).glob("*.npz"))}
    del summary["seconds"]
    return files, summary


@pytest.fixture(scope="module")
def ray_grid():
    grid = open_grid("ray", workers=2)
    yield grid
    grid.close()


@pytest.mark.parametrize("per_node", [1, 7, 40])
def test_results_do_not_depend_on_the_cohort_size(make_plan, per_node):
    plan = make_plan(variants=VARIANTS, individual=10)
    assert run(open_grid("inline"), plan, per_node) == run(open_grid("inline"), plan, 13)


@pytest.mark.parametrize("classifier", ["DecisionTreeClassifier", "GaussianNB"])
def test_ray_and_inline_release_equal_bytes(make_plan, ray_grid, classifier):
    plan = make_plan(variants=VARIANTS, individual=10, classifier={"name": classifier, "parameters": {}})
    assert run(open_grid("inline"), plan, 40) == run(ray_grid, plan, 3)


def test_ray_and_inline_agree_on_logistic_regression(make_plan, ray_grid):
    plan = make_plan(variants=VARIANTS)
    assert run(open_grid("inline"), plan, 5) == run(ray_grid, plan, 11)


def test_another_seed_gives_other_bytes(make_plan):
    first = run(open_grid("inline"), make_plan(), 40)[0]
    second = run(open_grid("inline"), make_plan(noise_seed=2), 40)[0]
    assert first != second


@pytest.mark.parametrize("engine", ["inline", "ray"])
def test_a_broken_party_costs_only_itself(make_plan, ray_grid, engine):
    grid = ray_grid if engine == "ray" else open_grid("inline")
    broken = Reference("synthetic:Parties", {"broken": [3, 17]})
    _, summary = run(grid, make_plan(), 8, broken)
    assert sum(summary["failures"].values()) == 2
    assert all("NaN" in cause for cause in summary["failures"])


def test_a_dying_worker_costs_its_parties_one_retry(make_plan, ray_grid, tmp_path):
    plan = make_plan()
    expected = run(open_grid("inline"), plan, 4)
    dying = Reference("synthetic:Parties", {"deadly": [9], "flag": str(tmp_path / "died")})
    assert run(ray_grid, plan, 4, dying) == expected


def test_a_party_that_always_kills_its_worker_is_lost_alone(make_plan, ray_grid):
    plan = make_plan()
    _, summary = run(ray_grid, plan, 10, Reference("synthetic:Parties", {"deadly": [9]}))
    assert summary["failures"] == {"the worker process died while serving this party": 1}
    assert summary["answered"] == 39
    assert run(ray_grid, plan, 4) == run(open_grid("inline"), plan, 4)  # later worlds are whole


@pytest.mark.parametrize("per_node", [1, 10, 40])
@pytest.mark.parametrize("damage", [{"small": [5]}, {"broken": [5]}])
def test_a_failing_party_moves_the_statistic_by_no_more_than_its_sensitivity(make_plan, damage, per_node):
    # With five neighbours a party of three rows trains and fails when it votes; nobody else's vote may be lost.
    neighbours = {"name": "KNeighborsClassifier", "parameters": {"n_neighbors": 5}}
    off = (VariantPlan("off", "soft_vote", {"noise": "off"}), VariantPlan("private", "soft_vote", {}))
    plan = make_plan(classifier=neighbours, variants=off)
    released = []
    for holdings in (SYNTHETIC, Reference("synthetic:Parties", damage)):
        summary = run(open_grid("inline"), plan, per_node, holdings)[1]
        with np.load(Path(plan.directory) / "off.npz") as stored:
            released.append(stored["weights"][0, 0])
        sensitivity = summary["ledger"]["releases"][1]["guarantee"]["parameters"]["sensitivity"]
        assert summary["answered"] >= 39
    # The closed-form decoder shrinks: it maps the whitened statistic by s / (s^2 + c) <= 1 / (2 sqrt(c)).
    second = np.linalg.norm(released[0] - released[1])
    assert 0 < second <= sensitivity / (2 * np.sqrt(0.1 / 3))


def test_below_the_quorum_the_run_ends_with_the_causes(make_plan):
    broken = Reference("synthetic:Parties", {"broken": list(range(30))})
    with pytest.raises(QuorumError, match="10 of 40 parties answered"):
        run(open_grid("inline"), make_plan(), 8, broken)


def test_the_wrong_provider_is_one_clear_cause(make_plan):
    with pytest.raises(QuorumError, match="cannot load 'synthetic:Absent'"):
        run(open_grid("inline"), make_plan(), 8, Reference("synthetic:Absent"))


def test_models_on_disk_need_numpy_only(make_plan, public):
    plan = make_plan()
    run(open_grid("inline"), plan, 40)
    with np.load(Path(plan.directory) / "soft_vote.npz", allow_pickle=False) as stored:
        assert stored["weights"].shape == (2, 3, 3, 3)
        assert json.loads(str(stored["description"]))["classes"] == ["a", "b", "c"]


@pytest.mark.parametrize(("parties", "workers", "asked"), [(1, 8, None), (1000, 2, None), (10**6, 2, None), (5, 1, 99)])
def test_cohorts_cover_all_parties(parties, workers, asked):
    size = cohort_size(parties, workers, asked)
    assert 1 <= size <= max(parties, 1)
    nodes = simulated_nodes(min(parties, 5000), size, SYNTHETIC, 1)
    held = [(node.node_config["first-party"], node.node_config["parties"]) for node in nodes]
    assert [first for first, _ in held] == list(np.cumsum([0, *(count for _, count in held[:-1])]))
    assert sum(count for _, count in held) == min(parties, 5000)
