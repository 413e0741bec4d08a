"""The grid without processes: bytes that depend on seeds only, contained failures, and models on disk.

Grids by their names, and a ServerApp over one: its run's settings, one thread, and errors that pass through.

A grid with a clock answers as the inline one does, and counts what crosses it.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from flwr.app import RecordDict
from support.examples import every_third
from support.worlds import SYNTHETIC, run

from aggregator.trial.plan import VariantPlan
from federation.contract.errors import QuorumError
from federation.contract.plugins import Reference
from federation.engines.inline import CLIENT_APP, InlineGrid, MeasuredGrid, open_grid
from federation.engines.nodes import Placement

VARIANTS = (
    VariantPlan("soft_vote", "soft_vote", {}),
    VariantPlan("soft_vote-gaussian", "soft_vote", {"noise": "gaussian"}),
    VariantPlan("published", "soft_vote", {"perturb": "output", "sensitivity": "published"}),
    VariantPlan("majority_vote", "majority_vote", {}),
)


@pytest.mark.parametrize("per_node", [1, 7, 40])
def test_results_do_not_depend_on_the_cohort_size(make_plan, per_node):
    plan = make_plan(variants=VARIANTS, individual=10)
    assert run(open_grid("inline"), plan, per_node) == run(open_grid("inline"), plan, 13)


def test_another_seed_gives_other_bytes_and_models_on_disk_need_numpy_only(make_plan):
    first = run(open_grid("inline"), make_plan(), 40)[0]
    plan = make_plan(noise_seed=2)
    assert first != run(open_grid("inline"), plan, 40)[0]
    with np.load(Path(plan.run.directory) / "soft_vote.npz", allow_pickle=False) as stored:
        assert [stored[f"weights_{number}"].shape for number in (0, 1)] == [(3, 3, 3), (3, 3, 3)]
        assert json.loads(str(stored["description"]))["classes"] == ["a", "b", "c"]


def test_a_broken_party_costs_only_itself(make_plan):
    broken = Reference("support.synthetic:Parties", {"broken": [3, 17]})
    _, summary = run(open_grid("inline"), make_plan(), 8, broken)
    assert sum(summary["failures"].values()) == 2
    assert all("impute" in cause for cause in summary["failures"])


@pytest.mark.parametrize(
    ("damage", "per_node"),
    every_third(
        ({name: [5]}, size) for name, sizes in (("small", (10, 1, 40)), ("broken", (40, 1, 10))) for size in sizes
    ),
)
def test_a_failing_party_moves_the_statistic_by_no_more_than_its_sensitivity(make_plan, damage, per_node):
    # With five neighbours a party of three rows trains and fails when it votes; nobody else's vote may be lost.
    neighbours = {"name": "KNeighborsClassifier", "parameters": {"n_neighbors": 5}}
    off = (VariantPlan("off", "soft_vote", {"noise": "off"}), VariantPlan("private", "soft_vote", {}))
    plan = make_plan(classifier=neighbours, variants=off)
    released = []
    for holdings in (SYNTHETIC, Reference("support.synthetic:Parties", damage)):
        summary = run(open_grid("inline"), plan, per_node, holdings)[1]
        with np.load(Path(plan.run.directory) / "off.npz") as stored:
            released.append(stored["weights_0"][0])
        sensitivity = summary["ledger"]["releases"][1]["guarantee"]["parameters"]["sensitivity"]
        assert summary["answered"] >= 39
    # The closed-form decoder shrinks: it maps the whitened statistic by s / (s^2 + c) <= 1 / (2 sqrt(c)).
    second = np.linalg.norm(released[0] - released[1])
    assert 0 < second <= sensitivity / (2 * np.sqrt(0.1 / 3))


@pytest.mark.parametrize(
    ("holdings", "told"),
    [
        (Reference("support.synthetic:Parties", {"broken": list(range(30))}), r"10.*40"),
        (Reference("support.synthetic:Absent"), r"support\.synthetic:Absent"),
    ],
)
def test_below_the_quorum_the_run_ends_with_the_causes(make_plan, holdings, told):
    with pytest.raises(QuorumError, match=told):
        run(open_grid("inline"), make_plan(), 8, holdings)


def test_the_inline_grid_serves_the_parties_of_this_project():
    heard = []
    grid = open_grid("inline", on_reply=lambda *counts: heard.append(counts))
    assert isinstance(grid, InlineGrid)
    assert list(grid.get_node_ids()) == []
    grid.assign(Placement(4, 2, SYNTHETIC, 1))
    message = grid.create_message(RecordDict(), "query.strange", 1, "")
    [reply] = grid.send_and_receive([message])
    assert "strange" in reply.error.reason  # by parties.app, which knows no such question
    assert heard == [(1, 1)]
    grid.close()


def test_it_releases_the_same_bytes_and_counts_messages_seconds_and_bytes(make_plan):
    plan = make_plan(individual=10)
    heard = []
    grid = MeasuredGrid(CLIENT_APP, lambda answered, sent: heard.append((answered, sent)))
    files, summary = run(grid, plan, 10)
    assert (files, summary) == run(open_grid("inline"), plan, 10)
    assert grid.messages == len(heard) == heard[-1][1] == 4 * 2  # votes and scores, of four nodes
    assert grid.answering > 0
    [per_party, *_] = summary["bytes_per_party"]["soft_vote"]
    assert plan.terms.parties * per_party < grid.sent < plan.terms.parties * (per_party + 200)
    once = MeasuredGrid(CLIENT_APP)
    run(once, plan, 40)
    assert once.asked == grid.asked  # of one node's questions, however many nodes
    assert once.messages == 2
