"""The server of a masked sum: carries messages between the parties, and takes the masks off the sum of what they sent.

It asks every party that has answered so far, and drops unread whatever comes from another. Before the last query it
makes sure that all secrets which it needs can be recovered; otherwise, or below the plan's quorum, it ends the sum
while everything it has is still masked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from aggregator.sums.recovery import Revealed, remaining_masks
from federation.contract.errors import InputError, QuorumError
from federation.numerics.rows import Booleans, Integers
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.masks import CHECK, SIGNATURE, decoded
from federation.secure_aggregation.messages import (
    AGREE,
    KEYS,
    LETTER,
    MASKED,
    SHARES,
    UNMASK,
    Counted,
    Keys,
    Letters,
    Living,
    Masked,
    Table,
    keys_width,
    packed_bits,
    queries,
    receipt_width,
    require_size,
    unpacked_bits,
)
from federation.secure_aggregation.plan import Roster, SumPlan, neighbours


@dataclass(frozen=True, eq=False)
class Total:
    """The sum of noisy integers (d,), and which parties are in it, (K,)."""

    values: Integers
    counted: Booleans


class MaskedSum:
    """One sum over the parties of a plan, asked query by query: `questions`, `take` each answer, `close`; then `total`.

    `refused` says of parties whose answer was false why they are left out.
    """

    def __init__(self, plan: SumPlan, roster: Roster) -> None:
        self.plan, self._roster = plan, roster
        self.refused: dict[int, str] = {}
        parties, near = plan.parties, plan.neighbours
        self._order = list(queries(plan))
        self._around = neighbours(plan, np.arange(parties))
        self._mirror = near - 1 - np.arange(near)  # of a position: where who stands there has this party
        self._present = np.ones(parties, dtype=bool)  # has answered every query so far
        self._answered = np.zeros(parties, dtype=bool)
        self._keys = np.zeros((parties, keys_width(plan)), dtype=np.uint8)
        self._checks = np.zeros((parties, CHECK), dtype=np.uint8)
        self._letters = np.zeros((0, near, LETTER), dtype=np.uint8)
        self._wrote = np.zeros((parties, near), dtype=bool)  # a letter to the neighbour at this position
        self._included = np.zeros((parties, near), dtype=bool)  # the mask shared with it
        self._receipts = np.zeros((parties, receipt_width(plan)), dtype=np.uint8)
        self._vectors: dict[int, keys.Words] = {}
        self._live = np.zeros(parties, dtype=bool)
        self._signatures = np.zeros((parties, SIGNATURE), dtype=np.uint8)
        self._shown = Revealed(plan, self._around)

    @property
    def query(self) -> int | None:
        """The query that is being asked; None when all are closed."""
        return self._order[0] if self._order else None

    def questions(self) -> Iterator[tuple[int, bytes]]:
        """To each party that is still there, by its number."""
        asked = {
            KEYS: lambda party: self.plan.packed(),
            SHARES: lambda party: self._about_neighbours(party, self._present, self._keys).packed(),
            MASKED: self._letters_to,
            AGREE: self._living,
            UNMASK: self._unmask,
        }[self._asked()]
        for party in np.flatnonzero(self._present).tolist():
            yield party, asked(party)

    def take(self, party: int, answer: bytes) -> None:
        """The answer of a party to its question. What is false leaves the party out; late or second ones are unread."""
        if not (0 <= party < self.plan.parties and self._present[party]) or self._answered[party]:
            return
        taking = {
            KEYS: self._take_keys,
            SHARES: self._take_letters,
            MASKED: self._take_masked,
            AGREE: self._take_agreement,
            UNMASK: self._shown.take,
        }
        try:
            taking[self._asked()](party, answer)
        except InputError as error:
            self.refused[party] = str(error)
        else:
            self._answered[party] = True

    def close(self) -> None:
        """Whoever has not answered is absent from here on.

        Raises `QuorumError` where too few are left: the sum is over, and nothing of it is known.
        """
        query = self._asked()
        self._present &= self._answered
        self._answered = np.zeros_like(self._answered)
        if query == KEYS:
            self._letters = np.zeros((self.plan.parties, self.plan.neighbours, LETTER), dtype=np.uint8)
        elif query == MASKED:
            self._letters = self._letters[:0]
            self._count()
        if self._order[1:2] == [UNMASK]:
            self._require_recoverable()
        if query != UNMASK:
            self._require_quorum(int((self._live if query in (MASKED, AGREE) else self._present).sum()))
        del self._order[0]

    def total(self) -> Total:
        """The sum, once all queries are closed. Raises `QuorumError` where secrets cannot be recovered any more."""
        if self._order:
            raise InputError("a masked sum has no total before its last query is closed; ask all of them")
        live = np.flatnonzero(self._live)
        found = sum((self._vectors[party] for party in live.tolist()), np.zeros(self.plan.numbers, dtype=np.uint64))
        own, pairs = self._shown.recovered(self._live, self._absent(), self._checks, self._keys)
        self.refused |= dict.fromkeys(self._shown.liars, "it revealed false shares of its neighbours' secrets")
        found = found - remaining_masks(self.plan, own, pairs, self._live, self._included, self._around, self._keys)
        return Total(decoded(found), self._live.copy())

    def _asked(self) -> int:
        if not self._order:
            raise InputError("all queries of this masked sum are closed; plan another")
        return self._order[0]

    def _about_neighbours(self, party: int, which: Booleans, cells: np.ndarray) -> Table:
        around = self._around[party]
        chosen = around[which[around]]
        return Table(chosen, cells[chosen])

    def _letters_to(self, party: int) -> bytes:
        """From those neighbours who have all written."""
        around = self._around[party]
        came = self._present[around] & self._wrote[around, self._mirror] & self._wrote[party]
        return Table(around[came], self._letters[around, self._mirror][came]).packed()

    def _living(self, party: int) -> bytes:
        return Living(packed_bits(self._live), self._about_neighbours(party, self._live, self._receipts)).packed()

    def _unmask(self, party: int) -> bytes:
        if not self.plan.signed:
            return Counted(int(self._live.sum()), packed_bits(self._live[self._around[party]])).packed()
        return self._about_neighbours(party, self._present, self._signatures).packed()

    def _take_keys(self, party: int, answer: bytes) -> None:
        told = Keys.read(answer, self.plan)
        self._require_said(party, told.signature, "keys", told.letters + told.masks)
        self._keys[party] = np.frombuffer(answer, dtype=np.uint8)

    def _take_letters(self, party: int, answer: bytes) -> None:
        told = Letters.read(answer, self.plan)
        require_size(told.check, CHECK)
        places = self._places(party, told.letters)
        self._checks[party] = np.frombuffer(told.check, dtype=np.uint8)
        self._letters[party, places] = told.letters.cells
        self._wrote[party, places] = True

    def _take_masked(self, party: int, answer: bytes) -> None:
        told = Masked.read(answer, self.plan)
        self._require_said(party, told.signature, "sent", told.included)
        included = unpacked_bits(told.included, self.plan.neighbours)
        self._included[party] = included
        self._receipts[party] = np.frombuffer(told.included + told.signature, dtype=np.uint8)
        self._vectors[party] = told.vector

    def _take_agreement(self, party: int, answer: bytes) -> None:
        self._require_said(party, answer, "live", keys.live_digest(packed_bits(self._live)))
        self._signatures[party] = np.frombuffer(answer, dtype=np.uint8)

    def _places(self, party: int, table: Table) -> Integers:
        """Positions of these parties among the neighbours. Raises `InputError` where one is none."""
        order = np.argsort(self._around[party])
        found = np.searchsorted(self._around[party], table.numbers, sorter=order)
        places = order[np.minimum(found, self.plan.neighbours - 1)]
        if (self._around[party][places] != table.numbers).any():
            raise InputError("an answer in a masked sum names a stranger as a neighbour")
        return np.asarray(places)

    def _require_said(self, party: int, signature: bytes, use: str, content: bytes) -> None:
        if not self.plan.signed:
            return
        if not keys.signed(self._roster.keys[party], signature, self.plan.digest, use, party, content):
            raise InputError("an answer in a masked sum is not signed by the party's key on the roster")

    def _count(self) -> None:
        """Counted is who sent masked integers; of two neighbours who disagree about their mask, who disagrees more."""
        self._live = self._present.copy()
        while True:
            both = self._live[:, None] & self._live[self._around]
            mutual = self._included & self._included[self._around, self._mirror]
            disputes = (both & ~mutual).sum(axis=1)
            if not disputes.any():
                break
            worst = int(np.argmax(disputes))
            self._live[worst] = False
            self.refused[worst] = "its masked integers lack masks that it shares with neighbours"
        self._present &= self._live
        for party in [party for party in self._vectors if not self._live[party]]:
            del self._vectors[party]

    def _absent(self) -> Booleans:
        """Who is not counted, but whose mask is in the integers of one who is, (K,)."""
        absent = np.zeros_like(self._live)
        absent[self._around[self._live][self._included[self._live]]] = True
        return np.asarray(absent & ~self._live)

    def _require_recoverable(self) -> None:
        """Raises `QuorumError` unless t neighbours hold, and by their rules reveal, what is needed of each party."""
        helping = self._present[self._around] & self._included[self._around, self._mirror]
        helping &= self._included | ~self._live[:, None]
        short = (helping.sum(axis=1) < self.plan.threshold) & (self._live | self._absent())
        if short.any():
            raise QuorumError(
                f"{int(short.sum())} parties have fewer than {self.plan.threshold} neighbours left to unmask the sum; "
                "nothing is released, and another sum must be planned"
            )

    def _require_quorum(self, there: int) -> None:
        if there < self.plan.least:
            raise QuorumError(
                f"{there} parties are in the masked sum, and {self.plan.least} of {self.plan.parties} are needed; "
                "nothing is released"
            )
