"""A site that keeps to its own rules, whatever letters say."""

import hashlib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.exchanges import LONGEST, pair
from support.questions import QUESTIONS
from support.summing_sites import LetterWorld, town
from support.two_class_questions import marginals, unseeded

from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId
from federation.engines.codec import decode_submission
from federation.queries.bags import Bags, CountsNoise, CountsQuestion
from federation.queries.marginals import Hypothesis
from federation.secure_aggregation.messages import KEYS
from federation.signed_messages.messages import JOURNAL, SealedAnswer, Status, plain, question_packet
from parties.site import worker
from parties.site.messages import OPEN

COUNTS = CountsQuestion(CountsNoise("pure", 1.0), Bags(1, 2), release=ReleaseId("a release"))
LATER = replace(COUNTS, release=ReleaseId("another release"))
QUERY = unseeded(marginals("pure", "label", "replace", queries=2))
SECOND = replace(QUERY, release=ReleaseId("an exchange", 2, 1))
VOTES, ROWS = QUESTIONS["votes"], replace(QUESTIONS["rows"], bags=Bags(1, 2))
pytestmark = pytest.mark.usefixtures("_prepared")


@pytest.fixture(scope="module")
def _prepared():
    worker.prepare()


def counts(asker, reply):
    """The noised label counts of an answer."""
    status, records = asker.read(reply, COUNTS)
    assert status is Status.ANSWER
    return decode_submission(records, COUNTS.fields()).arrays["counts"].ravel()


def test_an_answer_is_what_was_agreed_charged_once_and_sealed_to_who_asked(tmp_path):
    asked = pair(tmp_path, COUNTS)
    reply = asked.site.reply(asked.asker.letter(COUNTS))
    sent = counts(asked.asker, reply)
    assert np.abs(sent - 20).max() < 60  # beyond it once in e^20 times
    [opened] = (tmp_path / "answers").glob(f"*{OPEN}")  # people of the site can see what left
    assert np.array_equal(np.ravel(plain(opened.read_bytes())["counts"]), sent)
    assert opened.stat().st_mode & 0o777 == 0o600
    assert asked.events == ["charged", "begun", "answered"]
    assert asked.site.accounts.spent()["label/replace"] == (1.0, 0.0)


def test_queries_of_secure_sums_are_answered_where_a_plan_has_them(tmp_path, monkeypatch, flower_process):
    world = LetterWorld(town(tmp_path, monkeypatch))
    assert world.ask(KEYS, 1, b"") is not None


def test_a_crash_between_charge_and_answer_costs_nothing_more(tmp_path, monkeypatch, caplog):
    asked = pair(tmp_path, COUNTS)
    with monkeypatch.context() as broken:
        broken.setattr("parties.site.messages.write_lasting", lambda *_: (_ for _ in ()).throw(OSError(28, "no space")))
        assert asked.said(COUNTS) is Status.BUSY
    assert asked.events == ["charged", "begun"]
    assert "nothing is answered until it can be written (no space)" in caplog.text
    restarted = asked.again()
    counts(asked.asker, restarted.site.reply(asked.asker.letter(COUNTS)))
    assert restarted.events.count("charged") == 1


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"site": "south"}, "for another site"),
        ({"position": 1}, "for another site"),
        ({"key": bytes(32)}, "for another site"),
        ({"plan": bytes(32)}, "of a plan that this site does not serve"),
        ({"closing": 2**40}, "of a plan that this site does not serve"),
        ({"reply_to": bytes(32)}, ""),
    ],
)
def test_what_is_for_others_gets_no_reply(tmp_path, changed, why):
    asked = pair(tmp_path, COUNTS)
    assert asked.site.reply(asked.asker.letter(COUNTS, **changed)) is None
    assert why in asked.reasons[0]
    assert asked.events == ["refused"]


