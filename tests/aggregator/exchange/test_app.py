"""An exchange is charged, released once, goes on where it was, and never ends in a traceback."""

import errno
import hashlib
import json
import os
from types import SimpleNamespace

import numpy as np
import pytest
from support.letter_sites import Post, deployed, in_no_time

from aggregator.exchange import app as module
from aggregator.exchange.app import main, outcome_of
from aggregator.releases.models import ReleasedModels
from federation.contract.errors import FederationError
from federation.contract.files import alone, read_object, write_lasting
from federation.contract.guarantee import Adjacency, Guarantee, Unit


@pytest.fixture(autouse=True)
def quick(monkeypatch, flower_process):
    in_no_time(monkeypatch)


@pytest.fixture
def deploy(tmp_path):
    return lambda **changed: Post(*deployed(tmp_path, **changed))


def run(post, exchange="001"):
    """How a run of the app on the first exchange ended."""
    config = {"dir": str(post.folder.path), "exchange": exchange, "patience": 60.0, "wait": 60.0}
    main(post, SimpleNamespace(run_config=config, run_id=7))
    return outcome_of(post.folder.path, exchange)


def released(post):
    folder = post.folder.release("001")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_answers_become_a_release_that_was_charged_and_is_released_once(deploy):
    post = deploy()
    outcome = run(post)
    assert (outcome["status"], outcome["exit_code"]) == ("released", 0)
    assert outcome["files"] == ["soft_vote.npz", "world.json"]
    [spent] = outcome["spent"]
    assert (spent["unit"], spent["epsilon"]) == ("party", 1.0)
    world = read_object(post.folder.release("001") / "world.json", "")
    assert world["disclosure"]["simulation"] is False
    assert world["answered"] == 3
    model = ReleasedModels.load(post.folder.release("001") / "soft_vote.npz")
    assert model.classes == ("no", "yes")
    assert np.isfinite(model.releases[0]).all()
    ledger = json.loads(post.folder.ledger.read_text())["charged"]
    assert [entry["unit"] for [entry] in ledger.values()] == ["party"]
    before, ledger, asked = released(post), post.folder.ledger.read_bytes(), len(post.asked)
    assert run(post)["status"] == "released"
    assert (released(post), post.folder.ledger.read_bytes(), len(post.asked)) == (before, ledger, asked)


NETWORK = {"rounds": 2, "learner": "network", "hidden": [40, 9], "epochs": 2}


@pytest.mark.parametrize(("kind", "options", "rounds"), [
    ("soft_vote", {}, 1), ("mean_operator", {}, 1), ("error_marginals", {"rounds": 2}, 2),
    ("error_marginals", NETWORK, 2),
])  # fmt: skip
def test_queries_of_all_rounds_are_asked_and_none_is_longer_than_the_plan_knows(deploy, kind, options, rounds):
    """Sites read nothing longer."""
    post = deploy(kind=kind, options=options)
    outcome = run(post)
    assert outcome["files"] == [f"{kind}{'-hidden=40_9-epochs=2' * (options is NETWORK)}.npz", "world.json"]
    asked = [len(path.read_bytes()) for path in post.folder.exchange("001").glob("*.question")]
    assert max(asked) == post.agreement.longest_question
    if rounds > 1:
        assert sorted({number for _, number in post.asked}) == [0, 1]
        [spent] = outcome["spent"]
        assert (spent["unit"], spent["adjacency"], spent["epsilon"]) == ("row", "add_remove", 1.0)


def test_a_missing_site_is_left_out_as_long_as_enough_answer(deploy):
    post = deploy()
    post.conduct["south"] = "silent"
    assert run(post)["exit_code"] == 0
    world = read_object(post.folder.release("001") / "world.json", "")
    assert world["answered"] == 2
    assert world["failures"] == {"no usable answer": 1}


def test_without_a_quorum_nothing_is_released_and_the_next_run_goes_on_with_what_came(deploy):
    post = deploy()
    post.conduct.update(south="silent", west="forged")
    outcome = run(post)
    assert (outcome["status"], outcome["exit_code"]) == ("failed", 4)
    assert "1 of 3 parties answered" in outcome["why"]
    assert not post.folder.release("001").exists()
    post.conduct.clear()
    post.asked.clear()
    assert run(post)["exit_code"] == 0
    assert sorted(post.asked) == [("south", 0), ("west", 0)]


