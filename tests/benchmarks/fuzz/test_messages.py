"""A sample of what `python -m benchmarks.fuzz messages` tries by the ten thousand."""

import logging

import pytest
from flwr.supercore.task_identity import TaskIdentity

from benchmarks.fuzz.inputs import Input
from benchmarks.fuzz.messages import Messages
from benchmarks.fuzz.worker import KINDS, REFUSED, TAKEN, TRACEBACK, made, tried
from federation.contract.errors import DEBUG
from parties.guard.answering import kinds

LOGGED = ("parties.app", "parties.party_data.isolation")


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """What it changes of the process, as a process of its own may, is put back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DEBUG, "1")
        for name in ("_run_id", "_node_id", "_task_id"):
            patch.setattr(TaskIdentity, name, None)
        for name in LOGGED:
            for part, value in (("level", 0), ("propagate", True), ("handlers", [])):
                patch.setattr(logging.getLogger(name), part, value)
        target = Messages(tmp_path_factory.mktemp("messages"))
        yield target, target.seeds()


def test_every_question_is_asked_and_every_seed_is_taken(target):
    target, seeds = target
    outcomes = {one.route: tried(target, one) for one in seeds}
    assert {route: one.text for route, one in outcomes.items() if one.kind in KINDS} == {}
    refused = [route for route, one in outcomes.items() if one.kind == REFUSED]
    assert all(route.startswith("asked+") for route in refused)  # what a site does not answer
    asked = {question.kind for name in target._worlds for question, _ in target._questions(name)}
    assert asked == {*kinds()} - {"individual"}


def test_no_mutated_message_ends_unexpectedly(target):
    target, seeds = target
    outcomes = [tried(target, made(target, seeds, len(seeds), 0, number)) for number in range(60)]
    assert [one.text for one in outcomes if one.kind in KINDS] == []
    assert {one.kind for one in outcomes} == {TAKEN, REFUSED}


def test_an_error_that_a_node_keeps_to_itself_is_found(target, monkeypatch):
    target, seeds = target
    question = next(one for one in seeds if one.route == "question+label_sums+0")
    assert tried(target, question).kind == TAKEN

    def broken(self, *arguments):
        raise ZeroDivisionError

    monkeypatch.setattr("scenarios.testing.small_trials.Parties.holdings", broken)
    assert tried(target, question).kind == TRACEBACK
    assert tried(target, Input("node+label_sums", b"{}")).kind == REFUSED


def test_seeds_are_the_same_in_every_process(target, tmp_path):
    assert Messages(tmp_path).seeds() == target[1]