def test_what_the_aggregator_has_not_signed_gets_no_reply(tmp_path):
    asked = pair(tmp_path, COUNTS)
    forged = replace(asked.asker, signing=Ed25519PrivateKey.generate()).letter(COUNTS)
    genuine = asked.asker.letter(COUNTS)
    other = asked.asker.letter(LATER)
    swapped = [genuine | {part: other[part]} for part in ("question", "head")]
    for letter in (forged, {}, *swapped, genuine | {"known": bytes([1] * 32)}):  # and what is known of its journal
        assert asked.site.reply(letter) is None
    assert "not signed by this aggregator" in asked.reasons[-1]
    assert {*asked.events} == {"refused"}
    assert asked.site.accounts.spent() == {"label/replace": (0.0, 0.0), "trusted": (0.0, 0.0)}


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (VOTES, "nobody has agreed to the question 'votes'"),
        (LATER, "'release.name' of the question is not what was agreed on"),
        (replace(COUNTS, noise=CountsNoise("pure", 0.5)), "'noise.epsilon' of the question is not what was agreed on"),
        (replace(COUNTS, bags=Bags(2, 2)), "'bags.count' of the question is not what was agreed on"),
        (replace(COUNTS, seeded=True), "'seeded' of the question is not what was agreed on"),
    ],
)
def test_what_was_not_agreed_on_is_refused_for_nothing(tmp_path, question, why):
    asked = pair(tmp_path, COUNTS)
    assert asked.said(question) is Status.REFUSED
    assert asked.reasons == [why]
    assert asked.events == ["refused"]


@pytest.mark.parametrize("packet", [b"", b"counts", b"counts\n\xff\xff", b"x" * 200 + b"\n", "ä\n".encode(), b"os\n"])
def test_what_cannot_be_read_is_refused_for_nothing(tmp_path, packet):
    asked = pair(tmp_path, COUNTS)
    letter = asked.asker.letter(COUNTS, packet=packet or b"\n")
    assert asked.site.reply(letter) is not None
    assert asked.events == ["refused"]


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (replace(COUNTS, seeded=True), "noise has no seed"),
        (ROWS, "keeps its features"),
        (QUESTIONS["label_sums"], "keeps its features"),
        (replace(QUESTIONS["mean_operator"], contributors=7), "no secure summation"),
    ],
)
def test_what_a_site_would_not_answer_is_refused_before_it_is_charged(tmp_path, question, why):
    asked = pair(tmp_path, question)
    assert asked.said(question) is Status.REFUSED
    assert why in asked.reasons[0]
    assert "charged" not in asked.events


def test_public_features_cost_nothing(tmp_path):
    asked = pair(tmp_path, ROWS)
    asked.site.cohort = replace(asked.site.cohort, public_features=True)
    assert asked.said(ROWS) is Status.ANSWER
    assert asked.events == ["begun", "answered"]


def test_one_answer_without_noise_leaves_and_costs_what_the_plan_promises(tmp_path):
    asked = pair(tmp_path, VOTES)
    asked.site.reply(asked.asker.letter(VOTES))
    assert asked.site.accounts.spent() == {"label/replace": (0.0, 0.0), "trusted": (1.0, 0.0)}
    assert asked.said(VOTES, by=replace(asked.asker, exchange=bytes(16))) is Status.REFUSED
    assert "trusted" in asked.reasons[0] or "would spend" in asked.reasons[0]


def test_an_allowance_that_is_spent_ends_it(tmp_path):
    asked = pair(tmp_path, COUNTS, epsilon=0.5)
    assert asked.said(COUNTS) is Status.REFUSED
    assert (asked.events, asked.site.touched) == (["refused"], False)  # for what cannot be paid nothing is read
    (tmp_path / "more").mkdir()
    asked = pair(tmp_path / "more", COUNTS, epsilon=1.5)
    counts(asked.asker, asked.site.reply(asked.asker.letter(COUNTS)))
    assert asked.said(COUNTS, by=replace(asked.asker, exchange=bytes(16))) is Status.REFUSED
    assert "would spend epsilon=2" in asked.reasons[0]


def test_a_place_in_an_exchange_has_one_question_also_after_a_restart(tmp_path):
    asked = pair(tmp_path, COUNTS, LATER, epsilon=5.0)
    asked.site.reply(asked.asker.letter(COUNTS))
    assert asked.said(LATER) is Status.REFUSED
    assert asked.reasons == ["another question was answered in this place of the exchange"]
    assert asked.said(COUNTS, number=1) is Status.REFUSED  # the same release asked for again, for averages
    assert asked.events.count("charged") == 1
    assert asked.again().said(LATER) is Status.REFUSED


def test_the_queries_of_a_release_are_charged_together_and_each_is_answered_once(tmp_path):
    asked = pair(tmp_path, QUERY, epsilon=1.0)
    asked.site.cohort = replace(asked.site.cohort, public_features=True)
    another = replace(QUERY, hypothesis=Hypothesis.constant(3, 1))
    found = [asked.said(question, number) for number, question in enumerate((QUERY, SECOND, another))]
    assert found == [Status.ANSWER, Status.ANSWER, Status.REFUSED]
    assert asked.reasons == ["another question was answered in this place of the exchange"]
    assert asked.site.accounts.spent()["label/replace"] == (1.0, 0.0)


