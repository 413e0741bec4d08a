"""Masks of one secure aggregation: Shamir shares, key derivation, signatures, and the integers that masks hide.

Shamir shares (Shamir 1979): `split` divides a secret of 32 bytes into shares. Any t of them recover it, and t - 1 of
them reveal nothing. A secret is nine chunks of 30 bits. Each chunk is the constant term of a polynomial of degree t - 1
modulo p = 2^31 - 1 with uniform coefficients. The share at place x = 1, 2, ... is the polynomials' values there, nine
integers of four bytes.

Key derivation fixes which mask, ciphertext and signature is derived from which secret, and binds all of them to the
plan. Every derivation names the plan's digest, what the key is for, and the numbers of the parties. X25519 has several
encodings of one point, so that a party that copies another's public key would otherwise share its keys.

Integers: noisy values are encoded as integers modulo 2^64, whose sum does not wrap around. Honest parties add whole
numbers of grid steps: their rounded values, of at most `largest` steps each, and a share of the noise. With
|total| <= 2^62 the integers modulo 2^64, read as from -2^63 to 2^63 - 1, are the total itself. So K `largest` plus a
bound on the noise of K shares (`noise_bound`) must be at most 2^62 (`require_room`). A hostile party may send anything,
and so wrap the total; it might as well lie.
"""

import hashlib
import math
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

from federation.contract.errors import InputError
from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.numerics.rows import Floats, Integers

PRIME = 2**31 - 1
CHUNKS = 9
SHARE = 4 * CHUNKS  # bytes
_CHUNK_BITS = 30
_DIGIT_BITS = 11  # three of which hold a number below p
_BLOCK = 2**11  # coefficients: 2^11 of them times 2^11 times 2^31 is 2^53, exact in double precision
_AT_ONCE = 2**18  # numbers of a batch of weights

Bytes = NDArray[np.uint8]


def split(secrets: list[bytes], threshold: int, shares: int, key: bytes) -> Bytes:
    """Shares of several secrets at places 1 to `shares`, shape (secrets, shares, 36), uint8.

    `key`: of the stream that the coefficients come from, used for nothing else.

    Examples:
        >>> parts = split([b"a secret of thirty-two bytes ...."[:32]], threshold=3, shares=5, key=bytes(32))
        >>> recovered(parts[:, [0, 2, 4]], np.array([[1, 3, 5]])) == [b"a secret of thirty-two bytes ...."[:32]]
        True
    """
    columns = CHUNKS * len(secrets)
    coefficients = np.empty((threshold, columns), dtype=np.int64)
    coefficients[0] = np.concatenate([_chunks(secret) for secret in secrets])
    coefficients[1:] = _uniform(key, (threshold - 1) * columns).reshape(-1, columns)
    values = np.zeros((shares, columns), dtype=np.int64)
    for start, digits in zip(range(0, threshold, _BLOCK), _powers(shares, threshold), strict=True):
        block = coefficients[start : start + _BLOCK].astype(np.float64)
        part = np.zeros_like(values)
        for digit in digits:
            part = ((part << _DIGIT_BITS) + (digit @ block).astype(np.int64)) % PRIME
        values = (values + part) % PRIME
    packed = values.astype("<u4").reshape(shares, len(secrets), CHUNKS).transpose(1, 0, 2)
    return np.ascontiguousarray(packed).view(np.uint8).reshape(len(secrets), shares, SHARE)


