"""Letters go to sites and come back, and no site costs another one anything.

Replies are fetched though one of them cannot be.
"""

import threading
import time
from contextlib import closing

import pytest
from support.letter_sites import FIRST_NODE, Post, deployed, in_no_time

from aggregator.exchange import message_engine as pulling_module
from aggregator.exchange.exchange import Exchange
from aggregator.exchange.message_engine import LetterGrid, Pulling
from federation.contract.query import ReleaseId
from federation.engines.codec import decode_submission, encode_question
from federation.queries.bags import Bags, CountsNoise, CountsQuestion
from federation.signed_messages.agreement import Asked, terms

QUESTION = CountsQuestion(CountsNoise("pure", 1.0), Bags(1, 2), release=ReleaseId("one"))


@pytest.fixture(autouse=True)
def quick(monkeypatch, flower_process):
    in_no_time(monkeypatch)
    monkeypatch.setattr(pulling_module, "_PAUSE", 0.02)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return deployed(tmp_path_factory.mktemp("sites"), kind="class_ratio")


class Meeting:
    """A deployment whose sites are asked for counts, as often as wanted."""

    def __init__(self, made, folder, **conduct):
        self.post = Post(*made, conduct=conduct)
        asked = (Asked(kind=QUESTION.kind, times=1, same=terms(QUESTION), length=10_000, reply=10_000),)
        self.post.agreement = self.post.agreement.model_copy(update={"asked": asked})
        self.folder = folder

    def ask(self, patience=60.0, wait=600.0, questions=(QUESTION,), rounds=1):
        """The replies by site, of a new run on the same exchange; the last ones of several `rounds`."""
        signing = self.post.folder.signing_key
        exchange = Exchange.opened(self.folder / "exchange", self.post.agreement, signing)
        nodes = [FIRST_NODE + place for place in range(3)]
        grid = LetterGrid(self.post, exchange, nodes, patience, wait)
        with closing(grid):
            for _ in range(rounds):
                pending, found = {}, {}
                contents = [encode_question(question) for question in questions]
                for node in grid.get_node_ids():
                    for content, question in zip(contents, questions, strict=True):
                        [name] = grid.push_messages([grid.create_message(content, f"query.{question.kind}", node, "")])
                        pending[name] = self.post.agreement.sites[node - 1].name
                while pending:
                    for reply in grid.pull_messages(list(pending)):
                        found[pending.pop(reply.metadata.reply_to_message_id)] = reply
        return found


def counts(reply):
    return decode_submission(reply.content, QUESTION.fields()).arrays["counts"]


def test_every_site_answers_for_itself_and_a_later_run_gets_the_same_answers_and_asks_nobody(made, tmp_path):
    meeting = Meeting(made, tmp_path)
    first = meeting.ask()
    assert {name: counts(reply).shape for name, reply in first.items()} == dict.fromkeys(first, (1, 1, 1, 2))
    assert sorted(meeting.post.asked) == [("north", 0), ("south", 0), ("west", 0)]
    again = meeting.ask()
    for name, reply in first.items():
        assert counts(again[name]).tobytes() == counts(reply).tobytes()
    assert len(meeting.post.asked) == 3


@pytest.mark.parametrize("conduct", ["silent", "away", "forged", "wrong", "broken", "failing", "refusing"])
def test_whoever_does_not_answer_is_left_out_and_asked_again_in_the_next_run(made, tmp_path, conduct):
    """The error names a refusal, and the next run asks the site again after a refusal as well."""
    meeting = Meeting(made, tmp_path, south=conduct)
    found = meeting.ask()
    assert found["south"].has_error()
    said = "the site refused" if conduct == "refusing" else "the site did not answer in time"
    assert found["south"].error.reason == said
    assert not found["north"].has_error()
    assert not found["west"].has_error()
    meeting.post._out.clear()  # of the first run, a thread of which may look once more
    del meeting.post.conduct["south"]
    asked = len(meeting.post.asked)
    assert not meeting.ask()["south"].has_error()
    assert meeting.post.asked[asked:] == [("south", 0)]