@pytest.mark.parametrize(
    "further",
    [
        replace(SECOND, noise=replace(QUERY.noise, epsilon=8.0)),
        replace(QUERY, release=ReleaseId("an exchange", 3, 2)),
        replace(QUERY, release=ReleaseId("an exchange", 5, 2)),
    ],
    ids=["louder", "longer", "much longer"],
)
def test_no_plan_makes_a_release_go_on_with_less_noise_than_was_charged(tmp_path, further):
    asked = pair(tmp_path, QUERY, further, epsilon=20.0)
    asked.site.cohort = replace(asked.site.cohort, public_features=True)
    asked.site.reply(asked.asker.letter(QUERY))
    for _ in range(2):
        assert asked.said(further, number=1) is Status.REFUSED
        assert "this release began with another guarantee" in asked.reasons[-1]
        asked = asked.again()
    assert asked.site.accounts.spent()["label/replace"] == (1.0, 0.0)


@pytest.mark.parametrize("restarted", [True, False])
def test_an_answer_that_was_deleted_is_not_given_anew(tmp_path, restarted):
    """With other noise: whoever has both knows more than was paid for."""
    asked = pair(tmp_path, COUNTS)
    letter = asked.asker.letter(COUNTS)
    asked.site.reply(letter)
    for path in (tmp_path / "answers").iterdir():
        path.unlink()
    later = asked.again() if restarted else asked
    assert asked.asker.read(later.site.reply(letter), COUNTS)[0] is Status.REFUSED
    assert "was answered, and " in later.reasons[0]
    assert later.events == ["charged", "begun", "answered", "refused"]


@pytest.mark.parametrize("step", ["fsync", "open"])
def test_where_a_charge_cannot_be_written_nobody_answers_and_the_site_is_busy(tmp_path, monkeypatch, caplog, step):
    """A full disk, and a file that may only be read."""
    asked = pair(tmp_path, COUNTS)
    with monkeypatch.context() as broken:
        broken.setattr(f"parties.site.accounts.os.{step}", lambda *_: (_ for _ in ()).throw(OSError(28, "no space")))
        assert asked.said(COUNTS) is Status.BUSY
    assert "nothing is answered until it can be written (no space)" in caplog.text
    assert asked.again().events == []
    assert list((tmp_path / "answers").iterdir()) == []
    counts(asked.asker, asked.site.reply(asked.asker.letter(COUNTS)))
    assert asked.again().events.count("charged") == 1


def test_the_last_of_a_disk_is_not_for_answers(tmp_path, monkeypatch, caplog):
    asked = pair(tmp_path, COUNTS)
    with monkeypatch.context() as full:
        full.setattr("parties.site.messages.shutil.disk_usage", lambda _: SimpleNamespace(free=2**26))
        assert asked.said(COUNTS) is Status.BUSY
    assert "the disk has 67108864 bytes left, too few to answer" in caplog.text
    assert asked.events == ["waits for approval"]
    counts(asked.asker, asked.site.reply(asked.asker.letter(COUNTS)))


def test_until_somebody_has_approved_a_site_is_busy_and_pays_nothing(tmp_path):
    asked = pair(tmp_path, COUNTS)
    asked.site.approved = lambda head: False
    letter = asked.asker.letter(COUNTS)
    assert [asked.said(COUNTS) for _ in range(3)] == [Status.BUSY] * 3
    assert [line["times"] for line in asked.site.journal.lines] == [1, 2]
    assert {*asked.events} == {"waits for approval"}
    asked.site.approved = lambda head: head.plan == asked.site.agreement.digest
    counts(asked.asker, asked.site.reply(letter))


def test_after_the_closing_nothing_is_answered_and_what_was_is_sent_again(tmp_path):
    asked = pair(tmp_path, COUNTS, LATER)
    first = asked.site.reply(asked.asker.letter(COUNTS))
    asked.site.now = lambda: asked.site.agreement.closing + 1.0
    assert asked.site.reply(asked.asker.letter(COUNTS)) == first
    assert asked.said(LATER, number=1) is Status.EXPIRED


