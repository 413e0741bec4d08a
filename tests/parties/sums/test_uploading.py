"""A party in sums with two servers: one answer, paid for, and no secret kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from support.masked_sums import QUESTION

from federation.contract.errors import BudgetExceededError, InputError
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.messages import KEYS, Uploaded, mask_key
from federation.secure_aggregation.plan import Terms, planned
from parties.secure_aggregation.party import FolderMemory, MaskedParty, ProcessMemory, UploadingParty
from scenarios.simulated.secure_aggregation import enrolled

HELD, ROSTER = enrolled(5)
SECOND = X25519PrivateKey.generate()
TERMS = Terms(ROSTER, second=keys.public(SECOND))
PLAN = planned(QUESTION, ROSTER, 3, 0.8, 0.0, second=TERMS.second)
PART = np.array([1, 2, 3], dtype=np.uint64)


def party(memory, pay=lambda plan: None, part=PART) -> UploadingParty:
    return UploadingParty(1, HELD[1], TERMS, memory, lambda plan: part, pay)


def test_the_second_server_finds_the_mask_and_the_party_keeps_nothing(tmp_path) -> None:
    answer = party(FolderMemory(tmp_path)).answer(PLAN.packed())
    told = Uploaded.read(answer, PLAN)
    common = keys.shared(SECOND, told.key)
    mask = keys.stream(mask_key(common, PLAN, 1, told.key), 3)
    assert (told.vector - mask).tolist() == [1, 2, 3]
    assert party(FolderMemory(tmp_path), part=2 * PART).answer(PLAN.packed()) == answer  # after a restart
    assert FolderMemory(tmp_path).load(PLAN.digest).root == b""


def test_every_sum_has_a_fresh_mask() -> None:
    one = party(ProcessMemory())
    other = replace(PLAN, nonce="22" * 16)
    vectors = [Uploaded.read(one.answer(plan.packed()), plan).vector for plan in (PLAN, other)]
    assert (vectors[0] != vectors[1]).all()


def test_what_a_sum_with_one_server_keeps_is_not_sent() -> None:
    """Its record has the part without a mask, by the digest of its plan."""
    memory, plan = ProcessMemory(), planned(QUESTION, ROSTER, 3, 0.8, 0.0)
    MaskedParty(1, HELD[1], Terms(ROSTER), memory, lambda plan: PART).answer(plan.digest, KEYS, plan.packed())
    assert memory.load(plan.digest).vector == PART.tobytes()
    with pytest.raises(InputError, match="has no second server"):
        party(memory).answer(plan.packed())


def test_who_cannot_pay_sends_nothing() -> None:
    def refuse(plan) -> None:
        raise BudgetExceededError("too much")

    memory = ProcessMemory()
    with pytest.raises(BudgetExceededError):
        party(memory, refuse).answer(PLAN.packed())
    assert memory.load(PLAN.digest) is None


def test_a_second_server_whose_key_gives_nothing_secret_gets_nothing() -> None:
    terms, plan = Terms(ROSTER, second=bytes(32)), replace(PLAN, second="00" * 32)
    with pytest.raises(InputError, match="second server's key gives nothing secret"):
        UploadingParty(1, HELD[1], terms, ProcessMemory(), lambda plan: PART).answer(plan.packed())


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (replace(PLAN, second="11" * 32), "another kind of server"),
        (replace(PLAN, contributors=4), "the noise would be too little"),
        (planned(QUESTION, ROSTER, 3, 0.8, 0.0), "has no second server"),
    ],
)
def test_other_plans_are_refused(plan, said: str) -> None:
    with pytest.raises(InputError, match=said):
        party(ProcessMemory()).answer(plan.packed())
    with pytest.raises(InputError, match="as it was packed"):
        party(ProcessMemory()).answer(PLAN.packed() + b" ")
