"""Signed questions and sealed answers: what one bit more or less does to them.

Questions and replies as bytes.
"""

import hashlib
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from support.questions import QUESTIONS
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.query import ReleaseId, Submission
from federation.engines.codec import decode_submission, question_digest
from federation.queries.bags import Bags, CountsNoise, CountsQuestion
from federation.signed_messages.keys import new_site_key
from federation.signed_messages.messages import (
    SHORTEST_REPLY,
    Head,
    SealedAnswer,
    SignedQuestion,
    Status,
    answer_packet,
    kind_of,
    question_packet,
    read_question,
    read_reply,
    reply_length,
    status_packet,
)
from parties.guard.answering import question_type

AGGREGATOR, SITE, OTHER, REPLY_TO = (
    Ed25519PrivateKey.generate(),
    new_site_key(),
    new_site_key(),
    X25519PrivateKey.generate(),
)
QUESTION = b"how many?"
HEAD = Head(
    bytes(32),
    bytes(16),
    3,
    hashlib.sha256(QUESTION).digest(),
    "north",
    1,
    bytes(range(32)),
    1_800_000_000,
    REPLY_TO.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw),
)
SIGNED = SignedQuestion.signed(HEAD, QUESTION, AGGREGATOR)
ANSWER = SealedAnswer.sealed_for(HEAD, b"seven", SITE)
OTHERS = [
    *({name: bytes([1]) + bytes(size - 1)} for name, size in (("plan", 32), ("exchange", 16), ("reply_to", 32))),
    *({name: bytes(32)} for name in ("question", "key")),
    {"number": 4},
    {"site": "south"},
    {"position": 2},
    {"closing": 1_800_000_001},
]


def flipped(some, place):
    return some[:place] + bytes([some[place] ^ 1]) + some[place + 1 :]


def test_a_question_is_read_as_it_was_signed_and_nobody_else_can_have_signed_it():
    assert SIGNED.opened(AGGREGATOR.public_key()) == HEAD
    with pytest.raises(InputError, match="not signed by this aggregator"):
        SIGNED.opened(Ed25519PrivateKey.generate().public_key())


@given(st.data())
def test_no_bit_of_a_question_or_an_answer_can_be_changed(data):
    for whole, parts, opened in (
        (SIGNED, ["head", "signature", "question"], lambda one: one.opened(AGGREGATOR.public_key())),
        (ANSWER, ["ephemeral", "sealed", "signature"], lambda one: one.opened(HEAD, SITE.public_key(), REPLY_TO)),
    ):
        part = data.draw(st.sampled_from(parts))
        place = data.draw(st.integers(0, len(getattr(whole, part)) - 1))
        changed = replace(whole, **{part: flipped(getattr(whole, part), place)})
        refused(None, opened, changed)


@given(
    st.builds(
        Head,
        *(st.binary(min_size=size, max_size=size) for size in (32, 16)),
        st.integers(0, 10**9),
        st.binary(min_size=32, max_size=32),
        st.text(max_size=20),
        st.integers(0, 10**6),
        st.binary(min_size=32, max_size=32),
        st.integers(0, 2**40),
        st.binary(min_size=32, max_size=32),
    )
)
def test_a_head_is_read_as_it_was_written(head):
    assert Head.decoded(head.encoded()) == head


@given(st.binary(max_size=300))
def test_what_is_no_head_is_refused(some):
    assert HEAD.encoded().startswith(b"\0\0\0\x20" + HEAD.plan + b"\0\0\0\x10" + HEAD.exchange + b"\0\0\0")
    for wrong in (some, HEAD.encoded() + b"\0\0\0\0"):
        refused("a letter's head cannot be read", Head.decoded, wrong)


@pytest.mark.parametrize("key", [bytes(32), b"\1" + bytes(31)])
def test_a_question_whose_answers_nothing_would_hide_is_refused(key):
    head = replace(HEAD, reply_to=key)
    with pytest.raises(InputError, match="a key with which nothing can be sealed"):
        SignedQuestion.signed(head, QUESTION, AGGREGATOR).opened(AGGREGATOR.public_key())
    refused("not one that this site gave", replace(ANSWER, ephemeral=key).opened, HEAD, SITE.public_key(), REPLY_TO)


