"""Questions and replies as bytes."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.questions import QUESTIONS

from federation.contract.errors import InputError
from federation.contract.query import ReleaseId, Submission
from federation.engines.codec import decode_submission, question_digest
from federation.queries.bags import Bags, CountsNoise, CountsQuestion
from federation.signed_messages.messages import (
    SHORTEST_REPLY,
    Status,
    answer_packet,
    kind_of,
    question_packet,
    read_question,
    read_reply,
    reply_length,
    status_packet,
)

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
    assert question_digest(read_question(packet, type(QUESTIONS[kind]))) == question_digest(QUESTIONS[kind])
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


def test_what_a_site_says_has_numbers_of_its_own():
    assert [*Status] == [0, 1, 2, 3]


@pytest.mark.parametrize("status", [Status.REFUSED, Status.BUSY, Status.EXPIRED])
def test_a_status_is_all_that_is_said(status):
    found, records = read_reply(status_packet(status, SHORTEST_REPLY))
    assert found is status
    assert not records


def test_an_answer_longer_than_answers_are_is_not_sent():
    with pytest.raises(InputError, match=r"an answer to 'counts' is \d+ bytes too long"):
        answer_packet(COUNTS, submission({3: "x" * 20_000}))


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
