"""Shares of a secret of 32 bytes, any t of which recover it and t - 1 of which say nothing (Shamir 1979).

A secret is nine chunks of 30 bits, each the constant term of a polynomial of degree t - 1 modulo p = 2^31 - 1 with
uniform coefficients; the share at place x = 1, 2, ... is the polynomials' values there, nine integers of four bytes.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from federation.numerics.arrays import Floats, Integers
from federation.sums.keys import stream

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
