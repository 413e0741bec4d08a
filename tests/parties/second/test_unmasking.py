"""The second of two servers: what it refuses to tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from support.masked_sums import QUESTION

from aggregator.secure_aggregation.server import AddingServer
from federation.contract.errors import InputError, QuorumError
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.messages import RECEIPT, SAYS, Table, Uploaded
from federation.secure_aggregation.plan import Terms, planned
from parties.secure_aggregation.party import ProcessMemory, UnmaskingServer
from scenarios.simulated.secure_aggregation import enrolled, uploading_parties

HELD, ROSTER = enrolled(5)
SECOND = X25519PrivateKey.generate()
TERMS = Terms(ROSTER, second=keys.public(SECOND))
PLAN = planned(QUESTION, ROSTER, 3, 0.8, 0.0, second=TERMS.second)
PARTIES = uploading_parties(HELD, TERMS, lambda number, plan: np.full(3, number + 1, dtype=np.uint64))


def receipts(numbers=range(5)) -> tuple[AddingServer, bytes]:
    first = AddingServer(PLAN, ROSTER)
    for number in numbers:
        first.take(number, PARTIES[number].answer(PLAN.packed()))
    return first, b"".join(first.receipts())


def second() -> UnmaskingServer:
    return UnmaskingServer(SECOND, TERMS, ProcessMemory())


def test_the_masks_of_all_who_are_counted() -> None:
    first, shown = receipts()
    server = second()
    server.take(PLAN, shown)
    masks = server.masks(PLAN, first.counted())
    assert first.total(masks).values.tolist() == [15, 15, 15]
    assert (server.masks(PLAN, first.counted()) == masks).all()  # the same list again
    with pytest.raises(InputError, match="another list of parties of this sum"):
        server.masks(PLAN, b"\x1e")  # of which the difference would be one party's masks
    with pytest.raises(InputError, match="takes no more receipts"):
        server.take(PLAN, shown)


def test_false_receipts_and_those_that_come_twice() -> None:
    _, shown = receipts()
    forged = bytearray(shown)
    forged[10] ^= 1
    with pytest.raises(InputError, match="not signed"):
        second().take(PLAN, bytes(forged))
    server = second()
    server.take(PLAN, shown[: 4 + RECEIPT])
    with pytest.raises(InputError, match="twice"):
        server.take(PLAN, shown)


def test_lists_below_the_quorum_or_of_others() -> None:
    first, shown = receipts()
    server = second()
    server.take(PLAN, shown)
    with pytest.raises(QuorumError, match="3 parties are in the sum, and 4 must be"):
        server.masks(PLAN, b"\x07")
    with pytest.raises(InputError, match="not those whose receipts came"):
        server.masks(PLAN, b"\x0f")
    assert first.total(server.masks(PLAN, b"\x1f")).values.tolist() == [15, 15, 15]


def test_plans_that_its_own_configuration_does_not_allow() -> None:
    _, shown = receipts()
    with pytest.raises(InputError, match="names another second server"):
        UnmaskingServer(X25519PrivateKey.generate(), TERMS, ProcessMemory()).take(PLAN, shown)
    with pytest.raises(InputError, match="the noise would be too little"):
        second().take(replace(PLAN, contributors=4), shown)


def test_a_party_without_a_secret_harms_nobody_else() -> None:
    first = AddingServer(PLAN, ROSTER)
    for number in range(1, 5):
        first.take(number, PARTIES[number].answer(PLAN.packed()))
    vector = np.zeros(3, dtype=np.uint64)
    signature = keys.signature(HELD[0], PLAN.digest, SAYS, 0, bytes(32))
    first.take(0, Uploaded(bytes(32), vector, signature).packed())
    server = second()
    for shown in first.receipts():
        assert len(Table.read(shown, RECEIPT, PLAN, most=5).numbers) == 5
        server.take(PLAN, shown)
    assert len(server.masks(PLAN, first.counted())) == 3
