"""Responses of one party in one masked sum with one server: a function of its secrets and of the queries, in order.

A party with the vector v sends y = v + PRG(b) + p - q modulo 2^64. The masks shared with neighbours of larger numbers
add up to p, and those shared with neighbours of smaller numbers to q. The party's own secret is b, and s is the secret
behind the shared masks (Bonawitz et al. 2017; neighbours as in Bell et al. 2020).

The party's neighbours have shares of both secrets. They reveal shares of b where the party is counted, and shares of s
where the party is not counted. They never reveal shares of both. A party keeps some rules whatever the server does;
each rule stands beside the code that enforces it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from federation.contract.errors import InputError
from federation.secure_aggregation import masks
from federation.secure_aggregation.masks import Words
from federation.secure_aggregation.messages import (
    LETTER,
    PAIR,
    SELF,
    Counted,
    Keys,
    Letters,
    Living,
    Masked,
    Table,
    as_cells,
    has_bit,
    keys_width,
    packed_bits,
    queries,
    require_size,
    unpacked_bits,
)
from federation.secure_aggregation.plan import KEY, Roster, SumPlan, neighbours


@dataclass(frozen=True)
class Own:
    """A party's number, the private half of its key on the roster, and the roster."""

    number: int
    key: Ed25519PrivateKey
    roster: Roster