def test_while_the_rows_are_away_nothing_is_paid_and_the_site_is_busy(tmp_path, caplog):
    """A data base that is down for a night: an answer that was paid for would have nothing to be made of."""
    asked, mark = pair(tmp_path, VOTES), tmp_path / "mark"
    rows = Reference("support.exchanges:Away", {"mark": str(mark)}).to_json()
    asked.site.cohort = replace(asked.site.cohort, reference=rows)
    mark.touch()
    assert asked.said(VOTES) is Status.BUSY
    assert "connection refused" in caplog.text
    assert asked.events == []
    mark.unlink()
    assert asked.said(VOTES) is Status.ANSWER
    assert asked.events == ["charged", "begun", "answered"]


def test_an_answer_that_fails_is_one_for_blank_rows(tmp_path, caplog):
    """Its process is killed over a label: an answer that is missing would tell that there is one."""
    asked = pair(tmp_path, COUNTS, spoilt="yes")
    found = np.array([counts(asked.asker, asked.site.reply(asked.asker.letter(COUNTS)))])
    assert np.abs(found - [40, 0]).max() < 60
    assert "what leaves in its place is noise and rows of zeros" in caplog.text
    assert asked.events == ["charged", "begun", "answered"]


def test_a_question_longer_than_those_of_the_plan_is_refused_unread(tmp_path, monkeypatch):
    asked = pair(tmp_path, COUNTS)
    longer = question_packet(COUNTS).ljust(LONGEST + 1, b" ")
    with monkeypatch.context() as unread:
        unread.setattr("parties.site.messages.read", None)
        unread.setattr("parties.site.messages.kind_of", None)
        reply = asked.site.reply(asked.asker.letter(COUNTS, packet=longer))
    assert asked.asker.read(reply, COUNTS, question=hashlib.sha256(longer).digest())[0] is Status.REFUSED
    assert asked.reasons == [f"the question has {LONGEST + 1} bytes, and the longest of the plan {LONGEST}"]
    assert asked.events == ["refused"]


def test_refusals_for_one_reason_are_not_all_written_down(tmp_path):
    asked = pair(tmp_path, COUNTS)
    for _ in range(100):
        asked.site.reply({})
    times = [line["times"] for line in asked.site.journal.lines]
    assert times == [1, 2, 4, 8, 16, 32, 64]
    for number in range(2000):
        asked.site.refuse(f"reason {number}")
    assert len(asked.site.journal.lines) < 1020


def test_a_letter_that_is_sent_again_gets_the_same_bytes_for_nothing_and_fills_no_journal(tmp_path):
    """Whoever carries letters may send each any number of times; and who signs them, any number of others."""
    asked = pair(tmp_path, COUNTS)
    letter = asked.asker.letter(COUNTS)
    first = asked.site.reply(letter)
    assert asked.again().site.reply(letter) == first
    asked = asked.again()
    assert all(asked.site.reply(letter) == first for _ in range(31))
    assert asked.events[:4] == ["charged", "begun", "answered", "answered again"]
    assert {*asked.events[4:]} == {"answered again"}
    assert [line["times"] for line in asked.site.journal.lines[3:]] == [1, 1, 2, 4, 8, 16]
    asked.site.approved = lambda head: False
    before = len(asked.site.journal.lines)
    for number in range(8):
        asked.site.reply(replace(asked.asker, exchange=bytes([number] * 16)).letter(COUNTS))
    assert len(asked.site.journal.lines) == before + 4


def told(asked, reply, **changed):
    """The hash at the end of a reply."""
    head = asked.asker.head(question_packet(COUNTS), **changed)
    return SealedAnswer(**reply).opened(head, asked.asker.site, asked.asker.reply_to)[-JOURNAL:]


def test_an_answer_tells_how_far_the_journal_is_and_a_state_that_was_put_back_answers_no_more(tmp_path):
    asked = pair(tmp_path, COUNTS, LATER, epsilon=5.0)
    journal = tmp_path / "journal.jsonl"
    first = asked.site.reply(asked.asker.letter(COUNTS))
    older = journal.read_bytes()
    known = told(asked, asked.site.reply(replace(asked.asker, exchange=bytes(16)).letter(COUNTS)), exchange=bytes(16))
    assert asked.site.journal.holds(known.hex())
    journal.write_bytes(older)  # as from a copy of yesterday
    restored = asked.again()
    for _ in range(2):
        assert restored.said(LATER, number=1, known=known) is Status.REFUSED
    assert "an older copy of the state was put back" in restored.reasons[0]
    assert restored.site.accounts.spent()["label/replace"] == (1.0, 0.0)
    assert restored.site.reply(asked.asker.letter(COUNTS, known=known)) == first  # which has left before
