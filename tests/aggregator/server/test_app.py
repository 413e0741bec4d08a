"""The aggregator's app: runs a plan or what makes plans, and leaves releases only where enough parties answered."""

import numpy as np
import pytest
from flwr.app import Context, RecordDict
from support.worlds import run
from threadpoolctl import threadpool_info, threadpool_limits

from aggregator.releases.models import ReleasedModels
from aggregator.server import app as module
from aggregator.server.app import IndividualScores, best_means, run_plan
from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError, QuorumError
from federation.contract.plugins import Reference
from federation.contract.query import Submission
from federation.engines.inline import open_grid
from federation.queries.votes import IndividualQuestion, Training

BROKEN = Reference("support.synthetic:Parties", {"broken": list(range(25))})


class Nodes:
    """In place of the grid that numbers Flower's nodes: notes that it was closed."""

    def __init__(self, grid):
        self.grid, self.closed = grid, False
        opened.append(self)

    def close(self):
        self.closed = True


opened: list[Nodes] = []


def simulated(nodes, config):
    """The simulation that a configuration names; fails where it says so."""
    assert (nodes.closed, nodes.grid) == (False, "a grid")
    if config.get("scenario") == "bad":
        raise InputError("no such scenario")


def context(**config):
    return Context(1, 0, {}, RecordDict(), {"simulation": f"{__name__}:simulated", **config})


@pytest.fixture
def nodes(monkeypatch):
    opened.clear()
    monkeypatch.setattr(module, "StockGrid", Nodes)
    return opened


def test_without_a_plan_the_simulation_gets_the_nodes_which_are_closed_then_and_when_it_fails(nodes):
    module.app("a grid", context())
    with pytest.raises(InputError):
        module.app("a grid", context(scenario="bad"))
    assert [one.closed for one in nodes] == [True, True]


def test_a_plan_is_run_and_the_baseline_of_parties_alone_is_asked_of_so_many(make_plan, tmp_path):
    plan = make_plan()
    files, summary = run(open_grid("inline"), plan, 40)
    assert list(files) == ["soft_vote.npz"]
    models = ReleasedModels.load(tmp_path / "soft_vote.npz")
    assert [one["epsilon"] for one in models.guarantees] == [1.0, 10.0]
    models.save(tmp_path / "copy.npz")
    assert (tmp_path / "copy.npz").read_bytes() == files["soft_vote.npz"]
    assert (summary["answered"], summary["failures"], summary["failed_variants"]) == (40, {}, {})
    assert summary["individual"] is None
    assert list(summary["bytes_per_party"]) == ["soft_vote"]
    _, summary = run(open_grid("inline"), make_plan(individual=5), 40)
    assert 0.3 < summary["individual"]["accuracy"] <= 1.0
    few, none = make_plan(individual=5, quorum=0.9), Reference("support.synthetic:Parties", {"broken": [0]})
    with pytest.raises(QuorumError, match=r"4.*5"):  # the baseline has a quorum of its own
        run(open_grid("inline"), few, 40, none)


def test_at_the_quorum_those_who_answered_are_enough_and_below_it_nothing_is_released(make_plan, tmp_path):
    with pytest.raises(QuorumError, match=r"15.*40"):
        run(open_grid("inline"), make_plan(quorum=0.5), 40, BROKEN)
    assert not [*tmp_path.iterdir()]
    _, summary = run(open_grid("inline"), make_plan(quorum=15 / 40), 40, BROKEN)
    assert summary["answered"] == 15
    assert sum(summary["failures"].values()) == 25


def test_a_plan_runs_on_one_thread(make_plan, monkeypatch):
    found = []

    def noted(*arguments):
        found.extend(pool["num_threads"] for pool in threadpool_info())

    monkeypatch.setattr(module, "_run", noted)
    with threadpool_limits(2):
        run_plan(open_grid("inline"), make_plan())
    assert {*found} == {1}


def scores(parties, values):
    arrays = {name: np.array(values, dtype=float) for name in ("accuracy", "balanced_accuracy")}
    return Submission("individual", np.array(parties), arrays)


def test_the_baseline_is_the_best_party_of_the_sample_in_any_order_of_arrival(public):
    question = IndividualQuestion(Training(fit(["unit_norm"], public.rows), 3, {}, 0), 4)
    values = [0.1, 0.2, 0.7]
    orders = []
    for order in ([0, 1, 2], [2, 0, 1]):
        collected = IndividualScores(question, 10)
        for party in order:
            assert collected.add(scores([party], [values[party]])) == {}
        orders.append(collected.means())
    assert orders[0] == orders[1] == {"accuracy": np.mean(values), "balanced_accuracy": np.mean(values)}
    poor, good = IndividualScores(question, 10), IndividualScores(question, 10)
    poor.add(scores([0, 1], [0.2, 0.4]))
    good.add(scores([1, 0], [0.8, 0.6]))
    assert best_means([poor, good, IndividualScores(question, 10)]) == good.means()
    assert best_means([]) is None
    collected = IndividualScores(question, 10)
    assert list(collected.add(scores([3, 4], [0.5, 1.0]))) == [4]
    assert (collected.answered, collected.means()["accuracy"]) == (1, 0.5)
    for value in (float("nan"), 1.5, -0.1):
        assert list(collected.add(scores([1], [value]))) == [1]
    assert collected.answered == 1
    with pytest.raises(InputError):
        collected.add(Submission("individual", np.array([0]), {"accuracy": np.array([0.5])}))
