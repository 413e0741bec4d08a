"""What travels in a sum with two servers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from federation.contract.errors import InputError
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.messages import RECEIPT, SAYS, Uploaded, mask_key, vouched
from federation.secure_aggregation.plan import KEY, Roster, planned

OWN = Ed25519PrivateKey.generate()
KEYS = (OWN.public_key().public_bytes_raw(), b"2" * KEY, b"3" * KEY)
PLAN = planned("00" * 32, Roster(KEYS), 4, quorum=1.0, absent=0.0, second=b"s" * KEY)


def uploaded(vector: np.ndarray) -> Uploaded:
    return Uploaded(b"e" * 32, vector, keys.signature(OWN, PLAN.digest, SAYS, 0, b"e" * 32))


def test_uploads_come_back_as_they_were() -> None:
    told = uploaded(np.arange(4, dtype=np.uint64))
    assert len(told.packed()) == 8 * 4 + 96
    back = Uploaded.read(told.packed(), PLAN)
    assert back.vector.tolist() == [0, 1, 2, 3]
    assert back.receipt == told.receipt
    assert len(told.receipt) == RECEIPT == 96
    with pytest.raises(InputError, match="not the size"):
        Uploaded.read(told.packed()[:-1], PLAN)


def test_a_receipt_is_for_one_key_of_one_party_in_one_sum() -> None:
    told = uploaded(np.arange(4, dtype=np.uint64))
    assert vouched(told.receipt, 0, KEYS[0], PLAN)
    assert not vouched(replace(told, key=b"f" * 32).receipt, 0, KEYS[0], PLAN)
    assert not vouched(told.receipt, 1, KEYS[0], PLAN)
    assert not vouched(told.receipt, 0, KEYS[1], PLAN)
    assert not vouched(told.receipt, 0, KEYS[0], replace(PLAN, nonce="11" * 16))


def test_masks_are_of_one_party_and_key() -> None:
    found = {mask_key(bytes(32), PLAN, number, key) for number in (0, 1) for key in KEYS}
    assert len(found) == 6
