"""Messages of a masked sum: their sizes, and what is refused.

What travels in a sum with two servers.
"""

from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from federation.contract.errors import InputError
from federation.contract.trust import TrustTerms
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.messages import (
    LETTER,
    PAIR,
    RECEIPT,
    SAYS,
    SELF,
    Counted,
    Keys,
    Letters,
    Living,
    Masked,
    Table,
    Uploaded,
    keys_width,
    mask_key,
    packed_bits,
    queries,
    receipt_width,
    unpacked_bits,
    vouched,
)
from federation.secure_aggregation.plan import KEY, Roster, planned


def plan_of(keys, absent: float, numbers: int, quorum: float = 0.8, second: bytes = b"", **terms):
    return planned("00" * 32, Roster(tuple(keys)), numbers, TrustTerms(len(keys), quorum, **terms), absent, second)


ROSTER = [number.to_bytes(KEY, "little") for number in range(11)]
PLAN, OBEYED = plan_of(ROSTER, 0.1, 6), plan_of(ROSTER, 0.1, 6, servers="one_semi_honest")


def table(width: int, numbers=(1, 5, 10)) -> Table:
    cells = np.random.default_rng(0).integers(0, 256, (len(numbers), width), dtype=np.uint8)
    return Table(np.array(numbers), cells)


def same(one: Table, other: Table) -> bool:
    return one.packed() == other.packed()


def test_messages_come_back_as_they_were() -> None:
    assert same(Table.read(table(37).packed(), 37, PLAN), table(37))
    assert [*table(37).items()] == [(n, c.tobytes()) for n, c in zip((1, 5, 10), table(37).cells, strict=True)]
    assert len(Table.read(table(37, range(10)).packed(), 37, PLAN).numbers) == 10  # all its neighbours
    keys = Keys(b"a" * 32, b"b" * 32, b"c" * 64)
    assert Keys.read(keys.packed(), PLAN) == keys
    letters = Letters.read(Letters(b"d" * 16, table(LETTER)).packed(), PLAN)
    assert letters.check == b"d" * 16
    assert same(letters.letters, table(LETTER))
    masked = Masked.read(Masked(np.arange(6, dtype=np.uint64), b"ef", b"g" * 64).packed(), PLAN)
    assert masked.vector.tolist() == [0, 1, 2, 3, 4, 5]
    assert (masked.included, masked.signature) == (b"ef", b"g" * 64)
    assert Counted.read(Counted(9, b"hi").packed(), PLAN) == Counted(9, b"hi")
    living = Living.read(Living(b"hi", table(receipt_width(PLAN))).packed(), PLAN)
    assert living.live == b"hi"
    assert same(living.receipts, table(receipt_width(PLAN)))


def test_sizes_in_bytes() -> None:
    assert (keys_width(PLAN), keys_width(OBEYED)) == (128, 64)
    assert (receipt_width(PLAN), receipt_width(OBEYED)) == (66, 2)
    assert len(Letters(b"d" * 16, table(LETTER)).packed()) == 16 + 3 * 92
    assert (len(queries(PLAN)), len(queries(OBEYED))) == (5, 4)
    assert {SELF, PAIR} == {0, 1}  # kinds of secrets
    bits = np.random.default_rng(0).random(13) < 0.5
    assert (unpacked_bits(packed_bits(bits), 13) == bits).all()


@pytest.mark.parametrize(
    "read",
    [
        lambda: Table.read(table(37).packed()[:-1], 37, PLAN),
        lambda: Table.read(table(37, (1, 1)).packed(), 37, PLAN),
        lambda: Table.read(table(37, (1, 11)).packed(), 37, PLAN),
        lambda: Table.read(table(37, range(11)).packed(), 37, PLAN),  # more than it has neighbours
        lambda: Keys.read(bytes(64), PLAN),
        lambda: Masked.read(bytes(48 + 65), PLAN),
        lambda: Counted.read(bytes(7), PLAN),
        lambda: Living.read(b"hi" + bytes(69), PLAN),
        lambda: unpacked_bits(b"abc", 11),
    ],
)
def test_other_sizes_strangers_and_twins_are_refused(read) -> None:
    with pytest.raises(InputError, match="masked sum"):
        read()


OWN = Ed25519PrivateKey.generate()
KEYS = (OWN.public_key().public_bytes_raw(), b"2" * KEY, b"3" * KEY)
PLAN_TWO_SERVERS = plan_of(KEYS, 0.0, 4, 1.0, b"s" * KEY, servers="two")


def uploaded(vector: np.ndarray) -> Uploaded:
    return Uploaded(b"e" * 32, vector, keys.signature(OWN, PLAN_TWO_SERVERS.digest, SAYS, 0, b"e" * 32))


def test_uploads_come_back_as_they_were() -> None:
    told = uploaded(np.arange(4, dtype=np.uint64))
    assert len(told.packed()) == 8 * 4 + 96
    back = Uploaded.read(told.packed(), PLAN_TWO_SERVERS)
    assert back.vector.tolist() == [0, 1, 2, 3]
    assert back.receipt == told.receipt
    assert len(told.receipt) == RECEIPT == 96
    with pytest.raises(InputError, match="not the size"):
        Uploaded.read(told.packed()[:-1], PLAN_TWO_SERVERS)


def test_receipts_and_masks_are_for_one_key_of_one_party_in_one_sum() -> None:
    told = uploaded(np.arange(4, dtype=np.uint64))
    receipt, renewed = told.receipt, replace(PLAN_TWO_SERVERS, nonce="11" * 16)
    assert vouched(receipt, 0, KEYS[0], PLAN_TWO_SERVERS)
    assert not vouched(replace(told, key=b"f" * 32).receipt, 0, KEYS[0], PLAN_TWO_SERVERS)
    for party, key, plan in ((1, KEYS[0], PLAN_TWO_SERVERS), (0, KEYS[1], PLAN_TWO_SERVERS), (0, KEYS[0], renewed)):
        assert not vouched(receipt, party, key, plan)
    found = {mask_key(bytes(32), PLAN_TWO_SERVERS, number, key) for number in (0, 1) for key in KEYS}
    assert len(found) == 6