def test_a_run_that_ended_between_the_charge_and_the_release_goes_on_and_is_charged_once(deploy, monkeypatch):
    post = deploy()

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(post.folder.path), "rename", stop)
        with pytest.raises(KeyboardInterrupt):
            run(post)
    assert not post.folder.release("001").exists()
    assert len(json.loads(post.folder.ledger.read_text())["charged"]) == 1
    assert run(post)["exit_code"] == 0
    assert [one["epsilon"] for one in run(post)["spent_in_all"]] == [1.0]


def test_a_release_is_on_the_disk_before_it_is_told_and_the_ledger_has_it_in_place_of_what_was_set_aside(
    deploy, monkeypatch
):
    post, less, synced = deploy(), Guarantee(0.25, 0.0, Unit.PARTY, Adjacency.REPLACE, "set aside"), []
    monkeypatch.setattr(module, "promised", lambda _: [less])
    monkeypatch.setattr(module, "sync_folder", lambda folder: synced.append([one.name for one in folder.iterdir()]))
    assert run(post)["spent"][0]["epsilon"] == 1.0
    assert synced == [["001"]]
    [[kept]] = json.loads(post.folder.ledger.read_text())["charged"].values()
    assert kept["mechanism"] != "set aside"


@pytest.mark.parametrize("masked", [False, True])
def test_a_sum_that_ends_before_anybody_has_paid_spends_nothing(deploy, monkeypatch, masked):
    post = deploy()
    post.conduct.update(south="silent", west="forged")
    monkeypatch.setattr(module, "over", lambda _: {"masked": masked})
    assert run(post)["exit_code"] == 4
    assert bool(json.loads(post.folder.ledger.read_text())["charged"]) is masked


def test_a_budget_that_others_have_spent_refuses_before_anybody_is_asked(deploy):
    post = deploy(privacy={"budget": {"epsilon": 1.5, "delta": 1e-4}})
    assert run(post)["exit_code"] == 0
    post.asked.clear()
    outcome = run(post, exchange="002")
    assert outcome["exit_code"] == 3
    assert "epsilon=2" in outcome["why"]
    assert post.asked == []
    assert not post.folder.release("002").exists()


@pytest.mark.parametrize("file", ["plan.json", "world-plan.json", "signing.key", "nodes.json", "public.csv"])
def test_files_that_were_damaged_are_told_in_a_sentence(deploy, file):
    post = deploy()
    (post.folder.path / file).write_text("x")
    outcome = run(post)
    assert outcome["exit_code"] == 2
    assert file in outcome["why"]
    assert "Traceback" not in outcome["why"]


def test_two_runs_of_one_exchange_do_not_work_at_once_and_what_nobody_foresaw_is_told_without_a_traceback(
    deploy, monkeypatch
):
    monkeypatch.setattr(module, "_ENDING", 0.1)
    post = deploy()
    exchange = post.folder.exchange("001")
    exchange.mkdir(parents=True)
    with alone(exchange / module.LOCK, "nobody else"):
        outcome = run(post)
    assert outcome["exit_code"] == 2
    assert "another process works on" in outcome["why"]
    assert post.asked == []

    def fail(*_):
        raise RuntimeError("the wall is wet")

    monkeypatch.setattr(module, "run_plan", fail)
    outcome = run(post)
    assert outcome["exit_code"] == FederationError.exit_code
    assert "the wall is wet" in outcome["why"]


def test_a_disk_that_is_full_is_told_with_what_to_do(deploy, monkeypatch):
    post = deploy()

    def full(path, content):
        if path.suffix == ".reply":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write_lasting(path, content)

    with monkeypatch.context() as broken:
        broken.setattr("aggregator.exchange.exchange.write_lasting", full)
        outcome = run(post)
    assert outcome["exit_code"] == 2
    assert "cannot be written ([Errno 28] No space left on device" in outcome["why"]
    assert outcome["why"].endswith("free some room on that disk and collect again")
    assert run(post)["status"] == "released"
