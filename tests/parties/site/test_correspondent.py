"""What every member of an agreement does with letters, whatever it answers: here, that it has read them."""

import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.exchanges import LONGEST, pair
from support.questions import QUESTIONS

from federation.contract.errors import InputError
from federation.signed_messages.messages import SealedAnswer, Status, read_reply
from parties.site.accounts import Journal
from parties.site.messages import Correspondent

COUNTS = QUESTIONS["counts"]


@dataclass
class Reader(Correspondent):
    """Counts what it has read, and says nothing else."""

    name: str
    key: object
    agreement: object
    journal: Journal
    answers: Path
    approved: object = lambda head: True
    now: object = time.time
    times: int = 0

    def __post_init__(self):
        self._recall("read")

    @property
    def position(self):
        return 0

    def _served(self, head, question, key):
        if question.endswith(b"no"):
            raise InputError("no such question")
        if not self._permitted(head, "anything", 10):
            return self._said(head, Status.BUSY)
        self.times += 1
        return self._sent(head, bytes(100), key, "read", what="anything")


@pytest.fixture
def read(tmp_path):
    """Whoever asks, and a reader as it is after a restart."""
    asked = pair(tmp_path, COUNTS)
    known = asked.site.name, asked.site.key, asked.site.agreement

    def again(**changed):
        return Reader(*known, Journal(tmp_path / "journal.jsonl"), tmp_path / "answers", **changed)

    return asked.asker, again


def test_what_was_answered_is_sent_again_byte_for_byte_and_not_made_anew(read):
    asker, again = read
    letter, reader = asker.letter(COUNTS), again()
    first = reader.reply(letter)
    assert reader.reply(letter) == first
    restarted = again()
    assert restarted.reply(letter) == first
    assert (reader.times, restarted.times) == (1, 0)
    for path in restarted.answers.iterdir():
        path.unlink()
    assert asker.read(again().reply(letter), COUNTS)[0] is Status.REFUSED
    assert "lacks the answer" in Journal(restarted.journal.path).lines[-1]["why"]


@pytest.mark.parametrize(
    "changed",
    [
        {"site": "south"},
        {"position": 1},
        {"key": bytes(32)},
        {"plan": bytes(32)},
        {"closing": 9},
        {"reply_to": bytes(32)},
    ],
)
def test_what_is_for_somebody_else_has_no_reply(read, changed):
    asker, again = read
    reader = again()
    assert reader.reply(asker.letter(COUNTS, **changed)) is None
    assert reader.reply({"head": b""}) is None
    assert [line["event"] for line in reader.journal.lines] == ["refused", "refused"]


@pytest.mark.parametrize(
    ("changed", "packet", "said"),
    [
        ({"approved": lambda head: False}, b"counts\n", Status.BUSY),
        ({"now": lambda: time.time() + 1e5}, b"counts\n", Status.EXPIRED),
        ({}, b"counts\n" + bytes(LONGEST), Status.REFUSED),
        ({}, b"counts\nno", Status.REFUSED),
    ],
)
def test_each_cause_has_one_of_few_words(read, changed, packet, said):
    asker, again = read
    reader = again(**changed)
    sealed = reader.reply(asker.letter(COUNTS, packet=packet))
    head = asker.head(packet)
    assert read_reply(SealedAnswer(**sealed).opened(head, asker.site, asker.reply_to))[0] is said
    assert reader.times == 0


def test_a_state_that_was_put_back_answers_nothing(read):
    asker, again = read
    reader = again()
    assert asker.read(reader.reply(asker.letter(COUNTS, known=b"1" * 32)), COUNTS)[0] is Status.REFUSED
    assert "an older copy of the state was put back" in reader.journal.lines[-1]["why"]


def test_what_is_refused_again_and_again_fills_no_disk(read):
    reader = read[1]()
    for _ in range(100):
        reader.refuse("no letter")
    assert [line["times"] for line in reader.journal.lines] == [1, 2, 4, 8, 16, 32, 64]