def recovered(shares: Bytes, places: Integers) -> list[bytes | None]:
    """The secrets of shares (secrets, t, 36) at different places (secrets, t); None where they are shares of none."""
    found: list[bytes | None] = []
    rows = max(1, _AT_ONCE // max(1, places.shape[1]))
    for start in range(0, len(places), rows):
        values = np.ascontiguousarray(shares[start : start + rows]).view("<u4").astype(np.int64)
        weights = _weights_at_zero(places[start : start + rows])
        chunks = (weights[:, :, None] * (values % PRIME) % PRIME).sum(axis=1) % PRIME
        found += [_joined(row) for row in chunks.tolist()]
    return found


def _chunks(secret: bytes) -> Integers:
    whole = int.from_bytes(secret, "little")
    return np.array([whole >> (_CHUNK_BITS * chunk) & (2**_CHUNK_BITS - 1) for chunk in range(CHUNKS)])


def _joined(chunks: list[int]) -> bytes | None:
    whole = sum(chunk << (_CHUNK_BITS * place) for place, chunk in enumerate(chunks))
    return whole.to_bytes(32, "little") if max(chunks) < 2**_CHUNK_BITS and whole < 2**256 else None


def _uniform(key: bytes, count: int) -> Integers:
    """Integers below p; one in 2^31 words is refused."""
    words = count + 64
    while True:
        drawn = stream(key, -(-words // 2)).view("<u4") >> 1
        kept = drawn[drawn < PRIME]
        if len(kept) >= count:
            return kept[:count].astype(np.int64)
        words *= 2


@lru_cache(maxsize=4)
def _powers(shares: int, threshold: int) -> list[list[Floats]]:
    """x^j modulo p for all places x and j < t, in blocks of columns, each as its digits from the highest."""
    places = np.arange(1, shares + 1)
    powers = np.ones((shares, threshold), dtype=np.int64)
    for power in range(1, threshold):
        powers[:, power] = powers[:, power - 1] * places % PRIME
    mask = 2**_DIGIT_BITS - 1
    return [
        [(block >> (_DIGIT_BITS * digit) & mask).astype(np.float64) for digit in (2, 1, 0)]
        for block in (powers[:, start : start + _BLOCK] for start in range(0, threshold, _BLOCK))
    ]


def _weights_at_zero(places: Integers) -> Integers:
    """Lagrange's weights modulo p for the value at 0, of each row: the product over j != i of x_j / (x_j - x_i)."""
    product, below = np.ones(len(places), dtype=np.int64), places.copy()
    for column in range(places.shape[1]):
        place = places[:, column]
        product = product * place % PRIME
        apart = place[:, None] - places
        apart[:, column] = 1
        below = below * apart % PRIME
    return product[:, None] * _inverse(below) % PRIME


def _inverse(values: Integers) -> Integers:
    """Modulo p: v^(p - 2)."""
    found, power, exponent = np.ones_like(values), values, PRIME - 2
    while exponent:
        if exponent & 1:
            found = found * power % PRIME
        power, exponent = power * power % PRIME, exponent >> 1
    return found


MOST_STEPS = 2**62  # of a total, noise included
_ROUNDED_UP = 1 + 2**-18  # of the scale of a Gaussian share
_RARE = 100 * math.log(2)


def encoded(steps: Floats | Integers) -> "Words":
    """Whole numbers of steps modulo 2^64. Raises `InputError` for what is not whole, or beyond 2^62.

    Examples:
        >>> encoded(np.array([3.0, -1.0]))
        array([                   3, 18446744073709551615], dtype=uint64)
        >>> decoded(encoded(np.array([2**61 + 1, -5])) + encoded(np.array([1, 1])))
        array([2305843009213693954,                  -4])
    """
    whole = np.asarray(steps)
    inside = whole.min(initial=0) >= -MOST_STEPS and whole.max(initial=0) <= MOST_STEPS  # not of NaN
    if not inside or (whole.dtype.kind == "f" and np.any(whole != np.rint(whole))):
        raise InputError("a masked sum adds whole numbers of at most 2^62 grid steps; round the values, or cut them")
    return whole.astype(np.int64, copy=False).view(np.uint64)


def decoded(total: "Words") -> Integers:
    """The integers from -2^63 to 2^63 - 1 that these are modulo 2^64."""
    return np.ascontiguousarray(total).view(np.int64)


def noise_bound(whole: AdditiveMechanism, contributors: int, parties: int, numbers: int) -> float:
    """Return what the noise of all parties together, in steps, exceeds in any number with a probability below 2^-100.

    K `parties` send shares, of which m = `contributors` are the whole noise. The bound holds for all d = `numbers`
    together but with that probability (Chernoff), L = ln(4 d 2^100):

    - Discrete Gaussian of scale s: each share is sub-Gaussian of variance s²/m (Canonne, Kamath, Steinke 2020). The
      bound is s sqrt(2 L K/m), and a little more as the shares' scale is rounded up.
    - Discrete Laplace of scale s in Pólya shares: at theta = 1/(2s) either part of a share has E e^{theta
      X} <= 2^{1/m}. The bound is 2s (L + (K/m) ln 2).
    - L2-Gamma of scale s in D dimensions: a share is Gaussian of a variance that is Gamma((D+1)/2m, 2s²), plus 16
      steps², rounded. At theta = 1/(2s) the first has E e^{theta X} = (4/3)^{(D+1)/2m}. The bound is 2s (L + (D+1)/2
      (K/m) ln(4/3)) + sqrt(32 K L) + K/2.

    Examples:
        >>> from federation.mechanisms.noise.additive import calibrate
        >>> noise = calibrate("gaussian", sensitivity=1.0, dimension=5, epsilon=1.0, delta=1e-6)
        >>> noise_bound(noise, 80, parties=100, numbers=5) / noise.grid_scale
        13.45
    """
    log, wholes, scale = math.log(4 * numbers) + _RARE, parties / contributors, whole.scale / whole.step
    if whole.name == "discrete_gaussian":
        return scale * _ROUNDED_UP * math.sqrt(2 * log * wholes)
    if whole.name == "discrete_laplace":
        return 2 * scale * (log + wholes * math.log(2))
    mixed = 2 * scale * (log + (whole.dimension + 1) / 2 * wholes * math.log(4 / 3))
    return mixed + math.sqrt(32 * parties * log) + parties / 2


def require_room(largest: float, whole: AdditiveMechanism, contributors: int, parties: int, numbers: int) -> None:
    """Raises `InputError` where the sum of honest values of at most `largest` steps, with noise, may exceed 2^62."""
    if not largest * parties + noise_bound(whole, contributors, parties, numbers) <= MOST_STEPS:
        raise InputError(
            f"a sum over {parties} parties of values of up to {largest:g} grid steps, with its noise, does not fit "
            "into 64 bits; lower epsilon or the rows of a party"
        )


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


_verifier = lru_cache(maxsize=4096)(Ed25519PublicKey.from_public_bytes)


def _statement(digest: bytes, use: str, party: int, content: bytes) -> bytes:
    return b"%b%b|%b%b" % (digest, use.encode(), party.to_bytes(4, "little"), content)