def test_a_site_that_comes_late_is_asked_all_questions(made, tmp_path, monkeypatch):
    """Each of which Flower has not taken, and has called by the same empty name."""
    monkeypatch.setattr("aggregator.exchange.message_engine._AWAY", 0.5)
    meeting = Meeting(made, tmp_path, south="late")
    threading.Timer(0.3, meeting.post.conduct.pop, ["south"]).start()
    found = meeting.ask(questions=(QUESTION, QUESTION))
    assert not found["south"].has_error()
    assert sorted(meeting.post.asked) == [(site, number) for site in ("north", "south", "west") for number in (0, 1)]


def test_a_site_where_somebody_has_yet_to_decide_is_waited_for_longer_than_others(made, tmp_path):
    meeting = Meeting(made, tmp_path, south="busy", west="silent")
    found = meeting.ask()
    assert not found["south"].has_error()
    assert found["west"].has_error()
    assert [who for who, _ in meeting.post.asked].count("south") == 2


def test_who_is_silent_is_waited_for_once_no_longer_than_was_said_and_takes_no_time_from_others(made, tmp_path):
    """Else one site could use up the time of all rounds, and no other would be heard in the last ones."""
    meeting = Meeting(made, tmp_path, south="silent")
    found = meeting.ask(wait=1.0, rounds=5)
    assert found["south"].has_error()
    assert not found["north"].has_error()
    assert not found["west"].has_error()
    assert [who for who, _ in meeting.post.asked].count("north") == 5
    found = Meeting(made, tmp_path / "other", north="silent", south="silent", west="silent").ask(wait=0.3)
    assert all(reply.has_error() for reply in found.values())


class Slow:
    """A grid whose replies are the ids of what was sent; that to `stuck` takes until it is let go."""

    def __init__(self):
        self.let_go = threading.Event()

    def pull_messages(self, message_ids):
        [sent] = message_ids
        if sent == "stuck":
            self.let_go.wait(120)
        if sent == "broken":
            raise RecursionError("too deep")
        return [] if sent == "silent" else [f"reply to {sent}"]


@pytest.fixture
def slow():
    grid = Slow()
    yield grid
    grid.let_go.set()


@pytest.fixture
def pulling(slow):
    with closing(Pulling(slow, 3)) as made:
        yield made


def all_of(pulling, count):
    found, end = [], time.monotonic() + 60
    while len(found) < count:
        assert time.monotonic() < end, "nothing came"
        found += pulling.arrived(0.5)
    return dict(found)


def test_a_reply_that_takes_long_or_cannot_be_fetched_costs_no_other(slow, pulling):
    for site, sent in enumerate(["stuck", "first", "second"]):
        pulling.expect(site, sent)
    assert all_of(pulling, 2) == {"first": "reply to first", "second": "reply to second"}
    slow.let_go.set()
    assert all_of(pulling, 1) == {"stuck": "reply to stuck"}
    pulling.expect(0, "broken")
    pulling.expect(3, "first")  # fetched by the same hand: there are three
    found = all_of(pulling, 2)
    assert found["first"] == "reply to first"
    assert isinstance(found["broken"], RecursionError)


def test_a_reply_whose_rest_never_comes_is_given_up_and_its_site_is_heard_again(slow, monkeypatch):
    """As of a site that is killed while it sends: Flower waits three minutes for it."""
    monkeypatch.setattr(pulling_module, "_REST", 0.5)
    with closing(Pulling(slow, 1)) as pulling:
        pulling.expect(0, "stuck")
        found = all_of(pulling, 1)
        assert isinstance(found["stuck"], TimeoutError)
        pulling.expect(0, "again")
        assert all_of(pulling, 1) == {"again": "reply to again"}
        slow.let_go.set()
        assert pulling.arrived(0.3) == []  # what comes late is of a letter that was sent once more


def test_each_reply_comes_once_and_nothing_comes_of_nothing_or_once_it_is_closed(pulling):
    pulling.expect(0, "silent")
    pulling.expect(1, "first")
    all_of(pulling, 1)
    assert pulling.arrived(0.3) == []
    pulling.close()
    pulling.expect(0, "first")
    assert pulling.arrived(0.3) == []
