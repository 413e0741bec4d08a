"""Collecting goes on until there is a release, and says how far it is; without servers."""

import json
import re
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from support.letter_sites import FIRST_NODE, Post, deployed, in_no_time
from support.refusals import refused

from aggregator.exchange.app import main
from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.files import alone
from scenarios.deployment import collecting
from scenarios.deployment.collecting import Patience, Progress, collect, progress, spent_lines, status, totals, written
from scenarios.deployment.folder import Folder

PATIENCE = Patience(60.0, 60.0)


class Link:
    """A SuperLink that runs the app in this process, over letters to sites in it."""

    def __init__(self, post):
        self.post, self.runs, self.stopped, self.dies = post, [], [], False

    def register(self, agreement):
        return {site.name: FIRST_NODE + place for place, site in enumerate(agreement.sites)}

    def online(self):
        return {FIRST_NODE}

    def start(self, config):
        self.runs.append(config)
        run = len(self.runs)
        if not self.dies:
            main(self.post, SimpleNamespace(run_config=config, run_id=run))
        return run

    def finished(self, run):
        return True

    def stop(self, run):
        self.stopped.append(run)


@pytest.fixture
def link(tmp_path, monkeypatch, flower_process):
    in_no_time(monkeypatch)
    made = Link(Post(*deployed(tmp_path, privacy={"budget": {"epsilon": 2, "delta": 1e-4}})))

    @contextmanager
    def superlink(folder, agreement):
        yield made

    monkeypatch.setattr(collecting, "superlink", superlink)
    return made


def run(link, fresh=False):
    told = []
    return collect(link.post.folder, PATIENCE, fresh, told.append), told


def test_it_ends_with_a_release_which_is_not_asked_for_again(link):
    outcome, _ = run(link)
    assert (outcome["status"], outcome["exchange"], outcome["exit_code"]) == ("released", "001", 0)
    assert all(path.exists() for path in written(link.post.folder, outcome))
    assert link.runs == [{"dir": str(link.post.folder.path), "exchange": "001", "patience": 60.0, "wait": 60.0}]
    assert json.loads(link.post.folder.nodes.read_text())["west"] == FIRST_NODE + 2
    outcome, _ = run(link)
    assert outcome["status"] == "released already"
    assert len(link.runs) == 1
    assert [path.name for path in written(link.post.folder, outcome)] == ["soft_vote.npz", "world.json"]


def test_an_exchange_that_failed_goes_on(link):
    link.post.conduct.update(south="silent", west="silent")
    outcome, _ = run(link)
    assert (outcome["status"], outcome["exit_code"]) == ("failed", 4)
    assert status(link.post.folder)[0]["status"] == "failed"
    link.post.conduct.clear()
    outcome, _ = run(link)
    assert (outcome["status"], outcome["exchange"]) == ("released", "001")
    assert link.stopped[0] == 1  # the run before, should it go on


def test_a_new_exchange_is_paid_for_as_far_as_the_budget_reaches(link):
    run(link)
    outcome, _ = run(link, fresh=True)
    assert outcome["exchange"] == "002"
    assert totals(link.post.folder)[0]["epsilon"] == 2.0
    asked = len(link.post.asked)
    with pytest.raises(BudgetExceededError, match="epsilon=3"):
        run(link, fresh=True)
    assert len(link.post.asked) == asked
    assert link.post.folder.exchanges == ["001", "002"]
    assert [one["status"] for one in status(link.post.folder)] == ["released", "released"]


@pytest.mark.parametrize("left", [None, '{"charged": {}}'], ids=["gone", "put back"])
def test_a_ledger_that_has_forgotten_an_exchange_pays_for_no_other(link, left):
    run(link)
    link.post.folder.ledger.unlink()
    if left:
        link.post.folder.ledger.write_text(left)
    refused(r"ledger\.json.*001", run, link, fresh=True)
    assert len(link.runs) == 1
    assert link.post.folder.exchanges == ["001"]


