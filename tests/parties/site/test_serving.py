"""What all services have: letters until a signal says stop, decisions of people, a log that follows the journal."""

import logging
import signal
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from support.site_folders import site_folder

from federation.contract.errors import InputError
from federation.signed_messages.agreement import Agreement
from parties.site import service as serving
from parties.site.policy import APPROVED, DENIED
from parties.site.service import Serving
from parties.site.settings import Settings
from parties.site.state import State


class Box:
    """A mail box of one letter."""

    def __init__(self, *known):
        self.letters, self.sent, self.closing = [SimpleNamespace(parts={"a": b"letter"})], [], threading.Event()

    @contextmanager
    def opened(self):
        yield

    def fetch(self):
        if not self.letters:
            self.closing.set()
            return None
        return self.letters.pop()

    def reply(self, letter, parts):
        self.sent.append(parts)


class Echo(Serving):
    """Sends back what comes, or raises it."""

    def __init__(self, settings, says=None):
        self.settings, self.agreement = settings, Agreement.load(settings.plan)
        self.state, self.key, self.says = State.found(settings.state), None, says
        self._recall()

    @property
    def correspondent(self):
        def reply(parts):
            self.journal.add("refused", why="seen")
            if self.says:
                raise self.says
            return parts

        return SimpleNamespace(reply=reply, refuse=lambda why: None)


@pytest.fixture
def settings(tmp_path):
    return Settings.load(site_folder(tmp_path))


def test_letters_are_answered_and_the_log_follows_the_journal(settings, monkeypatch, caplog):
    box = Box()
    monkeypatch.setattr(serving, "Mailbox", lambda *_: box)
    with caplog.at_level(logging.INFO):
        echo = Echo(settings)
        echo.run("here we are", table="patients")
    assert box.sent == [{"a": b"letter"}]
    assert [line["event"] for line in echo.journal.lines] == ["start", "refused", "stop"]
    for said in (
        "here we are",
        "waits for approval; type: federation party approve",
        "refused: seen",
        "stopped; the head",
    ):
        assert said in caplog.text


def test_a_disk_that_says_nothing_can_be_written_ends_no_service(settings, monkeypatch, caplog):
    box = Box()
    monkeypatch.setattr(serving, "Mailbox", lambda *_: box)
    Echo(settings, OSError(28, "no space")).run("here we are")
    assert box.sent == []
    assert "nothing is answered until it can be written (no space)" in caplog.text


def test_what_is_no_letter_ends_no_service_whose_disk_is_full(settings, monkeypatch, caplog):
    """Whoever may submit runs sends garbage, and waits for a site whose disk is full."""
    told = []

    def box(*known):
        known[-1]("a message that is no letter")
        return Box()

    def refuse(why):
        told.append(why)
        raise OSError(28, "no space")

    monkeypatch.setattr(serving, "Mailbox", box)
    echo = Echo(settings)
    monkeypatch.setattr(Echo, "correspondent", SimpleNamespace(reply=lambda parts: None, refuse=refuse))
    echo.run("here we are")
    assert told == ["a message that is no letter"]
    assert "nothing is answered until it can be written (no space)" in caplog.text


def test_what_people_decide_holds_from_then_on(settings):
    echo = Echo(settings)
    head = SimpleNamespace(plan=bytes(32), exchange=bytes(16))
    assert not echo._agreed(head)
    for state in (APPROVED, DENIED):
        echo.approvals.decide(None if state == APPROVED else echo._stand(bytes(32), None).id, state, "ada")
        if state == APPROVED:
            assert echo._agreed(head)
    with pytest.raises(InputError, match="ada has denied"):
        echo._agreed(head)
    assert [line["event"] for line in echo.journal.lines] == ["approved", "denied"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_close_the_mail_box(number):
    box, before = Box(), signal.getsignal(number)
    with serving._stopping(box):
        assert signal.getsignal(number) is not before
        signal.raise_signal(number)
        assert box.closing.is_set()
        assert signal.getsignal(number) is before  # a second one ends whoever waits for a hostile SuperLink
    assert signal.getsignal(number) is before
