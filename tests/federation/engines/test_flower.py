"""Flower's own simulation as an engine: equal bytes, the causes of failures, and an end that leaves nothing behind."""

import logging
import subprocess
import sys

import pytest
import ray
from flwr.common.logger import console_handler
from support.worlds import run

from federation.contract.errors import FederationError, InputError, QuorumError
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid
from federation.engines.nodes import Placement


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Flower's home, where nodes find whom they serve."""
    folder = tmp_path_factory.mktemp("flower")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLWR_HOME", str(folder))
        yield folder


@pytest.fixture(scope="module")
def flower_grid(home):
    replies = []
    grid = open_grid("flower", workers=2, on_reply=lambda *counts: replies.append(counts))
    grid.heard = replies
    yield grid
    grid.close()
    assert not ray.is_initialized()
    assert list((home / "federation").glob("*")) == []


@pytest.mark.parametrize("per_node", [9, pytest.param(5, marks=pytest.mark.slow)])
def test_flower_and_inline_release_equal_bytes(make_plan, flower_grid, per_node):
    plan = make_plan(individual=10)
    flower_grid.heard.clear()
    assert run(flower_grid, plan, per_node) == run(open_grid("inline"), plan, 13)
    nodes = -(-plan.terms.parties // per_node)
    assert flower_grid.heard == [(number + 1, 2 * nodes) for number in range(2 * nodes)]


@pytest.mark.slow
def test_failing_parties_are_one_cause_with_their_number(make_plan, flower_grid):
    broken = Reference("support.synthetic:Parties", {"broken": [3, 17]})
    _, summary = run(flower_grid, make_plan(), 8, broken)
    [(cause, count)] = summary["failures"].items()
    assert count == 2
    assert "without the stage impute" in cause


def test_too_few_answers_reach_the_caller_as_they_are(make_plan, flower_grid):
    with pytest.raises(QuorumError, match=r"0.*40.*40.*support\.synthetic:Absent"):
        run(flower_grid, make_plan(), 8, Reference("support.synthetic:Absent"))


def test_the_end_of_ray_is_no_failure_of_parties(make_plan, flower_grid, monkeypatch):
    run(flower_grid, make_plan(), 8)  # so that there is a simulation
    head = flower_grid._simulation.head
    ended = subprocess.Popen([sys.executable, "--version"], stdout=subprocess.DEVNULL)
    ended.wait()
    with monkeypatch.context() as patch:
        patch.setattr(head, "_own", [*head._own, ended])
        with pytest.raises(FederationError):
            run(flower_grid, make_plan(), 8)
    head.require()


@pytest.mark.slow
def test_a_worker_that_dies_is_named_and_later_worlds_are_whole(make_plan, flower_grid):
    plan = make_plan()
    with pytest.raises(QuorumError, match="--engine"):  # Flower goes on giving nodes to the dead process
        run(flower_grid, make_plan(quorum=1.0), 8, Reference("support.synthetic:Parties", {"deadly": [9]}))
    assert run(flower_grid, plan, 8) == run(open_grid("inline"), plan, 8)


@pytest.mark.slow
def test_a_hanging_party_does_not_keep_the_simulation_from_ending(make_plan, flower_grid):
    with pytest.raises(QuorumError, match=r"engine\.timeout.*0\.5"):
        run(flower_grid, make_plan(timeout=0.5), 8, Reference("support.sabotage:Hanging"))
    flower_grid.close()
    assert not ray.is_initialized()
    assert console_handler.level < logging.ERROR


@pytest.mark.slow
def test_ray_of_somebody_else_is_not_shut_down(monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    with pytest.raises(InputError, match=r"ray\.shutdown.*--engine"):
        open_grid("flower")


@pytest.mark.slow
@pytest.mark.parametrize("parties", [1, 3, 40, 1000, 10**6])
@pytest.mark.parametrize("most", [16, 4096])
def test_nodes_are_few(flower_grid, parties, most):
    size = flower_grid.cohort(parties, None, most)
    assert Placement(parties, size, Reference("support.synthetic:Parties"), 1).nodes <= 250
    assert flower_grid.cohort(parties, 7, most) == min(7, parties)