def test_no_new_exchange_begins_while_one_is_open_and_progress_is_read_from_what_lies_there(link):
    link.post.conduct.update(south="silent", west="silent")
    run(link)
    refused("001", run, link, fresh=True)
    found = progress(link.post.folder, "001")
    assert found == Progress(3, 1, 1, (), ("south", "west"))
    assert re.search(r"1.*3.*1.*1.*out.*south", str(found))
    link.post.folder.exchange("001").joinpath("00000-00001.left").unlink()  # as when it is asked again
    assert progress(link.post.folder, "001") == Progress(3, 1, 1, ("south",), ("west",))


def test_a_run_that_says_nothing_is_a_fault_also_where_one_that_was_stopped_before_says_something(link, monkeypatch):
    link.dies = True
    outcome, _ = run(link)
    assert outcome["exit_code"] == 1
    assert "did not say how" in outcome["why"]
    assert link.stopped == [1]
    start = link.start

    def late(config):
        said = {"status": "released", "run": 99, "exit_code": 0}
        (link.post.folder.exchange("001") / "outcome.json").write_text(json.dumps(said))
        return start(config)

    monkeypatch.setattr(link, "start", late)
    assert "did not say how" in run(link)[0]["why"]
    assert link.stopped[-1] == 2


def test_after_closing_while_another_collects_or_where_something_else_would_be_asked_nobody_is(link, monkeypatch):
    with alone(link.post.folder.path / "collect.lock", "not free"), pytest.raises(InputError):
        run(link)
    closed = link.post.agreement.closing + 1.0
    for module, name, other in ((time, "time", lambda: closed), (collecting, "begun", lambda *_: ((),))):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, other)
            refused(None, run, link)
    assert link.runs == []
    assert link.post.folder.exchanges == []


def test_the_first_question_that_somebody_is_waited_for_is_told(link):
    own = link.post.folder.exchange("001")
    own.mkdir(parents=True)
    assert progress(link.post.folder, "001").asked == 0
    for name in ("00000.question", "00001.question", "00000-00000.reply", "00001-00000.reply", "00000-00001.left"):
        (own / name).touch()
    assert progress(link.post.folder, "001") == Progress(3, 1, 1, ("west",), ("south",))
    (own / "00000-00002.reply").touch()
    assert progress(link.post.folder, "001") == Progress(3, 1, 2, ("south", "west"), ())


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Progress(3, 2, 0, (), ()), "no question has been asked of the 3 sites"),
        (Progress(3, 2, 2, (), ()), "3 of 3 sites answered question 2 of 2"),
        (Progress(5, 2, 2, ("ombud",), (), "x", "ombud"), "{} not told {}; waiting for ombud"),
        (Progress(5, 2, 2, (), ("ombud",), "x", "ombud"), "{} not told {}"),
        (Progress(5, 2, 2, (), (), "x", "ombud"), "{} told {}"),
    ],
)
def test_progress_in_words(found, said):
    assert str(found) == said.format("the second server 'ombud' has", "the masks of the secure sum over 'x'")


def test_who_is_waited_for_and_not_connected_is_named_and_nothing_spent_is_no_line(link):
    many = Progress(9, 2, 1, tuple("abcdefg"), ("x",))
    assert re.search(r"1.*9.*1.*2.*2.*out.*x", str(many))
    found = Progress(3, 1, 1, ("north", "south", "west"), ())
    told = collecting._described(found, link, Folder(link.post.folder.path))
    assert told.endswith("waiting for north, south, west (not connected: south, west)")
    assert spent_lines([]) == []


def test_a_secure_sum_that_is_over_is_asked_for_no_more_but_in_a_new_exchange(link, monkeypatch):
    link.post.conduct.update(south="silent", west="silent")
    run(link)
    asked, runs = len(link.post.asked), len(link.runs)
    over = {"001": {"why": "over", "masked": False}}
    monkeypatch.setattr(collecting, "over", lambda folder: over.get(folder.name))
    outcome, _ = run(link)
    assert (outcome["status"], outcome["why"], outcome["exit_code"]) == ("failed", "over", 4)
    assert (len(link.post.asked), len(link.runs)) == (asked, runs)
    link.post.conduct.clear()
    outcome, _ = run(link, fresh=True)
    assert (outcome["status"], outcome["exchange"]) == ("released", "002")
