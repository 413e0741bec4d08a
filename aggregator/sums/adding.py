"""The first of two servers: adds up what parties send, and asks the second for the sum of their masks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aggregator.sums.masked_sum import Total
from federation.contract.errors import InputError, QuorumError
from federation.secure_aggregation.masks import Words, decoded
from federation.secure_aggregation.messages import KEYS, MOST_RECEIPTS, RECEIPT, Table, Uploaded, packed_bits, vouched
from federation.secure_aggregation.plan import Roster, SumPlan


class AddingServer:
    """One sum: `take` what parties upload, show the second server `receipts` and `counted`, then take its masks off.

    It asks one query as `MaskedSum` asks several, until it is closed.
    """

    def __init__(self, plan: SumPlan, roster: Roster) -> None:
        self.plan, self._roster = plan, roster
        self.query: int | None = KEYS
        self.refused: dict[int, str] = {}
        self._total = np.zeros(plan.numbers, dtype=np.uint64)
        self._receipts = np.zeros((plan.parties, RECEIPT), dtype=np.uint8)
        self._counted = np.zeros(plan.parties, dtype=bool)

    def questions(self) -> Iterator[tuple[int, bytes]]:
        """To each party, by its number."""
        for party in range(self.plan.parties):
            yield party, self.plan.packed()

    def close(self) -> None:
        """Whoever has not answered is not in the sum. Raises `QuorumError` where too few are."""
        self.counted()
        self.query = None

    def take(self, party: int, answer: bytes) -> None:
        """What a party uploads; what is not signed by its key on the roster is refused, second ones are unread."""
        if not 0 <= party < self.plan.parties or self._counted[party]:
            return
        try:
            told = Uploaded.read(answer, self.plan)
        except InputError as error:
            self.refused[party] = str(error)
            return
        receipt = told.receipt
        if not vouched(receipt, party, self._roster.keys[party], self.plan):
            self.refused[party] = "an upload to a masked sum is not signed by the party's key on the roster"
            return
        self._receipts[party] = np.frombuffer(receipt, dtype=np.uint8)
        self._total += told.vector
        self._counted[party] = True

    def counted(self) -> bytes:
        """Bits of the parties in the sum. Raises `QuorumError` for fewer than the plan's quorum."""
        there = int(self._counted.sum())
        if there < self.plan.least:
            raise QuorumError(
                f"{there} parties are in the masked sum, and {self.plan.least} of {self.plan.parties} are needed; "
                "nothing is released"
            )
        return packed_bits(self._counted)

    def receipts(self) -> Iterator[bytes]:
        """Of all parties that are counted, in messages of at most 100,000."""
        counted = np.flatnonzero(self._counted)
        for start in range(0, len(counted), MOST_RECEIPTS):
            part = counted[start : start + MOST_RECEIPTS]
            yield Table(part, self._receipts[part]).packed()

    def total(self, masks: Words) -> Total:
        """The sum, given that of the masks."""
        return Total(decoded(self._total - masks), self._counted.copy())
