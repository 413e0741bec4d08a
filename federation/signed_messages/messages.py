"""Signed queries and sealed responses of real sites, and their encoding as bytes.

The aggregator signs a query for one site, one place in one exchange and one plan. A carrier can read the query but not
change it. The site seals a response to a key of that exchange and signs it. A carrier can neither read a response nor
forge one.

A packet is Flower's own encoding of the records of `federation.engines.codec`. So one reader checks what arrives,
whichever way it came.
"""

import hashlib
from dataclasses import astuple, dataclass, fields
from enum import IntEnum
from typing import Any, NoReturn, TypeVar

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from flwr.app import Array, RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.recorddict_pb2 import RecordDict as Encoded
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from federation.contract.errors import InputError, refusing
from federation.contract.query import Question, Submission
from federation.engines.codec import bytes_per_party, decode_question, encode_question, encode_submission

_QUESTION, _ANSWER = b"federation question v1", b"federation answer v1"
_NONCE = bytes(12)  # each answer has a key of its own, which is used once
_LENGTH = 4  # bytes before each field
NOTHING_KNOWN = bytes(32)  # in place of a line's hash, of a site that has told none


@dataclass(frozen=True)
class Head:
    """What a question is and for whom: all that its signature, and that of the answer, vouch for.

    `plan`, `question` and `key` are SHA-256 digests: of the plan that the site has approved, of the question's bytes
    and of the site's public key. `exchange` is 16 random bytes, `number` the place of the question in it, `site` and
    `position` are the site's name and number in the plan, `closing` is when the exchange ends, in seconds since 1970,
    and `reply_to` the X25519 key that answers are sealed to.
    """

    plan: bytes
    exchange: bytes
    number: int
    question: bytes
    site: str
    position: int
    key: bytes
    closing: int
    reply_to: bytes

    def encoded(self) -> bytes:
        """As bytes, each field behind its length, so that no two heads have the same."""
        return _joined(*(value if isinstance(value, bytes) else str(value).encode() for value in astuple(self)))

    @classmethod
    def decoded(cls, encoded: bytes) -> "Head":
        """Inverse of `encoded`. Raises `InputError` for bytes that no head has."""
        try:
            parts = dict(zip((field.name for field in fields(cls)), _parted(encoded, len(fields(cls))), strict=True))
            number, position, closing = (int(parts[name]) for name in ("number", "position", "closing"))
            head = cls(
                parts["plan"],
                parts["exchange"],
                number,
                parts["question"],
                parts["site"].decode(),
                position,
                parts["key"],
                closing,
                parts["reply_to"],
            )
        except ValueError as error:
            _refuse(error)
        sizes = [len(part) for part in (head.plan, head.exchange, head.question, head.key, head.reply_to)]
        if head.encoded() != encoded or sizes != [32, 16, 32, 32, 32] or min(number, position) < 0:
            _refuse()
        return head

    @property
    def digest(self) -> bytes:
        """SHA-256 of it."""
        return hashlib.sha256(self.encoded()).digest()


@dataclass(frozen=True)
class SignedQuestion:
    """A question's bytes, its head, and the aggregator's signature.

    `known` is the last hash of the site's journal that the aggregator was told (32 bytes): a site whose journal has no
    such line has been put back to an older state, and has forgotten what it spent since.
    """

    head: bytes
    signature: bytes
    question: bytes
    known: bytes

    @classmethod
    def signed(
        cls, head: Head, question: bytes, key: Ed25519PrivateKey, known: bytes = NOTHING_KNOWN
    ) -> "SignedQuestion":
        """Sign a question, whose digest the head has."""
        encoded = head.encoded()
        return cls(encoded, key.sign(_joined(_QUESTION, encoded, known)), question, known)

    def opened(self, aggregator: Ed25519PublicKey) -> Head:
        """The head, if this aggregator has signed it and it is this question's. Raises `InputError`."""
        try:
            aggregator.verify(self.signature, _joined(_QUESTION, self.head, self.known))
        except InvalidSignature:
            raise InputError("the question is not signed by this aggregator") from None
        head = Head.decoded(self.head)
        if hashlib.sha256(self.question).digest() != head.question:
            raise InputError("the question is not the one that was signed")
        _secret(X25519PrivateKey.generate(), head.reply_to)  # else no reply could be sealed, not even a refusal
        return head


