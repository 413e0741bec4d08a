"""Signed questions and sealed answers.

A question is signed by the aggregator for one site, one place in one exchange and one plan; whoever carries it can read
it and can change nothing. An answer is sealed to a key of that exchange and signed by the site: whoever carries it can
neither read it nor make one.
"""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass, fields
from typing import NoReturn

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from federation.contract.errors import InputError

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
    def decoded(cls, encoded: bytes) -> Head:
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
    ) -> SignedQuestion:
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
    def decoded(cls, encoded: bytes) -> SealedAnswer:
        """Inverse of `encoded`."""
        return cls(*_parted(encoded, len(fields(cls))))

    @classmethod
    def sealed_for(cls, head: Head, answer: bytes, key: EllipticCurvePrivateKey) -> SealedAnswer:
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
