"""Signed questions and sealed answers: what one bit more or less does to them."""

import hashlib
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.signed_messages.keys import new_site_key
from federation.signed_messages.messages import Head, SealedAnswer, SignedQuestion

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
    {"plan": bytes([1]) + bytes(31)},
    {"exchange": bytes([1]) + bytes(15)},
    {"number": 4},
    {"question": bytes(32)},
    {"site": "south"},
    {"position": 2},
    {"key": bytes(32)},
    {"closing": 1_800_000_001},
    {"reply_to": bytes([9]) + bytes(31)},
]


def flipped(some, place):
    return some[:place] + bytes([some[place] ^ 1]) + some[place + 1 :]


def test_a_question_is_read_as_it_was_signed():
    assert SIGNED.opened(AGGREGATOR.public_key()) == HEAD


def test_nobody_else_can_have_signed_it():
    with pytest.raises(InputError, match="not signed by this aggregator"):
        SIGNED.opened(Ed25519PrivateKey.generate().public_key())


@given(st.data())
def test_no_bit_of_a_question_can_be_changed(data):
    part = data.draw(st.sampled_from(["head", "signature", "question"]))
    place = data.draw(st.integers(0, len(getattr(SIGNED, part)) - 1))
    with pytest.raises(InputError):
        replace(SIGNED, **{part: flipped(getattr(SIGNED, part), place)}).opened(AGGREGATOR.public_key())


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
    with pytest.raises(InputError, match="a letter's head cannot be read"):
        Head.decoded(some)


def test_each_field_of_a_head_is_behind_its_length_in_four_bytes():
    assert HEAD.encoded().startswith(b"\0\0\0\x20" + HEAD.plan + b"\0\0\0\x10" + HEAD.exchange + b"\0\0\0")


def test_a_head_with_anything_behind_it_is_refused():
    with pytest.raises(InputError):
        Head.decoded(HEAD.encoded() + b"\0\0\0\0")


@pytest.mark.parametrize("key", [bytes(32), b"\1" + bytes(31)])
def test_a_question_whose_answers_nothing_would_hide_is_refused(key):
    head = replace(HEAD, reply_to=key)
    with pytest.raises(InputError, match="a key with which nothing can be sealed"):
        SignedQuestion.signed(head, QUESTION, AGGREGATOR).opened(AGGREGATOR.public_key())
    with pytest.raises(InputError, match="not one that this site gave"):
        replace(ANSWER, ephemeral=key).opened(HEAD, SITE.public_key(), REPLY_TO)


def test_an_answer_is_opened_by_whom_it_is_for():
    assert ANSWER.opened(HEAD, SITE.public_key(), REPLY_TO) == b"seven"
    assert b"seven" not in ANSWER.sealed
    assert SealedAnswer.sealed_for(HEAD, b"seven", SITE).sealed != ANSWER.sealed


@pytest.mark.parametrize("change", OTHERS, ids=lambda change: next(iter(change)))
def test_an_answer_belongs_to_one_question(change):
    with pytest.raises(InputError, match="not one that this site gave to this question"):
        ANSWER.opened(replace(HEAD, **change), SITE.public_key(), REPLY_TO)


def test_another_site_cannot_have_given_it():
    with pytest.raises(InputError):
        ANSWER.opened(HEAD, OTHER.public_key(), REPLY_TO)


def test_another_key_does_not_open_it():
    with pytest.raises(InputError):
        ANSWER.opened(HEAD, SITE.public_key(), X25519PrivateKey.generate())


@given(st.data())
def test_no_bit_of_an_answer_can_be_changed(data):
    part = data.draw(st.sampled_from(["ephemeral", "sealed", "signature"]))
    place = data.draw(st.integers(0, len(getattr(ANSWER, part)) - 1))
    with pytest.raises(InputError):
        replace(ANSWER, **{part: flipped(getattr(ANSWER, part), place)}).opened(HEAD, SITE.public_key(), REPLY_TO)


def test_an_answer_whose_signature_is_renewed_by_another_is_still_not_this_sites():
    """Whoever carries letters could sign what a site has sealed as its own."""
    stolen = SealedAnswer.sealed_for(HEAD, b"seven", OTHER)
    mixed = SealedAnswer(ANSWER.ephemeral, ANSWER.sealed, stolen.signature)
    for key in (SITE, OTHER):
        with pytest.raises(InputError):
            mixed.opened(HEAD, key.public_key(), REPLY_TO)