@dataclass(frozen=True)
class SealedAnswer:
    """An answer that only the aggregator of its exchange can read, and that only its site can have sent."""

    ephemeral: bytes
    sealed: bytes
    signature: bytes

    def encoded(self) -> bytes:
        """As bytes, to be kept."""
        return _joined(self.ephemeral, self.sealed, self.signature)

    @classmethod
    def decoded(cls, encoded: bytes) -> "SealedAnswer":
        """Inverse of `encoded`."""
        return cls(*_parted(encoded, len(fields(cls))))

    @classmethod
    def sealed_for(cls, head: Head, answer: bytes, key: EllipticCurvePrivateKey) -> "SealedAnswer":
        """Seal an answer to the question of a head, and sign it with the site's key."""
        own = X25519PrivateKey.generate()
        ephemeral = own.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        secret = _secret(own, head.reply_to)
        sealed = _cipher(secret, head, ephemeral).encrypt(_NONCE, answer, head.encoded())
        return cls(ephemeral, sealed, key.sign(_signed(head, ephemeral, sealed), ECDSA(hashes.SHA384())))

    def opened(self, head: Head, site: EllipticCurvePublicKey, reply_to: X25519PrivateKey) -> bytes:
        """The answer, if this site gave it to the question of this head. Raises `InputError`."""
        try:
            site.verify(self.signature, _signed(head, self.ephemeral, self.sealed), ECDSA(hashes.SHA384()))
            return _cipher(_secret(reply_to, self.ephemeral), head, self.ephemeral).decrypt(
                _NONCE, self.sealed, head.encoded()
            )
        except (InvalidSignature, InvalidTag, ValueError):
            raise InputError("the answer is not one that this site gave to this question") from None


def _secret(own: X25519PrivateKey, other: bytes) -> bytes:
    """What two sides know by exchanging keys. Raises `InputError` for a public key with which nothing is secret."""
    try:
        return own.exchange(X25519PublicKey.from_public_bytes(other))
    except ValueError as error:
        raise InputError("a letter has a key with which nothing can be sealed") from error


def _signed(head: Head, ephemeral: bytes, sealed: bytes) -> bytes:
    return _joined(_ANSWER, head.encoded(), ephemeral, sealed)


def _cipher(secret: bytes, head: Head, ephemeral: bytes) -> ChaCha20Poly1305:
    info = _joined(_ANSWER, head.digest, ephemeral, head.reply_to)
    return ChaCha20Poly1305(HKDF(hashes.SHA256(), 32, salt=None, info=info).derive(secret))


def _joined(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(_LENGTH, "big") + part for part in parts)


def _parted(joined: bytes, count: int) -> list[bytes]:
    parts = []
    for _ in range(count):
        size = int.from_bytes(joined[:_LENGTH], "big")
        parts.append(joined[_LENGTH : _LENGTH + size])
        joined = joined[_LENGTH + size :]
    return parts


def _refuse(cause: Exception | None = None) -> NoReturn:
    raise InputError("a letter's head cannot be read") from cause


Q = TypeVar("Q", bound=Question)

LETTER = "letter"  # the record of a message that holds a letter, whose parts are bytes

_LONGEST_KIND = 100
_OVERHEAD = 8192  # bytes of an answer beside its arrays: names, types, a guarantee
_PREFIX_BYTES = 8  # bytes that say how long an answer is

JOURNAL = 32  # bytes at the end of a reply: the hash of the last line of the site's journal when it was made

SHORTEST_REPLY = 1 + _PREFIX_BYTES + _OVERHEAD  # bytes


class Status(IntEnum):
    """What a site says to a question; nothing but an answer depends on a row."""

    ANSWER = 0
    REFUSED = 1
    BUSY = 2  # somebody at the site has yet to decide
    EXPIRED = 3


def question_packet(question: Question) -> bytes:
    """A question with its kind.

    Examples:
        >>> from federation.contract.query import ReleaseId
        >>> from federation.queries.bags import Bags, CountsNoise, CountsQuestion
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
    return (bytes([Status.ANSWER]) + len(answer).to_bytes(_PREFIX_BYTES, "big") + answer).ljust(length, b"\0")


def read_reply(packet: bytes) -> tuple[Status, RecordDict]:
    """What a site says, and the records of its answer, if that is what it says: for `decode_submission` to read.

    Raises `InputError` for what is no reply.
    """
    with refusing("a reply cannot be read"):
        status, size = Status(packet[0]), int.from_bytes(packet[1 : 1 + _PREFIX_BYTES], "big")
        return status, _records(packet[1 + _PREFIX_BYTES : 1 + _PREFIX_BYTES + size])


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
