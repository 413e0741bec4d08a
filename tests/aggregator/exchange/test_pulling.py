"""Replies are fetched though one of them cannot be."""

import threading
import time
from contextlib import closing

import pytest

from aggregator.exchange import message_engine as pulling_module
from aggregator.exchange.message_engine import Pulling


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch):
    monkeypatch.setattr(pulling_module, "_PAUSE", 0.02)


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


def test_a_reply_that_takes_long_holds_up_no_other(slow, pulling):
    for site, sent in enumerate(["stuck", "first", "second"]):
        pulling.expect(site, sent)
    assert all_of(pulling, 2) == {"first": "reply to first", "second": "reply to second"}
    slow.let_go.set()
    assert all_of(pulling, 1) == {"stuck": "reply to stuck"}


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


def test_what_cannot_be_fetched_is_told_and_costs_no_other(pulling):
    pulling.expect(0, "broken")
    pulling.expect(3, "first")  # fetched by the same hand: there are three
    found = all_of(pulling, 2)
    assert found["first"] == "reply to first"
    assert isinstance(found["broken"], RecursionError)


def test_each_reply_comes_once_and_nothing_comes_of_nothing(pulling):
    pulling.expect(0, "silent")
    pulling.expect(1, "first")
    all_of(pulling, 1)
    assert pulling.arrived(0.3) == []


def test_nothing_is_fetched_once_it_is_closed(pulling):
    pulling.close()
    pulling.expect(0, "first")
    assert pulling.arrived(0.3) == []
