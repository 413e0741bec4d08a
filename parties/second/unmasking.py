"""The second of two servers, run by somebody else: tells the sum of the masks of one list of parties, once."""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from federation.contract.errors import InputError, QuorumError
from federation.numerics.rows import Booleans
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.masks import Words
from federation.secure_aggregation.messages import MOST_RECEIPTS, RECEIPT, Table, mask_key, unpacked_bits, vouched
from federation.secure_aggregation.plan import KEY, SumPlan, Terms
from parties.sums.memory import Memory, Record


class UnmaskingServer:
    """Takes receipts of parties, sum by sum, and answers for a quorum of them; for another list of the same sum never.

    `terms`: its own roster, and what it insists on as a party does. `memory` keeps what it has answered.
    """

    def __init__(self, key: X25519PrivateKey, terms: Terms, memory: Memory) -> None:
        self._key, self._terms, self._memory = key, terms, memory
        self._sums: dict[bytes, tuple[Words, Booleans]] = {}

    def take(self, plan: SumPlan, receipts: bytes) -> None:
        """Receipts that the first server has of a sum. Raises `InputError` where one is false or comes twice."""
        total, seen = self._of(plan)
        table = Table.read(receipts, RECEIPT, plan, most=MOST_RECEIPTS)
        if seen[table.numbers].any():
            raise InputError("the first server shows a party's receipt twice; this server leaves the sum")
        for number, receipt in table.items():
            if not vouched(receipt, number, self._terms.roster.keys[number], plan):
                raise InputError("a receipt is not signed by the party's key on the roster; this server leaves the sum")
            theirs = receipt[:KEY]
            # A key that gives nothing secret is no honest party's: its part is in clear, and it may be.
            common = keys.shared(self._key, theirs) or bytes(KEY)
            total += keys.stream(mask_key(common, plan, number, theirs), plan.numbers)
            seen[number] = True

    def masks(self, plan: SumPlan, counted: bytes) -> Words:
        """The sum of the masks of those who are counted (bits), all of whom have shown receipts.

        Raises `QuorumError` for fewer than the plan's quorum and `InputError` for another list than was answered for.
        """
        record = self._memory.load(plan.digest)
        if record is None:
            total, seen = self._of(plan)
            asked = unpacked_bits(counted, plan.parties)
            if asked.sum() < plan.least:
                raise QuorumError(f"{asked.sum()} parties are in the sum, and {plan.least} must be; no mask is told")
            if (asked != seen).any():
                raise InputError("the parties that are counted are not those whose receipts came; send all and no more")
            record = Record(b"", total.astype("<u8").tobytes(), (counted,), ended=True)
            self._memory.save(plan.digest, record)
            del self._sums[plan.digest]
        if record.asked != (counted,):
            raise InputError("this server has told the masks of another list of parties of this sum, and tells no more")
        return np.frombuffer(record.vector, dtype="<u8")

    def _of(self, plan: SumPlan) -> tuple[Words, Booleans]:
        """What has come of a sum that its terms allow."""
        if plan.digest not in self._sums:
            if plan.second != keys.public(self._key).hex():
                raise InputError("the plan of this sum names another second server; send it there")
            if self._memory.load(plan.digest) is not None:
                raise InputError("this server has told the masks of this sum, and takes no more receipts of it")
            self._terms.require(plan)
            self._sums[plan.digest] = np.zeros(plan.numbers, dtype=np.uint64), np.zeros(plan.parties, dtype=bool)
        return self._sums[plan.digest]
