"""The same two apps over the inline and the Ray grid: equal bytes, contained failures, no process left behind."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from support.worlds import SYNTHETIC, run

from aggregator.world.plan import VariantPlan
from federation.contract.errors import QuorumError
from federation.contract.reference import Reference
from federation.grids.launch import open_grid
from federation.grids.nodes import Placement, cohort_size, most_per_node

VARIANTS = (
    VariantPlan("soft_vote", "soft_vote", {}),
    VariantPlan("soft_vote-gaussian", "soft_vote", {"noise": "gaussian"}),
    VariantPlan("published", "soft_vote", {"perturb": "output", "sensitivity": "published"}),
    VariantPlan("majority_vote", "majority_vote", {}),
)


@pytest.fixture(scope="module")
def ray_grid():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # another run's cluster must not be taken for ours
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
    broken = Reference("support.synthetic:Parties", {"broken": [3, 17]})
    _, summary = run(grid, make_plan(), 8, broken)
    assert sum(summary["failures"].values()) == 2
    assert all("NaN" in cause for cause in summary["failures"])


@pytest.mark.parametrize("per_node", [1, 4])
def test_a_dying_worker_costs_its_parties_one_retry(make_plan, ray_grid, tmp_path, per_node):
    plan = make_plan()
    expected = run(open_grid("inline"), plan, 4)
    dying = Reference("support.synthetic:Parties", {"deadly": [9], "flag": str(tmp_path / "died")})
    assert run(ray_grid, plan, per_node, dying) == expected


def test_a_worker_killed_at_work_costs_its_parties_one_retry(make_plan, ray_grid, tmp_path):
    flag = tmp_path / "pid"

    def kill():
        while not flag.exists():
            time.sleep(0.01)
        os.kill(int(flag.read_text()), signal.SIGKILL)

    plan = make_plan()
    expected = run(open_grid("inline"), plan, 4)
    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    assert run(ray_grid, plan, 4, Reference("support.sabotage:Killed", {"party": 9, "flag": str(flag)})) == expected
    killer.join()
    assert run(ray_grid, plan, 5) == expected  # later worlds are whole


@pytest.mark.parametrize("per_node", [1, 10])
def test_a_party_that_always_kills_its_worker_is_lost_alone(make_plan, ray_grid, per_node):
    plan = make_plan()
    _, summary = run(ray_grid, plan, per_node, Reference("support.synthetic:Parties", {"deadly": [9]}))
    assert summary["failures"] == {"the worker process died while serving this party": 1}
    assert summary["answered"] == 39
    assert run(ray_grid, plan, 4) == run(open_grid("inline"), plan, 4)  # later worlds are whole


def test_workers_load_their_rows_before_they_are_asked(ray_grid, tmp_path):
    ray_grid.assign(Placement(40, 20, Reference("support.sabotage:Announced", {"flag": str(tmp_path / "loaded")}), 1))
    deadline = time.monotonic() + 30
    while not (tmp_path / "loaded").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_workers_that_keep_dying_end_the_run(make_plan, ray_grid, monkeypatch):
    monkeypatch.setattr("federation.grids.ray._MOST_DEATHS", 1)
    with pytest.raises(QuorumError, match=r"Ray workers keep dying \(2 in this world\)"):
        run(ray_grid, make_plan(), 20, Reference("support.synthetic:Parties", {"deadly": [9]}))


@pytest.mark.parametrize("per_node", [1, 10, 40])
@pytest.mark.parametrize("damage", [{"small": [5]}, {"broken": [5]}])
def test_a_failing_party_moves_the_statistic_by_no_more_than_its_sensitivity(make_plan, damage, per_node):
    # With five neighbours a party of three rows trains and fails when it votes; nobody else's vote may be lost.
    neighbours = {"name": "KNeighborsClassifier", "parameters": {"n_neighbors": 5}}
    off = (VariantPlan("off", "soft_vote", {"noise": "off"}), VariantPlan("private", "soft_vote", {}))
    plan = make_plan(classifier=neighbours, variants=off)
    released = []
    for holdings in (SYNTHETIC, Reference("support.synthetic:Parties", damage)):
        summary = run(open_grid("inline"), plan, per_node, holdings)[1]
        with np.load(Path(plan.directory) / "off.npz") as stored:
            released.append(stored["weights_0"][0])
        sensitivity = summary["ledger"]["releases"][1]["guarantee"]["parameters"]["sensitivity"]
        assert summary["answered"] >= 39
    # The closed-form decoder shrinks: it maps the whitened statistic by s / (s^2 + c) <= 1 / (2 sqrt(c)).
    second = np.linalg.norm(released[0] - released[1])
    assert 0 < second <= sensitivity / (2 * np.sqrt(0.1 / 3))


def test_below_the_quorum_the_run_ends_with_the_causes(make_plan):
    broken = Reference("support.synthetic:Parties", {"broken": list(range(30))})
    with pytest.raises(QuorumError, match="10 of 40 parties answered"):
        run(open_grid("inline"), make_plan(), 8, broken)


def test_the_wrong_provider_is_one_clear_cause(make_plan):
    with pytest.raises(QuorumError, match=r"cannot load 'support\.synthetic:Absent'"):
        run(open_grid("inline"), make_plan(), 8, Reference("support.synthetic:Absent"))


def test_models_on_disk_need_numpy_only(make_plan, public):
    plan = make_plan()
    run(open_grid("inline"), plan, 40)
    with np.load(Path(plan.directory) / "soft_vote.npz", allow_pickle=False) as stored:
        assert [stored[f"weights_{number}"].shape for number in (0, 1)] == [(3, 3, 3), (3, 3, 3)]
        assert json.loads(str(stored["description"]))["classes"] == ["a", "b", "c"]


@pytest.mark.parametrize("parties", [1, 5, 1000, 12345])
@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize(("wanted", "most"), [(None, 4096), (None, 16), (99, 16)])
def test_cohorts_cover_all_parties_and_share_out_evenly(parties, workers, wanted, most):
    size = cohort_size(parties, workers, wanted, most)
    assert 1 <= size <= (most if wanted is None else wanted)
    nodes = Placement(parties, size, SYNTHETIC, 1).contexts()
    assert wanted or len(nodes) <= 2 * workers or parties > 2 * workers * most
    held = [(node.node_config["first-party"], node.node_config["parties"]) for node in nodes]
    assert [first for first, _ in held] == list(np.cumsum([0, *(count for _, count in held[:-1])]))
    assert sum(count for _, count in held) == parties


@pytest.mark.parametrize("rows", [1, 1352, 54021, 10**9])
def test_answers_of_a_node_fit_into_memory(rows):
    assert 16 <= most_per_node(True, rows) <= max(16, 2**24 / rows)
    assert most_per_node(False, rows) == 16
