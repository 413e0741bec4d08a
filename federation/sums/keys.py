"""Keys of one masked sum: what is derived from what, masks, ciphertexts and signatures. All of it bound to the plan.

Every derivation names the plan's digest, what the key is for, and the numbers of the parties: X25519 has several
encodings of one point, so that a party that copies another's public key would otherwise share its keys.
"""

from __future__ import annotations

import hashlib
import struct
from functools import lru_cache

import numpy as np
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from numpy.typing import NDArray

Words = NDArray[np.uint64]

SIGNATURE = 64  # bytes
TAG = 16
CHECK = 16
_SHA256 = hashes.SHA256()
_ENDS = struct.Struct("<II")
_NONCE = bytes(12)  # of a key that is used once


def derived(secret: bytes, digest: bytes, use: str, about: bytes = b"", size: int = 32) -> bytes:
    """HKDF-SHA256 of a secret, for one use in the sum of this digest; `about` says whose keys it is from."""
    return HKDF(_SHA256, size, None, b"%b%b|%b" % (digest, use.encode(), about)).derive(secret)


def stream(key: bytes, words: int) -> Words:
    """So many uniform integers modulo 2^64, from ChaCha20 under a key that is used for nothing else.

    Examples:
        >>> stream(bytes(32), 2)
        array([10393729187455219830,  2935650227004792128], dtype=uint64)
    """
    encryptor = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(encryptor.update(bytes(8 * words)), dtype="<u8")


def public(secret: X25519PrivateKey) -> bytes:
    """The 32 bytes of its public key."""
    return secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def shared(secret: X25519PrivateKey, other: bytes) -> bytes | None:
    """What both sides of an exchange know; None where the other key is one of the few that give nothing secret."""
    try:
        return secret.exchange(X25519PublicKey.from_public_bytes(other))
    except ValueError:
        return None


def ends(one: int, other: int) -> bytes:
    """Two parties' numbers, 8 bytes."""
    return _ENDS.pack(one, other)


def mask_key(common: bytes, digest: bytes, one: int, other: int) -> bytes:
    """Of the mask that the smaller number adds and the larger subtracts."""
    return derived(common, digest, "mask", ends(min(one, other), max(one, other)))


def letter_keys(common: bytes, digest: bytes, one: int, other: int) -> tuple[bytes, bytes]:
    """Of the one letter from the first to the second, and of the one back."""
    both = derived(common, digest, "share", ends(min(one, other), max(one, other)), size=64)
    return (both[:32], both[32:]) if one < other else (both[32:], both[:32])


def sealed(key: bytes, sender: int, receiver: int, letter: bytes) -> bytes:
    """A letter under its one of `letter_keys`, by AES-GCM: 16 bytes longer."""
    return AESGCM(key).encrypt(_NONCE, letter, ends(sender, receiver))


def opened(key: bytes, sender: int, receiver: int, letter: bytes) -> bytes | None:
    """What `sealed` sealed; None for anything else."""
    try:
        return AESGCM(key).decrypt(_NONCE, letter, ends(sender, receiver))
    except InvalidTag:
        return None


def check_of(secret: bytes) -> bytes:
    """By which a recovered secret is known to be the right one, 16 bytes."""
    return hashlib.sha256(b"check" + secret).digest()[:CHECK]


def signature(key: Ed25519PrivateKey, digest: bytes, use: str, party: int, content: bytes) -> bytes:
    """A party's signature on what it says in one step of one sum, 64 bytes."""
    return key.sign(_statement(digest, use, party, content))


def signed(key: bytes, signature: bytes, digest: bytes, use: str, party: int, content: bytes) -> bool:
    """Whether that party said so, by its key on the roster."""
    try:
        _verifier(key).verify(signature, _statement(digest, use, party, content))
    except (InvalidSignature, ValueError):
        return False
    return True


def live_digest(live: bytes) -> bytes:
    """Of the bits that say who is counted: what parties sign."""
    return hashlib.sha256(live).digest()


@lru_cache(maxsize=4096)
def _verifier(key: bytes) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(key)


def _statement(digest: bytes, use: str, party: int, content: bytes) -> bytes:
    return b"%b%b|%b%b" % (digest, use.encode(), party.to_bytes(4, "little"), content)
