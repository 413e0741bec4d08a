"""The service of a site, with a mail box in memory: what is answered, when it leaves, and what a person can follow."""

import logging
import re
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from support.exchanges import Asker, Rows
from support.questions import QUESTIONS
from support.site_folders import site_folder

from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import load_key
from federation.signed_messages.messages import Status
from parties.party_data.cohort import Holdings
from parties.site import service, worker
from parties.site.accounts import said
from parties.site.policy import APPROVED, DENIED, Approvals, longest_letter
from parties.site.service import Service, Serving, cohort
from parties.site.settings import Settings
from parties.site.state import State

VOTES = QUESTIONS["votes"]
APPROVED_BY_NOBODY = ("[policy]", '[policy]\napprove = "auto"')
pytestmark = pytest.mark.usefixtures("_prepared")


class Box:
    """A mail box with letters, that closes once they are answered."""

    def __init__(self, *letters):
        self.letters, self.sent, self.closing = [*letters], [], threading.Event()

    @contextmanager
    def opened(self):
        yield

    def fetch(self):
        if not self.letters:
            self.closing.set()
            return None
        return SimpleNamespace(parts=self.letters.pop(0))

    def reply(self, letter, parts):
        self.sent.append(parts)


@pytest.fixture(scope="module")
def _prepared():
    worker.prepare()


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Makes a service, that reads its table in this process, and whoever asks it; `slept` has the seconds waited."""
    monkeypatch.setattr(worker, "apart", lambda means, act: (act(), 1.0))

    def made(*replaced, **changed):
        signing = Ed25519PrivateKey.generate()
        path = site_folder(tmp_path, signing=signing, replaced=replaced, **changed)
        settings = Settings.load(path)
        agreement = Agreement.load(settings.plan)
        key = load_key(settings.connection.key, EllipticCurvePrivateKey)
        made = Service(settings, agreement, State.found(settings.state), key, Rows())
        made.look()
        asker = Asker(agreement, key.public_key(), signing, X25519PrivateKey.generate(), bytes(16))
        slept = []
        monkeypatch.setattr("parties.site.service.time.sleep", slept.append)

        def serve(*letters):
            box = Box(*letters)
            made.serve(box)
            return [asker.read(reply, VOTES)[0] for reply in box.sent]

        return SimpleNamespace(service=made, asker=asker, slept=slept, serve=serve)

    return made


def test_an_answer_leaves_when_its_time_is_over_and_all_else_at_once(served, caplog):
    caplog.set_level(logging.INFO)
    site = served(APPROVED_BY_NOBODY)
    box = Box(site.asker.letter(VOTES, packet=b"loot\n"), {})
    site.service.serve(box)
    assert len(box.sent) == 1
    assert site.slept == []
    letter = site.asker.letter(VOTES)
    assert site.serve(letter, letter) == [Status.ANSWER, Status.ANSWER]  # the second one was sent before
    assert len(site.slept) == 1
    assert 0 < site.slept[0] <= 30
    for sentence in ("table 'patients': a remark", "connected", "answered 'votes'", "sent again"):
        assert sentence in caplog.text


def test_nothing_is_answered_until_somebody_has_approved(served, caplog):
    caplog.set_level(logging.INFO)
    site = served()
    letter = site.asker.letter(VOTES)
    assert site.serve(letter) == [Status.BUSY]
    assert site.slept == []
    approvals = Approvals(site.service.state.folder / "approvals", "plan")
    name = approvals.decide(None, DENIED, "eve").id
    assert re.search(rf"SITE\.toml.*{name}", caplog.text)
    assert site.serve(letter) == [Status.REFUSED]
    assert site.service.site.denied(site.asker.head(b""))  # a secure sum that has begun ends
    approvals.decide(name, APPROVED, "ada")
    assert not site.service.site.denied(site.asker.head(b""))
    assert site.serve(letter) == [Status.ANSWER]
    events = [line["event"] for line in site.service.journal.lines]
    assert events == ["table", "waits for approval", "denied", "refused", "approved", "charged", "begun", "answered"]
    assert "was approved by ada" in caplog.text


def test_rows_that_are_away_are_told_when_an_answer_would_leave(served):
    """How long it took to find out may tell how far the reading came."""
    site = served(APPROVED_BY_NOBODY)
    rows = Reference("support.exchanges:Away", {"mark": "/"}).to_json()
    site.service.site.cohort = replace(site.service.site.cohort, reference=rows)
    assert site.serve(site.asker.letter(VOTES)) == [Status.BUSY]
    assert len(site.slept) == 1
    assert "charged" not in [line["event"] for line in site.service.journal.lines]


def test_a_table_that_is_no_longer_as_agreed_or_has_too_few_rows_keeps_a_site_busy_and_tells_nobody_why(served, caplog):
    site = served(APPROVED_BY_NOBODY, ("[policy]", "[policy]\nleast-rows = 3"))
    rows = site.service.table
    rows.change(None, "column 'p' is gone")
    letter = site.asker.letter(VOTES)
    assert site.serve(letter) == [Status.BUSY]
    assert re.search(r"ready.*column.*'p'", caplog.text)
    rows.change(Holdings(0, np.eye(3)[:2], np.zeros(2)))  # whatever the plan says
    assert site.serve(letter) == [Status.BUSY]
    assert re.search(r"2.*policy\.least-rows.*3", caplog.text)
    rows.change(Holdings(0, np.ones((4, 3)), np.zeros(4)))
    assert site.serve(letter) == [Status.ANSWER]
    events = [line["event"] for line in site.service.journal.lines]
    assert [event for event in events if event != "waits for approval"][-4:] == [
        "table",
        "charged",
        "begun",
        "answered",
    ]


def test_whatever_is_wrong_with_a_table_the_other_side_gets_as_many_bytes(served):
    site = served(APPROVED_BY_NOBODY)
    causes = ("column 'p' is gone", "row 17: 'n/a' is no number", "x" * 999)
    changes = [(None, cause) for cause in causes] + [(Holdings(0, np.eye(3), np.zeros(3)),)]
    found, lengths = [], set()
    for change in changes:
        site.service.table.change(*change)
        box = Box(site.asker.letter(VOTES))
        site.service.serve(box)
        found.append(site.asker.read(box.sent[0], VOTES)[0])
        lengths.add(len(box.sent[0]["sealed"]))
    assert found == [Status.BUSY] * 3 + [Status.ANSWER]
    assert len(lengths) == 1


def test_a_table_known_by_another_name_keeps_a_site_from_starting(served, tmp_path):
    site = served(APPROVED_BY_NOBODY)
    path = tmp_path / "site.toml"
    path.write_text(path.read_text().replace('table = "patients"', 'table = "people"'))
    settings = Settings.load(path)
    again = Service(settings, site.service.agreement, site.service.state, site.service.key, Rows())
    with pytest.raises(InputError, match=r"100%.*people.*patients"):
        again.look()
    again.identity.settle_same("people", "patients", "ada")
    settled = Service(settings, site.service.agreement, site.service.state, site.service.key, Rows())
    settled.look()
    assert settled.site.accounts.others == ["patients", "people"]


def test_a_table_that_took_long_once_is_read_again_and_one_that_always_does_is_not_asked_for(served, monkeypatch):
    site = served(APPROVED_BY_NOBODY)
    took = iter([9.0, 1.0])
    monkeypatch.setattr(worker, "apart", lambda means, act: (act(), next(took)))
    site.service.look()
    assert site.service.ready
    assert next(took, None) is None
    monkeypatch.setattr(worker, "apart", lambda means, act: (act(), 8.4))
    site.service.table.change(site.service.table.holdings)
    assert site.serve(site.asker.letter(VOTES)) == [Status.BUSY]
    with pytest.raises(InputError, match=r"8.*14.*limits\.seconds.*37"):
        site.service.look()
    limits = site.service.settings.limits.model_copy(update={"seconds": 37})
    raised = site.service.settings.model_copy(update={"limits": limits})
    assert raised.means.seconds / 2 >= 8.4  # what is told is enough


def test_a_disk_that_fails_stops_no_service(served, monkeypatch, caplog):
    site = served(APPROVED_BY_NOBODY)
    with monkeypatch.context() as broken:
        broken.setattr("parties.site.accounts.os.open", lambda *_: (_ for _ in ()).throw(OSError(30, "read-only")))
        assert site.serve({}) == []
    assert "nothing is answered until it can be written (read-only)" in caplog.text
    assert site.serve(site.asker.letter(VOTES)) == [Status.ANSWER]


def test_how_long_a_changed_table_took_to_read_is_not_told_by_when_the_answer_leaves(served, monkeypatch):
    site = served(APPROVED_BY_NOBODY)
    clock, slept = [100.0], []
    now = SimpleNamespace(monotonic=lambda: clock[0], sleep=slept.append, time=time.time)
    monkeypatch.setattr(service, "time", now)

    def apart(means, act):
        clock[0] += 5.0
        return act(), 5.0

    monkeypatch.setattr(worker, "apart", apart)
    site.service.table.change(site.service.table.holdings)
    assert site.serve(site.asker.letter(VOTES)) == [Status.ANSWER]
    assert slept == [2 * site.service.settings.limits.seconds - 5.0]


def test_a_site_that_starts_on_a_busy_machine_is_busy_until_that_is_over(tmp_path, monkeypatch, caplog):
    settings = Settings.load(site_folder(tmp_path, replaced=[APPROVED_BY_NOBODY]))
    took, ready = [9.0] * service._LOOKS + [1.0], []
    monkeypatch.setattr(worker, "apart", lambda means, act: (act(), took.pop(0)))
    monkeypatch.setattr(service.Service, "serve", lambda made, box: (ready.append(made.ready), made.look()))
    monkeypatch.setattr(service, "Mailbox", lambda *_: Box())
    service.run(settings, Agreement.load(settings.plan), Rows())
    assert ready == [False]
    assert took == []
    assert "not ready yet: to read the table takes 9 s" in caplog.text


def test_a_site_whose_table_is_away_waits_for_it(tmp_path, monkeypatch, caplog):
    """A data base that starts later than the site, or is down for a night."""
    settings, mark = Settings.load(site_folder(tmp_path, replaced=[APPROVED_BY_NOBODY])), tmp_path / "mark"
    mark.touch()
    table, ready = Rows(), []
    table.reference = Reference("support.exchanges:Away", {"mark": str(mark)}).to_json()

    def serve(made, box):
        ready.append(made.ready)
        assert made.table.version() != made._version  # so that the next question has it looked for
        mark.unlink()
        made.look()
        ready.append(made.ready)

    monkeypatch.setattr(service.Service, "serve", serve)
    monkeypatch.setattr(service, "Mailbox", lambda *_: Box())
    service.run(settings, Agreement.load(settings.plan), table)
    assert ready == [False, True]
    assert "not ready yet: the data base says: connection refused" in caplog.text


def test_an_exchange_has_so_many_questions_and_no_more(served):
    site = served(
        APPROVED_BY_NOBODY,
        ("[policy]", "[policy]\nmost-questions = 1"),
        ("[allowance.trusted]\nepsilon = 1.0", "[allowance.trusted]\nepsilon = 9.0\nanswers = 9"),
    )
    assert site.serve(site.asker.letter(VOTES)) == [Status.ANSWER]
    site.asker.exchange = bytes([1] * 16)
    assert site.serve(site.asker.letter(VOTES)) == [Status.REFUSED]
    assert "1 questions were answered" in site.service.journal.lines[-1]["why"]


def test_a_site_declares_what_the_plan_says_of_its_table(served, tmp_path):
    changed = {"bags": {"column": "ward", "most": 3}, "rows": [2, 50], "rows_per_person": 2, "quorum": 1.0}
    site = served(**changed, colluding=0.0)
    declared = cohort(site.service.settings, site.service.agreement, "{}").declared
    assert (declared.most_rows, declared.bags, declared.classes, declared.rows_per_person) == (150, 3, 3, 2)
    assert (declared.honest, declared.label_range) == (1, None)
    alone = site.service.agreement.model_copy(update={"quorum": 0.1, "colluding": 0.9})
    assert cohort(site.service.settings, alone, "{}").declared.honest == 0  # nobody can be counted on for a share


def test_a_service_is_the_only_one_and_reads_its_root_from_the_plan(tmp_path, monkeypatch):
    settings = Settings.load(site_folder(tmp_path, replaced=[APPROVED_BY_NOBODY]))
    made = []

    class Known(Box):
        def __init__(self, address, root, key, most, refused):
            refused("no letter")
            made.append((address, root, most))
            super().__init__()

        def fetch(self):
            with pytest.raises(InputError), State.found(settings.state).owned():
                pass
            return super().fetch()

    monkeypatch.setattr(service, "Mailbox", Known)
    service.run(settings, Agreement.load(settings.plan), Rows())
    assert made == [("127.0.0.1:1", b"none", longest_letter(Agreement.load(settings.plan)))]
    lines = State.found(settings.state).journal(reading=True).lines
    assert [said(line).partition(" ")[0] for line in lines] == ["table", "refused:", "started,", "stopped"]


def test_a_key_that_others_may_read_and_a_plan_that_the_policy_does_not_allow_are_refused(tmp_path, served):
    settings = Settings.load(site_folder(tmp_path / "open"))
    settings.connection.key.chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        service.run(settings, Agreement.load(settings.plan), Rows())
    with pytest.raises(InputError, match=r"policy\.protocols.*soft_vote"):
        served(('"class_ratio"', '"soft_vote"'))


class Echo(Serving):
    """Sends back what comes."""

    def __init__(self, settings):
        self.settings, self.agreement = settings, Agreement.load(settings.plan)
        self.state, self.key = State.found(settings.state), None
        self._recall()

    @property
    def correspondent(self):
        def reply(parts):
            self.journal.add("refused", why="seen")
            return parts

        return SimpleNamespace(reply=reply, refuse=lambda why: None)


@pytest.fixture
def settings(tmp_path):
    return Settings.load(site_folder(tmp_path))


def test_letters_are_answered_and_the_log_follows_the_journal(settings, monkeypatch, caplog):
    box = Box({"a": b"letter"})
    monkeypatch.setattr(service, "Mailbox", lambda *_: box)
    with caplog.at_level(logging.INFO):
        echo = Echo(settings)
        echo.run("here we are", table="patients")
    assert box.sent == [{"a": b"letter"}]
    assert [line["event"] for line in echo.journal.lines] == ["start", "refused", "stop"]
    waits = "waits for approval; type: federation party approve"
    for sentence in ("here we are", waits, "refused: seen", "stopped; the head"):
        assert sentence in caplog.text


def test_what_is_no_letter_ends_no_service_whose_disk_is_full(settings, monkeypatch, caplog):
    """Whoever may submit runs sends garbage, and waits for a site whose disk is full."""
    told = []

    def box(*known):
        known[-1]("a message that is no letter")
        return Box({"a": b"letter"})

    def refuse(why):
        told.append(why)
        raise OSError(28, "no space")

    monkeypatch.setattr(service, "Mailbox", box)
    echo = Echo(settings)
    monkeypatch.setattr(Echo, "correspondent", SimpleNamespace(reply=lambda parts: None, refuse=refuse))
    echo.run("here we are")
    assert told == ["a message that is no letter"]
    assert "nothing is answered until it can be written (no space)" in caplog.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_close_the_mail_box(number):
    box, before = Box(), signal.getsignal(number)
    with service._stopping(box):
        assert signal.getsignal(number) is not before
        signal.raise_signal(number)
        assert box.closing.is_set()
        assert signal.getsignal(number) is before  # a second one ends whoever waits for a hostile SuperLink
    assert signal.getsignal(number) is before
