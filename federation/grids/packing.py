"""Votes as packed bits: 1, 2, 4 or 8 bits per entry, whole bytes per party."""

from __future__ import annotations

import numpy as np


def bits_per_entry(levels: int) -> int:
    """Bits that hold one of `levels` categories: 1, 2, 4, 8 or a whole number of bytes above."""
    needed = max(1, (levels - 1).bit_length())
    return next((bits for bits in (1, 2, 4, 8) if bits >= needed), 8 * -(-needed // 8))


def pack(values: np.ndarray, levels: int) -> np.ndarray:
    """(P, N) integers below `levels` -> (P, ceil(N * bits / 8)) bytes; more than 256 levels stay as they are."""
    bits = bits_per_entry(levels)
    if bits >= 8:
        return values
    if bits == 1:
        return np.packbits(values, axis=1)
    per_byte = 8 // bits
    padded = np.pad(values, ((0, 0), (0, -values.shape[1] % per_byte)))
    grouped = padded.reshape(len(values), padded.shape[1] // per_byte, per_byte)
    packed = np.zeros(grouped.shape[:2], dtype=np.uint8)
    for slot in range(per_byte):
        packed |= grouped[:, :, slot] << np.uint8(bits * slot)
    return packed


def unpack(packed: np.ndarray, levels: int, length: int) -> np.ndarray:
    """Inverse of `pack` for rows of `length` entries. The caller has checked the packed shape."""
    bits = bits_per_entry(levels)
    if bits >= 8:
        return packed
    if bits == 1:
        return np.unpackbits(packed, axis=1, count=length)
    slots = [(packed >> np.uint8(bits * slot)) & np.uint8(2**bits - 1) for slot in range(8 // bits)]
    return np.stack(slots, axis=2).reshape(len(packed), packed.shape[1] * len(slots))[:, :length]


def packed_length(levels: int, length: int) -> int:
    """Entries along the second axis of `pack`'s result."""
    bits = bits_per_entry(levels)
    return length if bits >= 8 else -(-length * bits // 8)
