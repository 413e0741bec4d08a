"""What travels in a sum with two servers that do not collude: one adds, the other takes the masks off.

A party sends y = v + PRG(key) modulo 2^64 to the first, with a fresh X25519 key; the second, whose key the plan names,
finds the same mask key from that, and tells the first the sum of all masks, once. The party signs its key and the hash
of y, so that the first can neither invent parties nor leave out so many that less than a quorum is in the sum.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from federation.sums.keys import SIGNATURE, Words, derived, signed
from federation.sums.messages import require_size
from federation.sums.plan import KEY, SumPlan

RECEIPT = 2 * KEY + SIGNATURE  # bytes
MOST_RECEIPTS = 100_000  # in one message from server to server
SAYS = "two"


@dataclass(frozen=True, eq=False)
class Uploaded:
    """A party's fresh public key, its masked integers (d,), and its signature on `statement`."""

    key: bytes
    vector: Words
    signature: bytes

    def packed(self) -> bytes:
        """One after the other."""
        return b"".join((self.key, self.signature, self.vector.astype("<u8", copy=False).data))

    @classmethod
    def read(cls, data: bytes, plan: SumPlan) -> Uploaded:
        """From `packed`. Raises `InputError` for another size."""
        start = KEY + SIGNATURE
        require_size(data, upload_width(plan))
        return cls(data[:KEY], np.frombuffer(data[start:], dtype="<u8"), data[KEY:start])

    @property
    def receipt(self) -> bytes:
        """What the second server gets of it: the key, the hash of the integers, the signature."""
        return statement(self.key, self.vector) + self.signature


def upload_width(plan: SumPlan) -> int:
    """Bytes of what a party uploads."""
    return KEY + SIGNATURE + 8 * plan.numbers


def statement(key: bytes, vector: Words) -> bytes:
    """What a party signs."""
    return key + hashlib.sha256(vector.astype("<u8", copy=False).data).digest()


def vouched(receipt: bytes, number: int, key: bytes, plan: SumPlan) -> bool:
    """Whether the party of this number, whose key on the roster that is, signed it."""
    return signed(key, receipt[2 * KEY :], plan.digest, SAYS, number, receipt[: 2 * KEY])


def mask_key(common: bytes, plan: SumPlan, number: int, key: bytes) -> bytes:
    """Of the mask of one party, from what it shares with the second server."""
    return derived(common, plan.digest, SAYS, number.to_bytes(4, "little") + key)
