"""What a question's own process says and does; that it is one is tested with the site."""

import os
import signal
import sys
import time
from dataclasses import replace
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.exchanges import agreement_for, pair
from support.questions import QUESTIONS

from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.contract.query import NOTHING, Declared, PrivateQuestion, ReleaseId, check_submission
from federation.engines.codec import decode_submission
from federation.queries.bags import Bags, CountsNoise, CountsQuestion
from federation.signed_messages.agreement import terms
from federation.signed_messages.keys import new_site_key
from federation.signed_messages.messages import JOURNAL, Status, question_packet, read_reply, reply_length
from parties.guard.answering import answered, answerer
from parties.party_data.cohort import Cohort, Holdings
from parties.site import worker
from parties.site.worker import Blank, Cost, Means

SHARED = [kind for kind, question in QUESTIONS.items() if isinstance(question, PrivateQuestion) and question.shared]
PRIVATE = [kind for kind, question in QUESTIONS.items() if isinstance(question, PrivateQuestion) and kind not in SHARED]


class Texts:
    """Forty rows of what are no numbers, in two bags."""

    def holdings(self, party):
        rows = np.full((40, 3), "n/a")
        return Holdings(party, rows, np.arange(40) % 2, np.arange(40) % 2)

    def evaluation(self):
        return None


class Numbers(Texts):
    """The same of numbers."""

    def holdings(self, party):
        return Holdings(party, np.ones((40, 3)), np.arange(40) % 2, np.arange(40) % 2)


def site(provider):
    return Cohort(Reference(f"{__name__}:{provider}").to_json(), 4, 1, None, public_features=True, paid=True)


@pytest.mark.parametrize("kind", PRIVATE)
def test_where_rows_cannot_be_read_noise_leaves_as_from_blank_ones(kind, caplog):
    question = QUESTIONS[kind]
    assert answered(site("Texts"), question).failures == {4: "the party could not answer"}
    found = worker._submission(question, site("Texts"))
    check_submission(question, found)
    assert found.failures == {}
    assert found.parties.tolist() == [4]
    assert "the rows of this site could not be read" in caplog.text


def test_noiseless_answers_tell_that_they_failed_readable_rows_are_not_replaced_and_no_answer_leaves(monkeypatch):
    assert worker._submission(QUESTIONS["votes"], site("Texts")).failures == {4: "the party could not answer"}
    blank = Blank(Reference(f"{__name__}:Texts").to_json()).holdings(4)
    assert blank.party == 4
    assert blank.rows.tolist() == [[0.0] * 3] * 40
    assert blank.labels.tolist() == [0] * 40
    assert blank.bags.sum() == 20
    monkeypatch.setattr(worker, "Blank", None)
    assert worker._submission(QUESTIONS["mean_operator"], site("Numbers")).failures == {}
    question = QUESTIONS["counts"]
    short = replace(answered(site("Numbers"), question), arrays={})
    monkeypatch.setattr(worker, "answered", lambda cohort, question: short)
    with pytest.raises(InputError):
        worker._submission(question, site("Numbers"))


@pytest.mark.parametrize("kind", QUESTIONS)
def test_what_an_answer_costs_is_known_before_it_is_given(kind):
    question = QUESTIONS[kind]
    found = worker.cost_of(question, replace(site("Texts"), masked=kind in SHARED))
    private = isinstance(question, PrivateQuestion)
    assert (found.guarantee == question.payment()) if private else found.guarantee is None
    assert found.trusted is (not private and kind not in ("rows", "embeddings"))
    assert (found.numbers > 0) == (kind in SHARED)
    assert Cost.from_json(found.to_json()) == found
    assert not private or (found.release, found.query) == (question.release.name, question.release.query)


class Marked(Numbers):
    """Rows that leave a mark when they are read."""

    def __init__(self, mark):
        self._mark = Path(mark)

    def holdings(self, party):
        with self._mark.open("a") as mark:
            mark.write(".")
        return super().holdings(party)


def test_rows_are_read_once_and_when_that_is_asked_for(tmp_path):
    mark = tmp_path / "mark"
    with opened(QUESTIONS["counts"], "Marked", mark=str(mark)) as work:
        assert work.cost.kind == "counts"
        assert not mark.exists()
        work.rows()
        assert mark.read_text() == "."
        assert work.answer() is not None
        assert mark.read_text() == "."  # what was read is what is answered about


