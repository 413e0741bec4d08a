"""A server of masked sums that does what it likes, and what it can read from what parties tell it."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from aggregator.secure_aggregation.server import MaskedSum
from federation.contract.errors import InputError
from federation.contract.trust import TrustTerms
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.messages import (
    AGREE,
    MASKED,
    SHARES,
    UNMASK,
    Counted,
    Keys,
    Letters,
    Living,
    Masked,
    Table,
    as_cells,
    packed_bits,
    receipt_width,
    unpacked_bits,
)
from federation.secure_aggregation.plan import SumPlan, SumTerms, neighbours, planned
from parties.secure_aggregation.party import MaskedParty
from scenarios.simulated.secure_aggregation import enrolled, masked_parties

QUESTION = "00" * 32
SERVERS = {"active": "one", "semi_honest": "one_semi_honest"}


class Gullible(SumTerms):
    """A party that takes every plan."""

    def require(self, plan: SumPlan) -> None:
        """Whatever the server says."""


def parts(parties: int, numbers: int, seed: int = 0) -> np.ndarray:
    """Whole numbers of either sign, (parties, numbers)."""
    return np.random.default_rng(seed).integers(-(2**50), 2**50, (parties, numbers))


class World:
    """Parties with known parts, a plan, and everything that one server has seen of them."""

    def __init__(
        self,
        parties: int,
        adversary: str = "active",
        *,
        quorum: float = 0.8,
        absent: float = 0.1,
        colluding: float = 0.1,
        terms: type[SumTerms] = SumTerms,
        changed: Callable[[SumPlan], SumPlan] = lambda plan: plan,
        contribute: Callable[[int, SumPlan], np.ndarray] | None = None,
    ) -> None:
        self.held, self.roster = enrolled(parties)
        self.terms = terms(self.roster, TrustTerms(parties, quorum, colluding, SERVERS[adversary]))
        plan = planned(QUESTION, self.roster, 3, self.terms.trust, absent)
        self.plan = changed(plan)
        self.parts = parts(parties, 3)
        own = contribute or (lambda number, plan: self.parts[number])
        self.parties: list[MaskedParty] = masked_parties(self.held, self.terms, own)
        self.told: dict[int, dict[int, bytes]] = {}
        self.revealed: list[tuple[int, bytes]] = []  # by whom, in all answers to the last query

    def ask(self, query: int, number: int, question: bytes) -> bytes | None:
        """What a party answers; None where it refuses."""
        try:
            answer = self.parties[number].answer(self.plan.digest, query, question)
        except InputError:
            return None
        self.told.setdefault(query, {})[number] = answer
        if query == UNMASK:
            self.revealed.append((number, answer))
        return answer

    def honestly(self, until: int) -> None:
        """Ask everybody as the protocol has it, up to and with this query."""
        server = MaskedSum(self.plan, self.roster)
        while server.query is not None and server.query <= until:
            for number, question in server.questions():
                answer = self.ask(server.query, number, question)
                if answer is not None:
                    server.take(number, answer)
            server.close()

    def letters_to(self, number: int, senders: Iterable[int]) -> bytes:
        """Those of some of its neighbours."""
        cells = []
        for sender in senders:
            table = Letters.read(self.told[SHARES][sender], self.plan).letters
            cells.append(table.cells[table.numbers == number][0].tobytes())
        return Table(np.array([*senders]), as_cells(cells, 88)).packed()

    def live(self, but: Iterable[int] = ()) -> bytes:
        """Bits of all parties but these."""
        counted = np.ones(self.plan.parties, dtype=bool)
        counted[[*but]] = False
        return packed_bits(counted)

    def living(self, number: int, live: bytes) -> bytes:
        """The third question, about this list, with all true receipts of neighbours on it."""
        counted = unpacked_bits(live, self.plan.parties)
        near = [one for one in neighbours(self.plan, number).tolist() if counted[one] and one in self.told[MASKED]]
        cells = []
        for one in near:
            masked = Masked.read(self.told[MASKED][one], self.plan)
            cells.append(masked.included + masked.signature)
        return Living(live, Table(np.array(near), as_cells(cells, receipt_width(self.plan)))).packed()

    def obeyed(self, number: int, live: bytes) -> bytes:
        """The last question about this list, where the server is believed."""
        counted = unpacked_bits(live, self.plan.parties)
        return Counted(int(counted.sum()), packed_bits(counted[neighbours(self.plan, number)])).packed()

    def signatures(self, number: int, signed: Mapping[int, bytes]) -> bytes:
        """The fourth question: those of neighbours."""
        near = [one for one in neighbours(self.plan, number).tolist() if one in signed]
        return Table(np.array(near, dtype=int), as_cells([signed[one] for one in near], 64)).packed()

    def agree(self, numbers: Iterable[int], live: bytes) -> dict[int, bytes]:
        """Signatures of those who sign this list."""
        found = {number: self.ask(AGREE, number, self.living(number, live)) for number in numbers}
        return {number: signature for number, signature in found.items() if signature is not None}

    def unmask(self, numbers: Iterable[int], signed: Mapping[int, bytes]) -> None:
        """Ask for shares, with these signatures."""
        for number in numbers:
            self.ask(UNMASK, number, self.signatures(number, signed))

    def secret(self, owner: int, kind: int, extra: Mapping[int, bytes] | None = None) -> bytes | None:
        """A party's secret of a kind from what was revealed, and `extra` shares by giver; None if too few came."""
        found = dict(extra or {})
        for giver, answer in self.revealed:
            table = Table.read(answer, 37, self.plan)
            for cell in table.cells[(table.numbers == owner) & (table.cells[:, 0] == kind)]:
                found[giver] = cell[1:].tobytes()
        return self._combined(owner, found)

    def _combined(self, owner: int, found: Mapping[int, bytes]) -> bytes | None:
        if len(found) < self.plan.threshold:
            return None
        places = {number: place + 1 for place, number in enumerate(neighbours(self.plan, owner).tolist())}
        givers = [*found][: self.plan.threshold]
        shares = as_cells([found[giver] for giver in givers], keys.SHARE)
        return keys.recovered(shares[None], np.array([[places[giver] for giver in givers]]))[0]

    def read(
        self, victim: int, own: bytes, pair: bytes | None, theirs: Mapping[int, bytes] | None = None
    ) -> np.ndarray:
        """A party's part, from its own secret and either its pair secret or those of all whose masks are in it."""
        masked = Masked.read(self.told[MASKED][victim], self.plan)
        around = neighbours(self.plan, victim)
        left = masked.vector - keys.stream(own, self.plan.numbers)
        for other in around[unpacked_bits(masked.included, self.plan.neighbours)].tolist():
            secret, public = (pair, self.public(other)) if pair else ((theirs or {})[other], self.public(victim))
            common = keys.shared(X25519PrivateKey.from_private_bytes(secret), public)
            assert common is not None
            mask = keys.stream(keys.mask_key(common, self.plan.digest, victim, other), self.plan.numbers)
            left = left - mask if victim < other else left + mask
        return left.view(np.int64)

    def public(self, number: int) -> bytes:
        """Its key behind shared masks."""
        return Keys.read(self.told[0][number], self.plan).masks
