"""Votes as packed bits: 1, 2, 4 or 8 bits per entry, whole bytes per party."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_BLOCK = 1 << 17  # entries at a time, so that what lies between two steps stays in cache


def bits_per_entry(levels: int) -> int:
    """Bits that hold one of `levels` categories: 1, 2, 4, 8 or a whole number of bytes above.

    Examples:
        >>> [bits_per_entry(levels) for levels in (2, 3, 10, 256, 257)]
        [1, 2, 4, 8, 16]
    """
    needed = max(1, (levels - 1).bit_length())
    return next((bits for bits in (1, 2, 4, 8) if bits >= needed), 8 * -(-needed // 8))


def pack(values: np.ndarray, levels: int) -> np.ndarray:
    """(P, N) integers below `levels` -> (P, ceil(N * bits / 8)) bytes; more than 256 levels stay as they are.

    One bit: the first entry is the highest bit of the first byte. Two and four: it is in the lowest bits.

    Examples:
        >>> pack(np.array([[1, 0, 1, 1]], dtype=np.uint8), levels=2)
        array([[176]], dtype=uint8)
        >>> unpack(pack(np.array([[2, 0, 1]], dtype=np.uint8), levels=3), levels=3, length=3)
        array([[2, 0, 1]], dtype=uint8)
    """
    bits = bits_per_entry(levels)
    if bits >= 8:
        return values
    if bits == 1:
        return np.packbits(values, axis=1)
    per_byte = 8 // bits
    packed = np.empty((len(values), packed_length(levels, values.shape[1])), dtype=np.uint8)
    for some in _blocks(*values.shape):
        block = values[some]
        if missing := -values.shape[1] % per_byte:
            block = np.pad(block, ((0, 0), (0, missing)))
        # The entries of one byte as one word, v0 + v1 2^8 + ...: shifts bring them together in its lowest byte.
        words = np.ascontiguousarray(block, dtype=np.uint8).view(f"<u{per_byte}")
        together = words | words >> (8 - bits)
        for slot in range(2, per_byte):
            together |= words >> slot * (8 - bits)
        packed[some] = together  # the cast keeps the lowest byte
    return packed


def unpack(packed: np.ndarray, levels: int, length: int) -> np.ndarray:
    """Inverse of `pack` for rows of `length` entries. The caller has checked the packed shape."""
    bits = bits_per_entry(levels)
    if bits >= 8:
        return packed
    if bits == 1:
        return np.unpackbits(packed, axis=1, count=length)
    per_byte = 8 // bits
    spread = np.empty(packed.shape, dtype=f"<u{per_byte}")
    entries = sum((2**bits - 1) << 8 * slot for slot in range(per_byte))
    for some in _blocks(*packed.shape):
        words = packed[some].astype(spread.dtype)
        apart = words | words << (8 - bits)
        for slot in range(2, per_byte):
            apart |= words << slot * (8 - bits)
        np.bitwise_and(apart, entries, out=spread[some])
    return spread.view(np.uint8)[:, :length]


def packed_length(levels: int, length: int) -> int:
    """Entries along the second axis of `pack`'s result."""
    bits = bits_per_entry(levels)
    return length if bits >= 8 else -(-length * bits // 8)


def _blocks(parties: int, length: int) -> Iterator[slice]:
    step = max(1, _BLOCK // max(1, length))
    return (slice(first, first + step) for first in range(0, parties, step))
