"""What travels in a sum with two servers that do not collude: one adds, the other takes the masks off.

A party sends y = v + PRG(key) modulo 2^64 to the first, with a fresh X25519 key; the second, whose key the plan names,
finds the same mask key from that, and tells the first the sum of all masks, once. The party signs its key, so that the
first can neither invent parties nor leave out so many that less than a quorum is in the sum.

It does not sign y: the second server knows the mask, and with a hash of y it could try what v may be. A share of noise
is little, and of Laplace noise among many parties mostly 0. Whoever carries y must see to it that it is the party's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federation.sums.keys import SIGNATURE, Words, derived, signed
from federation.sums.messages import require_size
from federation.sums.plan import KEY, SumPlan

RECEIPT = KEY + SIGNATURE  # bytes
MOST_RECEIPTS = 100_000  # in one message from server to server
SAYS = "two"


@dataclass(frozen=True, eq=False)
class Uploaded:
    """A party's fresh public key, its masked integers (d,), and its signature on the key."""

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
        """What the second server gets of it: the key, and the signature."""
        return self.key + self.signature


def upload_width(plan: SumPlan) -> int:
    """Bytes of what a party uploads."""
    return KEY + SIGNATURE + 8 * plan.numbers


def vouched(receipt: bytes, number: int, key: bytes, plan: SumPlan) -> bool:
    """Whether the party of this number, whose key on the roster that is, signed it."""
    return signed(key, receipt[KEY:], plan.digest, SAYS, number, receipt[:KEY])


def mask_key(common: bytes, plan: SumPlan, number: int, key: bytes) -> bytes:
    """Of the mask of one party, from what it shares with the second server."""
    return derived(common, plan.digest, SAYS, number.to_bytes(4, "little") + key)