def test_an_answer_is_opened_by_whom_it_is_for_and_nobody_else():
    assert ANSWER.opened(HEAD, SITE.public_key(), REPLY_TO) == b"seven"
    assert b"seven" not in ANSWER.sealed
    assert SealedAnswer.sealed_for(HEAD, b"seven", SITE).sealed != ANSWER.sealed
    for site, key in ((OTHER, REPLY_TO), (SITE, X25519PrivateKey.generate())):
        refused(None, ANSWER.opened, HEAD, site.public_key(), key)


@pytest.mark.parametrize("change", OTHERS, ids=lambda change: next(iter(change)))
def test_an_answer_belongs_to_one_question(change):
    with pytest.raises(InputError, match="not one that this site gave to this question"):
        ANSWER.opened(replace(HEAD, **change), SITE.public_key(), REPLY_TO)


def test_an_answer_whose_signature_is_renewed_by_another_is_still_not_this_sites():
    """Whoever carries letters could sign what a site has sealed as its own."""
    stolen = SealedAnswer.sealed_for(HEAD, b"seven", OTHER)
    mixed = SealedAnswer(ANSWER.ephemeral, ANSWER.sealed, stolen.signature)
    for key in (SITE, OTHER):
        refused(None, mixed.opened, HEAD, key.public_key(), REPLY_TO)


COUNTS = CountsQuestion(CountsNoise("pure", 1.0), Bags(1, 2), release=ReleaseId("a release"))


def submission(failures=None):
    arrays = {"sizes": np.full((1, 1), 40), "counts": np.full((1, 1, 1, 2), 20)}
    if failures:
        arrays = {name: array[:0] for name, array in arrays.items()}
    parties = np.array([] if failures else [3], np.int64)
    return Submission("counts", parties, arrays, None if failures else COUNTS.promise(), failures or {})


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_question_is_read_as_it_was_written(kind):
    packet = question_packet(QUESTIONS[kind])
    assert kind_of(packet) == kind
    read = read_question(packet, question_type(kind))
    assert type(read) is type(QUESTIONS[kind])
    assert question_digest(read) == question_digest(QUESTIONS[kind])
    assert (read.fields(), read.varies) == (QUESTIONS[kind].fields(), QUESTIONS[kind].varies)
    assert question_packet(QUESTIONS[kind]) == packet


def test_an_answer_is_read_as_it_was_written():
    status, records = read_reply(answer_packet(COUNTS, submission()))
    found = decode_submission(records, COUNTS.fields())
    assert status is Status.ANSWER
    assert found.parties.tolist() == [3]
    assert found.arrays["counts"].ravel().tolist() == [20, 20]
    assert found.guarantee == COUNTS.promise()


def test_all_replies_to_a_question_are_of_one_length():
    replies = [answer_packet(COUNTS, submission()), answer_packet(COUNTS, submission({3: "no answer"}))]
    replies += [status_packet(status, reply_length(COUNTS)) for status in (Status.REFUSED, Status.BUSY)]
    assert {len(reply) for reply in replies} == {reply_length(COUNTS)}
    assert reply_length(COUNTS) > SHORTEST_REPLY
    assert [*Status] == [0, 1, 2, 3]
    with pytest.raises(InputError, match=r"an answer to 'counts' is \d+ bytes too long"):
        answer_packet(COUNTS, submission({3: "x" * 20_000}))


@pytest.mark.parametrize("status", [Status.REFUSED, Status.BUSY, Status.EXPIRED])
def test_a_status_is_all_that_is_said(status):
    found, records = read_reply(status_packet(status, SHORTEST_REPLY))
    assert found is status
    assert not records


@given(st.binary(max_size=200))
def test_what_is_no_packet_is_refused_and_nothing_else(junk):
    for read in (kind_of, lambda packet: read_question(packet, CountsQuestion), read_reply):
        with suppress(InputError):
            read(junk)


@pytest.mark.parametrize("cut", [0, 1, 5, 8, 9, 100])
def test_a_reply_that_is_cut_short_is_refused_or_says_less(cut):
    packet = answer_packet(COUNTS, submission())[:cut]
    try:
        _, records = read_reply(packet)
    except InputError:
        return
    with pytest.raises(InputError):
        decode_submission(records, COUNTS.fields())