class Failing(Numbers):
    """Rows that can be read from a try on, whose source is away until another; how often they were tried."""

    def __init__(self, good, there):
        self.tries, self._good, self._there = 0, good, there

    def holdings(self, party):
        self.tries += 1
        if self.tries < self._good:
            raise OSError("cut")
        return super().holdings(party)

    def require_there(self):
        if self.tries < self._there:
            raise InputError("away")


@pytest.mark.parametrize(
    ("good", "there", "told", "tries"),
    [
        (1, 9, "", 1),  # whether it is there is asked only where rows fail
        (9, 9, "away", 1),
        (2, 1, "", 2),  # a connection that was cut
        (9, 2, "away", 1),
        (9, 1, "", 2),  # a cell, for all that is known
    ],
)
def test_only_where_their_source_is_away_rows_are(good, there, told, tries):
    rows = Failing(good, there)
    assert (worker._away(rows, 4), rows.tries) == (told, tries)
    assert worker._away(Texts(), 4) == ""  # they do not say where they are


@pytest.fixture(scope="module")
def quick():
    """A process to fork from that knows all answers, whatever was prepared before."""
    forkserver._forkserver._stop()
    worker.prepare("support.exchanges", *{answerer(kind).__module__ for kind in PRIVATE})


def through_a_process(kind, spoilt=""):
    """What leaves a site for a question, and the answer in it."""
    question = QUESTIONS[kind]
    rows = Reference("support.exchanges:Forty", {"spoilt": spoilt})
    cohort = Cohort(rows.to_json(), 0, 1, None, public_features=True)
    agreement = agreement_for(Ed25519PrivateKey.generate(), [new_site_key().public_key()], question)
    with worker.read(question_packet(question), agreement, cohort, Means()) as work:
        work.rows()
        packet = work.answer()
    assert work.cost.guarantee == question.payment()
    status, records = read_reply(packet)
    assert status is Status.ANSWER
    assert len(packet) == reply_length(question)
    return decode_submission(records, question.fields())


SOME = ("mean_operator",)  # of the others the slow tests


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in SOME else pytest.mark.slow) for kind in PRIVATE]
)
def test_a_process_answers_with_fresh_noise_and_a_row_that_ends_it_shows_nowhere(quick, kind):
    """Of every kind: at its length, under its guarantee, without a failure; whatever becomes of the process."""
    first, spoilt = through_a_process(kind), through_a_process(kind, spoilt="yes")
    for submission in (first, spoilt):
        check_submission(QUESTIONS[kind], submission)
        assert (submission.parties.tolist(), submission.failures) == ([0], {})
        assert submission.guarantee == first.guarantee

    def differs(other):
        return any(not np.array_equal(first.arrays[name], other.arrays[name]) for name in first.arrays)

    assert any(differs(through_a_process(kind)) for _ in range(12))  # a few counts may be the same by chance


class Ending(Numbers):
    """Rows that end, or hold up, whoever reads them; their source is away, or says nothing, or neither."""

    def __init__(self, mark, held, source):
        self._mark, self._held, self._source = Path(mark), held, source

    def holdings(self, party):
        if self._mark.exists():
            self._mark.unlink()
            if self._held:
                time.sleep(60)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().holdings(party)

    def require_there(self):
        if self._source == "silent":
            time.sleep(60)
        if self._source == "away":
            raise InputError("away")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("held", "source", "told"),
    [(False, "away", None), (True, "away", None), (False, "silent", "2")],
)
def test_a_process_that_ends_over_rows_that_are_away_leaves_them_unpaid(
    quick, tmp_path, monkeypatch, held, source, told
):
    if source == "silent":
        monkeypatch.setattr(worker, "_REACHED", 2)
    with ending(tmp_path, held, source) as work, pytest.raises(worker.Busy, match=told):
        work.rows()


@pytest.mark.slow
@pytest.mark.parametrize("held", [False, True])
def test_a_process_that_ends_over_rows_that_are_there_is_paid_for_and_blank_ones_answer(quick, tmp_path, held):
    question = QUESTIONS["counts"]
    with ending(tmp_path, held, "there") as work:
        work.rows()
        packet = work.answer()
    assert read_reply(packet)[0] is Status.ANSWER
    assert len(packet) == reply_length(question)


