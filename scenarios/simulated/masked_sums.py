"""Masked sums whose parties and servers are all in this process: every message is real, only nothing travels.

What such a sum hides it hides from nobody here; it shows that the total is right, who may stay away, and what it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from aggregator.secure_aggregation.server import AddingServer, MaskedSum, Total
from federation.contract.errors import InputError
from federation.numerics.rows import Floats, Integers
from federation.secure_aggregation.plan import Roster, SumPlan, Terms
from parties.secure_aggregation.party import MaskedParty, ProcessMemory, UnmaskingServer, UploadingParty


def enrolled(parties: int) -> tuple[list[Ed25519PrivateKey], Roster]:
    """Fresh keys of so many parties, and their roster."""
    held = [Ed25519PrivateKey.generate() for _ in range(parties)]
    return held, Roster(tuple(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw) for key in held))


def masked_parties(
    held: Sequence[Ed25519PrivateKey], terms: Terms, contribute: Callable[[int, SumPlan], Floats | Integers]
) -> list[MaskedParty]:
    """A party for each key, of sums with one server; `contribute` makes the part of a party of this number."""
    return [
        MaskedParty(number, key, terms, ProcessMemory(), partial(contribute, number)) for number, key in enumerate(held)
    ]


def uploading_parties(
    held: Sequence[Ed25519PrivateKey], terms: Terms, contribute: Callable[[int, SumPlan], Floats | Integers]
) -> list[UploadingParty]:
    """As `masked_parties`, of sums with two servers."""
    return [
        UploadingParty(number, key, terms, ProcessMemory(), partial(contribute, number))
        for number, key in enumerate(held)
    ]


def masked_total(
    plan: SumPlan, terms: Terms, parties: Sequence[MaskedParty], silent: Mapping[int, Collection[int]] | None = None
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
    terms: Terms,
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
