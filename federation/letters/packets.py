"""Questions and answers as bytes: what letters carry.

A packet is Flower's own encoding of the records of `federation.grids.codec`, so that one reader checks what arrives,
whichever way it came.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeVar

from flwr.app import Array, RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.recorddict_pb2 import RecordDict as Encoded
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from federation.contract.errors import InputError, refusing
from federation.contract.question import Question
from federation.contract.submission import Submission
from federation.grids.codec import (
    bytes_per_party,
    decode_question,
    encode_question,
    encode_submission,
)

Q = TypeVar("Q", bound=Question)

LETTER = "letter"  # the record of a message that holds a letter, whose parts are bytes

_LONGEST_KIND = 100
_OVERHEAD = 8192  # bytes of an answer beside its arrays: names, types, a guarantee
_LENGTH = 8  # bytes that say how long an answer is

JOURNAL = 32  # bytes at the end of a reply: the hash of the last line of the site's journal when it was made

SHORTEST_REPLY = 1 + _LENGTH + _OVERHEAD  # bytes


class Status(IntEnum):
    """What a site says to a question; nothing but an answer depends on a row."""

    ANSWER = 0
    REFUSED = 1
    BUSY = 2  # somebody at the site has yet to decide
    EXPIRED = 3


def question_packet(question: Question) -> bytes:
    """A question with its kind.

    Examples:
        >>> from federation.contract.question import ReleaseId
        >>> from federation.questions.bags import Bags, CountsNoise, CountsQuestion
        >>> question = CountsQuestion(CountsNoise("pure", 1.0), Bags(2, 3), release=ReleaseId("a release"))
        >>> packet = question_packet(question)
        >>> kind_of(packet), read_question(packet, CountsQuestion) == question
        ('counts', True)
    """
    return packet_of(question.kind, encode_question(question))


def packet_of(kind: str, records: RecordDict) -> bytes:
    """A question as it is encoded, with its kind."""
    return kind.encode() + b"\n" + records_packet(records)


def kind_of(packet: bytes) -> str:
    """The kind of a question, of which nothing else is read. Raises `InputError`."""
    kind, found, _ = packet[: _LONGEST_KIND + 1].partition(b"\n")
    if not found or not kind.isascii():
        raise InputError("a question does not say what it asks for")
    return kind.decode()


def read_question(packet: bytes, question_type: type[Q]) -> Q:
    """Inverse of `question_packet`. Raises `InputError` as `decode_question`."""
    return decode_question(read_records(packet), question_type)


def read_records(packet: bytes) -> RecordDict:
    """The records of a question, of which nothing has been believed. Raises `InputError`."""
    return _records(packet.partition(b"\n")[2])


def reply_length(question: Question) -> int:
    """Bytes of every reply to a question, whatever it says: whoever carries it learns nothing from that."""
    return SHORTEST_REPLY + bytes_per_party(question.fields())


def status_packet(status: Status, length: int) -> bytes:
    """A reply that is no answer.

    Examples:
        >>> list(status_packet(Status.BUSY, 5))
        [2, 0, 0, 0, 0]
    """
    return bytes([status]).ljust(length, b"\0")


def answer_packet(question: Question, submission: Submission) -> bytes:
    """A reply with an answer. Raises `InputError` for one that is longer than answers to the question are."""
    packet = padded_answer(records_packet(encode_submission(submission, question.fields())), reply_length(question))
    if len(packet) > reply_length(question):
        raise InputError(f"an answer to '{question.kind}' is {len(packet) - reply_length(question)} bytes too long")
    return packet


def padded_answer(answer: bytes, length: int) -> bytes:
    """Records as a reply of this length, or longer where they are."""
    return (bytes([Status.ANSWER]) + len(answer).to_bytes(_LENGTH, "big") + answer).ljust(length, b"\0")


def read_reply(packet: bytes) -> tuple[Status, RecordDict]:
    """What a site says, and the records of its answer, if that is what it says: for `decode_submission` to read.

    Raises `InputError` for what is no reply.
    """
    with refusing("a reply cannot be read"):
        status, size = Status(packet[0]), int.from_bytes(packet[1 : 1 + _LENGTH], "big")
        return status, _records(packet[1 + _LENGTH : 1 + _LENGTH + size])


def plain(packet: bytes) -> dict[str, Any]:
    """All that an answer says, as JSON values by name: for people who would see what has left. Raises `InputError`.

    Examples:
        >>> import numpy as np
        >>> from flwr.app import Array, ArrayRecord
        >>> records = RecordDict({"arrays": ArrayRecord({"counts": Array(np.array([[3.5, 2.0]]))})})
        >>> plain(padded_answer(records_packet(records), 1000))
        {'counts': [[3.5, 2.0]]}
    """
    found: dict[str, Any] = {}
    for record in read_reply(packet)[1].values():
        for name, value in record.items():
            found[name] = value.numpy().tolist() if isinstance(value, Array) else value
    return found


def records_packet(records: RecordDict) -> bytes:
    """Records as bytes, the same for the same records."""
    encoded: bytes = recorddict_to_proto(records).SerializeToString(deterministic=True)
    return encoded


def _records(encoded: bytes) -> RecordDict:
    with refusing("a packet cannot be read"):
        try:
            return recorddict_from_proto(Encoded.FromString(encoded))
        except DecodeError as error:
            raise ValueError(str(error)) from error