class MaskedAnswers:
    """One party in one sum. `answers` what it is asked, in the order of
    `federation.secure_aggregation.messages.queries`.

    `root`: 32 secret bytes of this sum alone. `vector`: its noisy integers modulo 2^64 (d,). Everything else follows:
    another object that is asked the same questions gives the same answers, byte for byte.
    """

    def __init__(self, plan: SumPlan, own: Own, root: bytes, vector: Words) -> None:
        self._plan, self._own, self._root, self._vector = plan, own, root, vector
        self._steps = iter([self._keys, self._letters, self._masked, self._agreed, self._revealed])
        self._order = iter(queries(plan))
        if not plan.signed:
            self._steps = iter([self._keys, self._letters, self._masked, self._revealed])

    def answer(self, question: bytes) -> bytes:
        """To the next question. Raises `InputError` where a rule says no: the sum is over for this party."""
        return next(self._steps)(question)

    @cached_property
    def _places(self) -> dict[int, int]:
        """The position of each neighbour among the neighbours."""
        return {number: place for place, number in enumerate(neighbours(self._plan, self._own.number).tolist())}

    def _secret(self, use: str) -> bytes:
        return masks.derived(self._root, self._plan.digest, use)

    def _keys(self, question: bytes) -> bytes:
        """Fresh keys in every sum: that behind the masks of an absent party becomes known."""
        require_size(question, len(self._plan.packed()))
        self._letter_key = X25519PrivateKey.from_private_bytes(self._secret("letters"))
        self._mask_secret, self._self_secret = self._secret("masks"), self._secret("self")
        self._mask_key = X25519PrivateKey.from_private_bytes(self._mask_secret)
        told = Keys(masks.public(self._letter_key), masks.public(self._mask_key))
        return Keys(told.letters, told.masks, self._signed("keys", told.packed())).packed()

    def _letters(self, question: bytes) -> bytes:
        """Shares of both secrets to t neighbours at least, whose keys the roster vouches for."""
        table = Table.read(question, keys_width(self._plan), self._plan)
        self._require_neighbours(table)
        both = 2 * KEY  # of a cell: the rest is the signature on these
        self._keys_of = {
            number: cell[:both]
            for number, cell in table.items()
            if self._said(number, cell[both:], "keys", cell[:both])
        }
        digest, me = self._plan.digest, self._own.number
        commons = {number: masks.shared(self._letter_key, theirs[:KEY]) for number, theirs in self._keys_of.items()}
        self._letter_keys = {
            number: masks.letter_keys(common, digest, me, number)
            for number, common in commons.items()
            if common is not None
        }
        self._require_enough(len(self._letter_keys), "keys of neighbours that are theirs")
        shares = masks.split(
            [self._self_secret, self._mask_secret],
            self._plan.threshold,
            self._plan.neighbours,
            self._secret("polynomials"),
        )
        pairs, width = shares.transpose(1, 0, 2).tobytes(), 2 * masks.SHARE
        starts = {number: place * width for number, place in self._places.items()}
        sealed = [
            masks.sealed(there, me, number, pairs[starts[number] : starts[number] + width])
            for number, (there, _) in self._letter_keys.items()
        ]
        letters = Table(np.array([*self._letter_keys]), as_cells(sealed, LETTER))
        return Letters(masks.check_of(self._self_secret), letters).packed()

    def _masked(self, question: bytes) -> bytes:
        """Masked with every neighbour whose letter came, t of them at least; the receipt says which."""
        table = Table.read(question, LETTER, self._plan)
        digest, me = self._plan.digest, self._own.number
        # One kind of operation after the other: in turns for each neighbour, a party takes a sixth more time for a sum.
        letters = {
            number: letter
            for number, cell in table.items()
            if number in self._letter_keys
            and (letter := masks.opened(self._letter_keys[number][1], number, me, cell)) is not None
        }
        commons = {number: masks.shared(self._mask_key, self._keys_of[number][KEY:]) for number in letters}
        mask_keys = {
            number: masks.mask_key(common, digest, me, number)
            for number, common in commons.items()
            if common is not None
        }
        self._opened = {number: letters[number] for number in mask_keys}
        included = np.zeros(self._plan.neighbours, dtype=bool)
        included[[self._places[number] for number in mask_keys]] = True
        total = self._vector + masks.stream(self._self_secret, self._plan.numbers)
        for number, key in mask_keys.items():
            mask = masks.stream(key, self._plan.numbers)
            (np.add if me < number else np.subtract)(total, mask, out=total)
        self._require_enough(len(self._opened), "letters of neighbours")
        bits = packed_bits(included)
        return Masked(total, bits, self._signed("sent", bits)).packed()

    def _agreed(self, question: bytes) -> bytes:
        """One signature on who is counted: itself, a quorum, and of its neighbours none whose shares it lacks."""
        living = Living.read(question, self._plan)
        self._live_bits, live = living.live, unpacked_bits(living.live, self._plan.parties)
        counted = int(live.sum()) if live[self._own.number] else 0
        self._take_live(counted, {number: bool(live[number]) for number in self._places})
        end, last = self._plan.within, self._plan.neighbours - 1
        self._naming = {
            number
            for number, receipt in living.receipts.items()
            if number in self._opened
            and has_bit(receipt, last - self._places[number])
            and self._said(number, receipt[end:], "sent", receipt[:end])
        }
        return self._signed("live", masks.live_digest(living.live))

    def _revealed(self, question: bytes) -> bytes:
        """Shares, once t neighbours have signed the same: of b of those who are counted and whose masks include this
        party's, of s of those who are not counted."""
        if self._plan.signed:
            table = Table.read(question, masks.SIGNATURE, self._plan)
            self._require_neighbours(table)
            agreed, live = 0, masks.live_digest(self._live_bits)
            for number, cell in table.items():
                agreed += self._said(number, cell, "live", live)
                if agreed == self._plan.threshold:
                    break
            self._require_enough(agreed, "signatures of neighbours on who is counted")
        else:
            obeyed = Counted.read(question, self._plan)
            near = unpacked_bits(obeyed.near, self._plan.neighbours).tolist()
            self._take_live(obeyed.parties, dict(zip(self._places, near, strict=True)))
            self._naming = set(self._opened)
        numbers, cells = [], []
        for number, letter in self._opened.items():
            if not self._near[number]:
                kind, share = PAIR, letter[masks.SHARE :]
            elif number in self._naming:
                kind, share = SELF, letter[: masks.SHARE]
            else:
                continue
            numbers.append(number)
            cells.append(bytes([kind]) + share)
        return Table(np.array(numbers, dtype=np.int64), as_cells(cells, 1 + masks.SHARE)).packed()

    def _take_live(self, counted: int, near: Mapping[int, bool]) -> None:
        """How many are counted (0 where this party is not), and which of its neighbours."""
        self._near = near
        if counted < self._plan.least or any(live and number not in self._opened for number, live in near.items()):
            raise InputError(
                "the server counts fewer parties than the plan's quorum, or not this one, or a neighbour whose shares "
                "it kept back; this party reveals nothing"
            )

    def _require_neighbours(self, table: Table) -> None:
        if any(number not in self._places for number in table.numbers.tolist()):
            raise InputError("the server names a stranger as this party's neighbour; this party leaves the sum")

    def _require_enough(self, found: int, what: str) -> None:
        if found < self._plan.threshold:
            raise InputError(f"{found} {what} came, and {self._plan.threshold} are needed; this party leaves the sum")

    def _signed(self, use: str, content: bytes) -> bytes:
        if not self._plan.signed:
            return b""
        return masks.signature(self._own.key, self._plan.digest, use, self._own.number, content)

    def _said(self, number: int, signature: bytes, use: str, content: bytes) -> bool:
        if not self._plan.signed:
            return True
        return masks.signed(self._own.roster.keys[number], signature, self._plan.digest, use, number, content)