def opened(question, provider="Numbers", **known):
    """The process that answers a question about the rows of a provider, as a site opens it."""
    means, declared = known.pop("means", Means()), known.pop("declared", NOTHING)
    cohort = replace(site(provider), reference=Reference(f"{__name__}:{provider}", known).to_json(), declared=declared)
    agreement = agreement_for(Ed25519PrivateKey.generate(), [new_site_key().public_key()], question)
    return worker.read(question_packet(question), agreement, cohort, means)


def ending(folder, held, source):
    (folder / "mark").touch()
    known = {"mark": str(folder / "mark"), "held": held, "source": source}
    return opened(QUESTIONS["counts"], "Ending", **known, means=Means(seconds=5))


def test_a_process_reads_the_rows_within_the_means_and_is_gone():
    made, seconds = worker.apart(Means(), partial(Numbers().holdings, 4))
    assert (made.party, made.rows.shape) == (4, (40, 3))
    assert seconds > 0
    with pytest.raises(InputError, match=r"1073741824.*20"):
        worker.apart(Means(memory=2**30, seconds=20), partial(np.ones, 2**28))  # 2 GiB
    process, _ = worker.apart(Means(), os.getpid)
    assert process != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_a_process_does_not_run_the_program_of_its_site_again(tmp_path, monkeypatch):
    """As Python has each process do, which would take longer than to answer."""
    mark, program, main = tmp_path / "mark", tmp_path / "program.py", ModuleType("__main__")
    program.write_text(f"open({str(mark)!r}, 'w')")
    main.__file__ = str(program)
    monkeypatch.setitem(sys.modules, "__main__", main)
    worker.apart(Means(), partial(Numbers().holdings, 4))
    assert not mark.exists()
    assert sys.modules["__main__"] is main


def test_what_contradicts_a_site_is_refused_before_it_is_paid_for():
    refused = opened(QUESTIONS["counts"], declared=Declared(classes=5))
    with pytest.raises(InputError, match=r"3.*5"), refused:
        pass


COUNTS = CountsQuestion(CountsNoise("pure", 1.0), Bags(1, 2), release=ReleaseId("a release"))


def test_a_machine_that_is_too_busy_pays_nothing_and_is_asked_again(tmp_path, monkeypatch, caplog):
    asked = pair(tmp_path, COUNTS)
    with monkeypatch.context() as busy:
        busy.setattr(worker, "_SHARE_TO_READ", 0.0)
        assert asked.said(COUNTS) is Status.BUSY
    assert "too busy to answer in time" in caplog.text
    assert asked.events == []
    assert asked.said(COUNTS) is Status.ANSWER


def test_a_question_that_takes_too_much_to_read_costs_nothing_and_the_next_is_answered(tmp_path):
    agreed = {"kind": "counts", "times": 1, "same": terms(COUNTS), "length": 2**21, "reply": 10_000}
    asked = pair(tmp_path, COUNTS, means=Means(memory=3 * 2**30, seconds=1), asked=[agreed])
    bomb = b"counts\n" + bytes(range(256)) * 2**12
    asked.site.reply(asked.asker.letter(COUNTS, packet=bomb))
    assert asked.events == ["refused"]
    asked.site.means = Means()
    assert asked.said(COUNTS) is Status.ANSWER


@pytest.mark.parametrize("question", [COUNTS, QUESTIONS["votes"]], ids=lambda question: question.kind)
def test_rows_of_which_nothing_can_be_read_are_paid_for_and_told_in_as_many_bytes(tmp_path, question):
    """It may be for one cell: who asks must not learn of it as often as they like."""
    asked = pair(tmp_path, question)
    asked.site.cohort = replace(asked.site.cohort, reference=Reference("support.exchanges:Unreadable").to_json())
    reply = asked.site.reply(asked.asker.letter(question))
    _, records = asked.asker.read(reply, question)
    assert decode_submission(records, question.fields()).failures == {0: "the party could not answer"}
    assert len(reply["sealed"]) == reply_length(question) + JOURNAL + 16
    assert asked.events == ["charged", "begun", "answered"]
