"""Secure aggregation in a simulation: real masked sums for few parties, exact sums for many, and their costs.

`SimulatedSummation` serves `trust: secure`. Both kinds of sum give the same total, as masks cancel, or no total. Where
a masked sum of many parties would end without a total, the exact sum does as well. The report gives the cost of the
masked sum in place of that of the exact sum.

A masked sum has all its parties and servers in this process: every message is real, but no message leaves the process.
Such a sum hides nothing from this process. It shows that the total is right, which parties may drop out, and what the
sum costs.

`sum_costs` counts primitive operations and bytes of each side, from the plan alone. `timed` measures the times of
primitive operations on the machine.
"""

import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from statistics import median
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from aggregator.secure_aggregation.server import AddingServer, MaskedSum, Total
from federation.contract.errors import InputError, QuorumError
from federation.contract.trust import Servers, TrustTerms
from federation.numerics.rows import Booleans, Floats, Integers
from federation.secure_aggregation import masks
from federation.secure_aggregation.masks import CHECK, SIGNATURE, public
from federation.secure_aggregation.messages import LETTER, RECEIPT, keys_width, receipt_width
from federation.secure_aggregation.plan import KEY, SAID, Roster, SumPlan, SumTerms, planned
from parties.secure_aggregation.party import MaskedParty, ProcessMemory, UnmaskingServer, UploadingParty

Counts = Mapping[str, float]

EXCHANGE, PUBLIC, SIGN, VERIFY = "X25519 exchange", "X25519 public key", "Ed25519 signature", "Ed25519 check"
DERIVE, SEAL, OPEN, STREAM = "HKDF", "AES-GCM sealing", "AES-GCM opening", "ChaCha20 mask"
SPLIT, RECOVER = "Shamir splitting", "Shamir recovery"

_SECONDS, _ROUNDS = 0.1, 5  # for which operations are timed at least
_NUMBER = 4  # bytes of a party's number in a table
_BATCH = 50  # secrets recovered at once


@dataclass(frozen=True)
class SumCosts:
    """Costs of one party on average, where all answer the first two queries and `absent` of them not the third.

    Counts of operations of a party (of those that stay), of the server per party, and of the second server per party;
    bytes that a party sends and receives, and that go to the second server.
    """

    party: Counts
    server: Counts
    second: Counts
    up: float
    down: float
    across: float = 0.0


