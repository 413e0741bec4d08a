"""The server of a secure aggregation: it carries messages between parties and removes the masks from their sum.

`MaskedSum` is the server where there is only one. It asks every party that has answered so far, and drops messages of
all others unread. Before the last message it makes sure that all secrets it needs can be recovered. Otherwise, or below
the plan's quorum, it ends the sum while everything is still masked. `Revealed` recovers the secrets from the
neighbours' shares, and `remaining_masks` computes the masks that are left in the sum.

`AddingServer` is the leader of two servers. It adds up the parties' messages and asks the helper server for the sum of
their masks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from federation.contract.errors import InputError, QuorumError
from federation.numerics.rows import Booleans, Integers
from federation.secure_aggregation import masks
from federation.secure_aggregation.masks import CHECK, SIGNATURE, Words, decoded
from federation.secure_aggregation.messages import (
    AGREE,
    KEYS,
    LETTER,
    MASKED,
    MOST_RECEIPTS,
    PAIR,
    RECEIPT,
    SELF,
    SHARES,
    UNMASK,
    Counted,
    Keys,
    Letters,
    Living,
    Masked,
    Table,
    Uploaded,
    keys_width,
    packed_bits,
    queries,
    receipt_width,
    require_size,
    unpacked_bits,
    vouched,
)
from federation.secure_aggregation.plan import KEY, Roster, SumPlan, neighbours


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
        self._vectors: dict[int, masks.Words] = {}
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
            _require_quorum(self.plan, self._live if query in (MASKED, AGREE) else self._present)
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
        self._require_said(party, answer, "live", masks.live_digest(packed_bits(self._live)))
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
        if not masks.signed(self._roster.keys[party], signature, self.plan.digest, use, party, content):
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


def _require_quorum(plan: SumPlan, there: Booleans) -> None:
    if there.sum() < plan.least:
        raise QuorumError(
            f"{there.sum()} parties are in the masked sum, and {plan.least} of {plan.parties} are needed; "
            "nothing is released"
        )


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
        _require_quorum(self.plan, self._counted)
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


_ATTEMPTS = 2000  # at random: they find t true shares almost surely where 4 of 19 are false and t is 11


class Revealed:
    """Shares as they arrive, by whose secret they are of and where the neighbour stands who held them.

    A secret is recovered from t shares. One that its owner's check contradicts is tried with others, at random: where
    few are false, and more than t came, they are found.
    """

    def __init__(self, plan: SumPlan, around: Integers) -> None:
        parties, near = around.shape
        self._plan, self._around = plan, around
        self._shares = np.zeros((0, near, masks.SHARE), dtype=np.uint8)
        self._kinds = np.full((parties, near), -1, dtype=np.int8)
        self.liars: set[int] = set()

    def take(self, party: int, answer: bytes) -> None:
        """What a party reveals. Raises `InputError` for what is no table of shares of its neighbours."""
        table = Table.read(answer, 1 + masks.SHARE, self._plan)
        places = {number: place for place, number in enumerate(self._around[party].tolist())}
        if not all(number in places for number in table.numbers.tolist()):
            raise InputError("an answer in a masked sum names a stranger as a neighbour")
        if not len(self._shares):
            self._shares = np.zeros((*self._kinds.shape, masks.SHARE), dtype=np.uint8)
        mirrored = np.array(
            [self._plan.neighbours - 1 - places[number] for number in table.numbers.tolist()], dtype=int
        )
        self._kinds[table.numbers, mirrored] = table.cells[:, 0]
        self._shares[table.numbers, mirrored] = table.cells[:, 1:]

    def recovered(
        self, live: Booleans, absent: Booleans, checks: np.ndarray, public: np.ndarray
    ) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """Of those who are counted the secret of their own mask, of the absent that behind shared ones, by number.

        `checks` (K, 16), `public` (K, 64 or more) with the public key of shared masks from byte 32. Raises
        `QuorumError` where too few true shares came.
        """

        def own(party: int, secret: bytes) -> bool:
            return bool(masks.check_of(secret) == checks[party].tobytes())

        def pair(party: int, secret: bytes) -> bool:
            told = masks.public(X25519PrivateKey.from_private_bytes(secret))
            return bool(told == public[party, KEY : 2 * KEY].tobytes())

        return self._of(np.flatnonzero(live), SELF, own), self._of(np.flatnonzero(absent), PAIR, pair)

    def _of(self, parties: Integers, kind: int, right: Callable[[int, bytes], bool]) -> dict[int, bytes]:
        threshold = self._plan.threshold
        came = self._kinds[parties] == kind
        if (came.sum(axis=1) < threshold).any():
            raise QuorumError("too few of a party's neighbours revealed shares to unmask the sum; nothing is released")
        chosen = np.argsort(~came, axis=1, kind="stable")[:, :threshold]
        found = masks.recovered(self._shares[parties[:, None], chosen], chosen + 1)
        return {
            party: secret if secret is not None and right(party, secret) else self._mended(party, kind, right)
            for party, secret in zip(parties.tolist(), found, strict=True)
        }

    def _mended(self, party: int, kind: int, right: Callable[[int, bytes], bool]) -> bytes:
        """The secret from shares that are true; notes who gave others. Raises `QuorumError` where it is not found."""
        true = np.array([number not in self.liars for number in self._around[party].tolist()])
        places = np.flatnonzero((self._kinds[party] == kind) & true)
        random = np.random.default_rng()  # liars should not know which are tried
        for _ in range(_ATTEMPTS):
            some = random.permutation(places)[: self._plan.threshold]
            if secret := self._from(party, some, right):
                for other in np.setdiff1d(places, some).tolist():
                    if not self._from(party, np.append(some[1:], other), right):
                        self.liars.add(int(self._around[party, other]))
                return secret
        raise QuorumError(
            f"too few neighbours of party number {party} revealed true shares, or it told a false check of its own "
            "secret; nothing is released. If it goes on, plan a sum without that party"
        )

    def _from(self, party: int, places: Integers, right: Callable[[int, bytes], bool]) -> bytes | None:
        secret = masks.recovered(self._shares[party, places][None], places[None] + 1)[0]
        return secret if secret is not None and right(party, secret) else None


def remaining_masks(
    plan: SumPlan,
    own: dict[int, bytes],
    pairs: dict[int, bytes],
    live: Booleans,
    included: Booleans,
    around: Integers,
    public: np.ndarray,
) -> Words:
    """What masks add to the sum of those who are `live` (K,): their own, and those shared with who is absent.

    `included` (K, k): whose masks are in a party's integers; `public` (K, 64 or more) as `Revealed.recovered` has it.
    """
    total = np.zeros(plan.numbers, dtype=np.uint64)
    for secret in own.values():
        total += masks.stream(secret, plan.numbers)
    mirror = plan.neighbours - 1 - np.arange(plan.neighbours)
    for absent, secret in pairs.items():
        key = X25519PrivateKey.from_private_bytes(secret)
        beside = around[absent]
        for party in beside[live[beside] & included[beside, mirror]].tolist():
            common = masks.shared(key, public[party, KEY : 2 * KEY].tobytes())
            if common is None:
                raise InputError("a counted party's public key gives nothing secret; its masks cannot be in the sum")
            mask = masks.stream(masks.mask_key(common, plan.digest, party, absent), plan.numbers)
            total = total + mask if party < absent else total - mask
    return total