def sum_costs(plan: SumPlan, absent: float) -> SumCosts:
    """`absent`: the share of the parties that are silent from the third query on (with two servers: from the first).

    Examples:
        >>> from federation.secure_aggregation.plan import Roster, planned
        >>> terms = TrustTerms(1000, quorum=0.9, servers="one_semi_honest")
        >>> plan = planned("00" * 32, Roster((bytes(32),) * 1000), 50, terms, 0.1)
        >>> costs = sum_costs(plan, 0.1)
        >>> plan.neighbours, costs.party["X25519 exchange"], costs.up, costs.down
        (52, 104, 7403, 8696)
    """
    integers, bits = 8 * plan.numbers, -(-plan.parties // 8)
    if plan.second:
        uploading = {PUBLIC: 1, EXCHANGE: 1, DERIVE: 1, STREAM: 1, SIGN: 1}
        second = {VERIFY: 1, EXCHANGE: 1, DERIVE: 1, STREAM: 1}
        return SumCosts(uploading, {VERIFY: 1}, second, integers + 96, len(plan.packed()), RECEIPT + _NUMBER)
    near, live = plan.neighbours, plan.neighbours * (1 - absent)
    party: dict[str, float] = {
        PUBLIC: 2,
        DERIVE: 4 + 2 * near,
        EXCHANGE: 2 * near,
        SPLIT: 1,
        SEAL: near,
        OPEN: near,
        STREAM: 1 + near,
    }
    server = {STREAM: 1 - absent + absent * live, RECOVER: 1.0, PUBLIC: absent}
    server |= {EXCHANGE: absent * live, DERIVE: absent * live}
    up: float = keys_width(plan) + CHECK + (LETTER + _NUMBER) * near + integers + receipt_width(plan)
    up += (1 + masks.SHARE + _NUMBER) * near
    down: float = len(plan.packed()) + (keys_width(plan) + _NUMBER) * near + (LETTER + _NUMBER) * near
    if plan.signed:
        party |= {VERIFY: near + live + plan.threshold, SIGN: 3}
        server[VERIFY] = 3 - 2 * absent
        up += SIGNATURE
        down += bits + (receipt_width(plan) + SIGNATURE + 2 * _NUMBER) * live
    else:
        down += _NUMBER + plan.within
    return SumCosts(party, server, {}, up, down)


def seconds(counts: Counts, times: Mapping[str, float]) -> float:
    """Return the seconds of so many operations, one after the other."""
    return sum(count * times[name] for name, count in counts.items())


def timed(plan: SumPlan) -> dict[str, float]:
    """Seconds of processor time of each primitive operation here and now, for sums of this plan.

    They are done in turns, each as often at a stretch as a party does it: once, or for all of its neighbours. Many
    times in a loop of its own an operation takes less, as the processor then remembers all that it needs for it.

    The products of these times with the counts of `sum_costs` omit what Python adds between the operations, which
    `python -m benchmarks.secure_sums` measures beside them.
    """
    own, other, signing = X25519PrivateKey.generate(), X25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    theirs, secret, content = masks.public(other), secrets.token_bytes(32), bytes(64)
    verifying = signing.public_key().public_bytes_raw()
    said, letter = masks.signature(signing, secret, "sent", 1, content), bytes(2 * masks.SHARE)
    sealed = masks.sealed(secret, 1, 2, letter)
    integers = masks.stream(secret, plan.numbers)
    fresh = X25519PrivateKey.generate if plan.second else lambda: X25519PrivateKey.from_private_bytes(secret)
    calls: dict[str, Callable[[], Any]] = {
        PUBLIC: lambda: masks.public(fresh()),
        EXCHANGE: lambda: masks.shared(own, theirs),
        DERIVE: lambda: masks.mask_key(secret, secret, 1, 2),
        STREAM: lambda: integers + masks.stream(secret, plan.numbers),
        SIGN: lambda: masks.signature(signing, secret, "sent", 1, content),
        VERIFY: lambda: masks.signed(verifying, said, secret, "sent", 1, content),
    }
    if plan.second:
        return _in_turns(calls, dict.fromkeys(calls, 1))
    own_secrets, near, threshold = [secret, content[:32]], plan.neighbours, plan.threshold
    parts = masks.split(own_secrets, threshold, near, secret)[0]
    random = np.random.default_rng(0)
    places = np.array([np.sort(random.permutation(near)[:threshold]) for _ in range(_BATCH)])
    calls |= {
        SEAL: lambda: masks.sealed(secret, 1, 2, letter),
        OPEN: lambda: masks.opened(secret, 1, 2, sealed),
        SPLIT: lambda: masks.split(own_secrets, threshold, near, secret),
        RECOVER: lambda: masks.recovered(parts[places], places + 1),
    }
    found = _in_turns(calls, {name: 1 if name in (PUBLIC, SIGN, SPLIT, RECOVER) else near for name in calls})
    return {**found, RECOVER: found[RECOVER] / _BATCH}


def _in_turns(calls: Mapping[str, Callable[[], Any]], stretches: Mapping[str, int]) -> dict[str, float]:
    """Processor time of one of each of these calls, the median over rounds."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    began, rounds = time.process_time(), 0
    while rounds < _ROUNDS or time.process_time() - began < _SECONDS:
        for name, call in calls.items():
            before, start = time.process_time(), time.process_time()  # what lies between is the clock's own
            for _ in range(stretches[name]):
                call()
            found[name].append((time.process_time() - 2 * start + before) / stretches[name])
        rounds += 1
    return {name: median(times) for name, times in found.items()}


NAME = "scenarios.simulated.secure_aggregation:SimulatedSummation"  # for a plan
# Parties whose masked sum takes a third of a second at most: pairs of neighbours, or messages to two servers.
MOST_MASKED: dict[Servers, int] = {"one": 25, "one_semi_honest": 50, "two": 200}
_SLACK = 1e-9  # of a share of the parties, whose number is then rounded up


@dataclass(frozen=True)
class SimulatedSummation:
    """One sum under trust terms, with so many `numbers` of each party; `question`: a digest of what is summed.

    Raises `InputError` where no masked sum of so few parties can be, or too little of the noise is theirs.
    """

    question: str
    terms: TrustTerms
    numbers: int

    def __post_init__(self) -> None:
        """A party's terms are looked at before anybody is asked."""
        self._terms.require(self._planned(self._terms))

    @property
    def masked(self) -> bool:
        """Whether the sum is really masked."""
        return self.terms.parties <= MOST_MASKED[self.terms.servers]

    def require(self, answered: Booleans) -> None:
        """Raises `QuorumError` where a masked sum of those who have answered would end without a total."""
        try:
            self._planned(self._terms, answered)
        except InputError as error:
            raise QuorumError(f"{error}; nothing is released") from error

    def total(self, parts: Integers, answered: Booleans) -> Integers:
        """The sum (d,) of the parts (K, d) of those who have answered. Raises `QuorumError` where they are too few."""
        (held, roster), silent = enrolled(self.terms.parties), np.flatnonzero(~answered).tolist()

        def part(number: int, plan: SumPlan) -> Integers:
            found: Integers = parts[number]
            return found

        if self.terms.servers != "two":
            terms = replace(self._terms, roster=roster)
            return masked_total(self._planned(terms), terms, masked_parties(held, terms, part), {0: silent}).values
        second = X25519PrivateKey.generate()
        terms = replace(self._terms, roster=roster, second=public(second))
        server = UnmaskingServer(second, terms, ProcessMemory())
        return uploaded_total(self._planned(terms), terms, uploading_parties(held, terms, part), server, silent).values

    def told(self, answered: Booleans) -> str:
        """How the sum was made, and what it costs."""
        plan, who = self._planned(self._terms, answered), SAID[self.terms.servers]
        if not self.masked:
            sent = f"{_bytes(plan, answered)} with {who}"
            if self.terms.servers == "one":
                two = replace(plan, neighbours=0, threshold=0, second="00" * KEY)
                sent += f", {_bytes(two, answered)} with {SAID['two']}"
            return (
                "shares were added in clear, which gives the total of a masked sum, as masks cancel; in a masked sum "
                f"each party would send {sent}"
            )
        near = f"had {plan.neighbours} neighbours, {plan.threshold} of whom unmask it, and " if plan.neighbours else ""
        return (
            f"shares were added by a masked sum with {who}, all messages real: each party {near}sent "
            f"{_bytes(plan, answered)}; all of it ran in one process, which hides nothing from whoever simulates"
        )

    @cached_property
    def _terms(self) -> SumTerms:
        """The terms of a sum of parties whose keys do not matter."""
        second = bytes(KEY) if self.terms.servers == "two" else b""
        return SumTerms(Roster((bytes(KEY),) * self.terms.parties), self.terms, second)

    def _planned(self, terms: SumTerms, answered: Booleans | None = None) -> SumPlan:
        """For as many absences as there are; before anybody is asked, for none."""
        absent = 0.0 if answered is None else max(0.0, float((~answered).mean()) - _SLACK)
        return planned(self.question, terms.roster, self.numbers, self.terms, absent, terms.second)


def _bytes(plan: SumPlan, answered: Booleans) -> str:
    return f"{sum_costs(plan, float((~answered).mean())).up:,.0f} bytes"


def enrolled(parties: int) -> tuple[list[Ed25519PrivateKey], Roster]:
    """Fresh keys of so many parties, and their roster."""
    held = [Ed25519PrivateKey.generate() for _ in range(parties)]
    return held, Roster(tuple(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw) for key in held))


def masked_parties(
    held: Sequence[Ed25519PrivateKey], terms: SumTerms, contribute: Callable[[int, SumPlan], Floats | Integers]
) -> list[MaskedParty]:
    """A party for each key, of sums with one server; `contribute` makes the part of a party of this number."""
    return [
        MaskedParty(number, key, terms, ProcessMemory(), partial(contribute, number)) for number, key in enumerate(held)
    ]


def uploading_parties(
    held: Sequence[Ed25519PrivateKey], terms: SumTerms, contribute: Callable[[int, SumPlan], Floats | Integers]
) -> list[UploadingParty]:
    """As `masked_parties`, of sums with two servers."""
    return [
        UploadingParty(number, key, terms, ProcessMemory(), partial(contribute, number))
        for number, key in enumerate(held)
    ]


def masked_total(
    plan: SumPlan, terms: SumTerms, parties: Sequence[MaskedParty], silent: Mapping[int, Collection[int]] | None = None
) -> Total:
    """The sum over all parties but those who are `silent` from a query on (by query their numbers).

    Raises `QuorumError` where too few are left. Whatever happens, all parties are told that the sum is over.
    """
    server = MaskedSum(plan, terms.roster)
    gone: set[int] = set()
    try:
        while (query := server.query) is not None:
            gone |= {number for since, who in (silent or {}).items() if since <= query for number in who}
            for number, question in server.questions():
                if number in gone:
                    continue
                try:
                    server.take(number, parties[number].answer(plan.digest, query, question))
                except InputError:  # as of a party with too few neighbours left: it says no more
                    gone.add(number)
            server.close()
        return server.total()
    finally:
        for party in parties:
            party.leave(plan.digest)


def uploaded_total(
    plan: SumPlan,
    terms: SumTerms,
    parties: Sequence[UploadingParty],
    second: UnmaskingServer,
    silent: Collection[int] = (),
) -> Total:
    """The sum over all parties but the `silent` ones, by two servers. Raises `QuorumError` where too few are left."""
    first = AddingServer(plan, terms.roster)
    for number, party in enumerate(parties):
        if number not in silent:
            first.take(number, party.answer(plan.packed()))
    counted = first.counted()
    for receipts in first.receipts():
        second.take(plan, receipts)
    return first.total(second.masks(plan, counted))
