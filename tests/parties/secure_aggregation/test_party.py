"""A party in sums with one server and with two: once, in order, paid for, the same after a restart, no secret kept.

The second of two servers: what it refuses to tell.
"""

import hashlib
import stat
from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from support.masked_sums import QUESTION, World

from aggregator.secure_aggregation.server import AddingServer, MaskedSum
from federation.contract.errors import BudgetExceededError, InputError, QuorumError
from federation.contract.trust import TrustTerms
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.messages import (
    AGREE,
    KEYS,
    MASKED,
    RECEIPT,
    SAYS,
    SHARES,
    UNMASK,
    Table,
    Uploaded,
    mask_key,
)
from federation.secure_aggregation.plan import SumTerms, planned
from parties.secure_aggregation.party import (
    FolderMemory,
    MaskedParty,
    ProcessMemory,
    Record,
    UnmaskingServer,
    UploadingParty,
)
from scenarios.simulated.secure_aggregation import enrolled, uploading_parties

ME = 1


def five(adversary="active", **changed) -> World:
    """Five parties of whom four are a quorum."""
    return World(5, adversary, quorum=0.8, absent=0.0, **changed)


def unpaid(plan) -> None:
    raise BudgetExceededError("too much")


def refused(world: World, query: int, question: bytes, said: str | None = None) -> None:
    with pytest.raises(InputError, match=said):
        world.parties[ME].answer(world.plan.digest, query, question)


def total_with(world: World, me) -> list[int]:
    """The sum, where `me()` is party 1 at each query, asked twice."""
    server = MaskedSum(world.plan, world.roster)
    while server.query is not None:
        for number, question in server.questions():
            party = me() if number == ME else world.parties[number]
            answer = party.answer(world.plan.digest, server.query, question)
            if number == ME:
                assert me().answer(world.plan.digest, server.query, question) == answer
            server.take(number, answer)
        server.close()
    return server.total().values.tolist()


def test_a_party_killed_before_every_answer_is_counted_and_says_the_same(tmp_path) -> None:
    world, calls = five(), []

    def contribute(plan):
        calls.append("part")
        return world.parts[ME]

    def restarted() -> MaskedParty:
        memory = FolderMemory(tmp_path)
        return MaskedParty(ME, world.held[ME], world.terms, memory, contribute, lambda plan: calls.append("paid"))

    assert total_with(world, restarted) == world.parts.sum(axis=0).tolist()
    assert calls == ["part", "paid"]
    record = FolderMemory(tmp_path).load(world.plan.digest)
    assert (record.root, record.ended) == (b"", True)


def test_who_cannot_pay_sends_nothing_and_who_leaves_keeps_no_secret() -> None:
    world = five()
    world.parties[ME] = MaskedParty(
        ME, world.held[ME], world.terms, ProcessMemory(), lambda plan: np.ones(3, dtype=np.uint64), unpaid
    )
    world.honestly(SHARES)
    with pytest.raises(BudgetExceededError):
        world.parties[ME].answer(world.plan.digest, MASKED, world.letters_to(ME, [0, 2, 3, 4]))
    refused(world, MASKED, world.letters_to(ME, [0, 2, 3, 4]))
    world = five()
    world.honestly(SHARES)
    world.parties[ME].leave(world.plan.digest)
    assert world.parties[ME]._memory.load(world.plan.digest).root == b""
    assert not world.parties[ME]._running
    world.parties[ME].leave(bytes(32))  # of a sum that it does not know


@pytest.mark.parametrize("query", [AGREE, UNMASK, KEYS + 9])
def test_queries_out_of_order_end_the_sum(query: int) -> None:
    world = five()
    refused(world, SHARES, world.plan.packed())  # a sum begins with its first query
    world.honestly(KEYS)
    assert world.ask(query, ME, b"") is None
    assert world.ask(KEYS, ME, world.plan.packed()) is None


def test_queries_that_are_left_out_in_other_words_or_for_others_are_told_so() -> None:
    world = five()
    world.honestly(SHARES)
    refused(world, AGREE, world.letters_to(ME, [0, 2, 3, 4]))  # what query 2 takes, and is paid for
    world = five()
    world.honestly(MASKED)
    refused(world, MASKED, world.letters_to(ME, [0, 2, 3]))
    world = five("semi_honest")
    world.honestly(MASKED)
    assert world.ask(AGREE, ME, world.living(ME, world.live())) is None


def test_a_plan_must_be_the_one_of_its_digest_and_a_part_of_its_numbers() -> None:
    world = five()
    refused(world, KEYS, planned(QUESTION, world.roster, 3, TrustTerms(len(world.roster), 0.8), 0.0).packed())
    refused(world, KEYS, world.plan.packed() + b" ")
    more = replace(world.plan, contributors=world.plan.contributors + 1)
    two = replace(world.plan, second="11" * 32, neighbours=0, threshold=0)
    for plan in (more, two):
        with pytest.raises(InputError):
            world.parties[ME].answer(plan.digest, KEYS, plan.packed())
    world = five(contribute=lambda number, plan: np.ones(4, dtype=np.uint64))
    refused(world, KEYS, world.plan.packed(), "3")


HELD, ROSTER = enrolled(5)
SECOND = X25519PrivateKey.generate()
TERMS = SumTerms(ROSTER, TrustTerms(len(ROSTER), servers="two"), keys.public(SECOND))
PLAN = planned(QUESTION, ROSTER, 3, TrustTerms(len(ROSTER), 0.8, servers="two"), 0.0, TERMS.second)
PARTIES = uploading_parties(HELD, TERMS, lambda number, plan: np.full(3, number + 1, dtype=np.uint64))


def receipts(numbers=range(5)) -> tuple[AddingServer, bytes]:
    first = AddingServer(PLAN, ROSTER)
    for number in numbers:
        first.take(number, PARTIES[number].answer(PLAN.packed()))
    return first, b"".join(first.receipts())


def second() -> UnmaskingServer:
    return UnmaskingServer(SECOND, TERMS, ProcessMemory())


def test_the_masks_of_all_who_are_counted_and_of_no_list_below_the_quorum_or_of_others() -> None:
    first, shown = receipts()
    server = second()
    server.take(PLAN, shown)
    with pytest.raises(QuorumError, match=r"3.*4"):
        server.masks(PLAN, b"\x07")
    with pytest.raises(InputError):
        server.masks(PLAN, b"\x0f")
    masks = server.masks(PLAN, first.counted())
    assert first.total(masks).values.tolist() == [15, 15, 15]
    assert (server.masks(PLAN, first.counted()) == masks).all()  # the same list again
    with pytest.raises(InputError):
        server.masks(PLAN, b"\x1e")  # of which the difference would be one party's masks
    with pytest.raises(InputError):
        server.take(PLAN, shown)


def test_false_receipts_those_that_come_twice_and_plans_that_its_configuration_does_not_allow() -> None:
    _, shown = receipts()
    forged = bytearray(shown)
    forged[10] ^= 1
    other = UnmaskingServer(X25519PrivateKey.generate(), TERMS, ProcessMemory())
    fewer = replace(PLAN, contributors=4)
    for server, plan, told in ((second(), PLAN, bytes(forged)), (other, PLAN, shown), (second(), fewer, shown)):
        with pytest.raises(InputError):
            server.take(plan, told)
    server = second()
    server.take(PLAN, shown[: 4 + RECEIPT])
    with pytest.raises(InputError, match="twice"):
        server.take(PLAN, shown)


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


RECORD = Record(b"r" * 32, b"vector", (b"plan", b"", b"question"))
ENDED = Record(b"", b"reply", (b"asked",), ended=True)


@pytest.mark.parametrize("record", [RECORD, ENDED, Record(b"", b"", ())])
def test_records_come_back_as_they_were(record: Record) -> None:
    assert Record.read(record.packed()) == record


def test_another_process_finds_what_was_saved_last(tmp_path) -> None:
    FolderMemory(tmp_path / "sums").save(b"one", RECORD)
    FolderMemory(tmp_path / "sums").save(b"one", ENDED)
    memory = FolderMemory(tmp_path / "sums")
    assert memory.load(b"one") == ENDED
    assert memory.load(b"two") is None
    assert stat.S_IMODE((tmp_path / "sums").stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "sums").iterdir()] == [0o600]
    forgotten = ProcessMemory()
    forgotten.save(b"one", RECORD)
    assert (forgotten.load(b"one"), ProcessMemory().load(b"one")) == (RECORD, None)


def _digested(data: bytes) -> bytes:
    return data + hashlib.sha256(data).digest()


WRITTEN = RECORD.packed()[:-32]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        _digested(b""),
        _digested(b"\x01" + bytes(7) + b"2" + WRITTEN[9:]),
        *(
            RECORD.packed()[:at] + bytes([RECORD.packed()[at] ^ 1]) + RECORD.packed()[at + 1 :]
            for at in (0, 8, 60, -33)
        ),
    ],
)
def test_damaged_records_are_refused(data: bytes, tmp_path) -> None:
    memory = FolderMemory(tmp_path)
    memory.save(b"one", RECORD)
    next(tmp_path.iterdir()).write_bytes(data)
    with pytest.raises(InputError):
        memory.load(b"one")


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


def test_every_sum_has_a_fresh_mask_and_a_second_server_whose_key_gives_nothing_secret_gets_nothing() -> None:
    one = party(ProcessMemory())
    other = replace(PLAN, nonce="22" * 16)
    vectors = [Uploaded.read(one.answer(plan.packed()), plan).vector for plan in (PLAN, other)]
    assert (vectors[0] != vectors[1]).all()
    terms, plan = SumTerms(ROSTER, TrustTerms(len(ROSTER), servers="two"), bytes(32)), replace(PLAN, second="00" * 32)
    with pytest.raises(InputError):
        UploadingParty(1, HELD[1], terms, ProcessMemory(), lambda plan: PART).answer(plan.packed())
    memory = ProcessMemory()
    with pytest.raises(BudgetExceededError):
        party(memory, unpaid).answer(PLAN.packed())
    assert memory.load(PLAN.digest) is None


def test_what_a_sum_with_one_server_keeps_is_not_sent() -> None:
    """Its record has the part without a mask, by the digest of its plan."""
    memory, plan = ProcessMemory(), planned(QUESTION, ROSTER, 3, TrustTerms(len(ROSTER), 0.8), 0.0)
    MaskedParty(1, HELD[1], SumTerms(ROSTER, TrustTerms(len(ROSTER))), memory, lambda plan: PART).answer(
        plan.digest, KEYS, plan.packed()
    )
    assert memory.load(plan.digest).vector == PART.tobytes()
    with pytest.raises(InputError):
        party(memory).answer(plan.packed())


@pytest.mark.parametrize(
    "plan",
    [
        replace(PLAN, second="11" * 32),
        replace(PLAN, contributors=4),
        planned(QUESTION, ROSTER, 3, TrustTerms(len(ROSTER), 0.8), 0.0),
    ],
)
def test_other_plans_are_refused(plan) -> None:
    with pytest.raises(InputError):
        party(ProcessMemory()).answer(plan.packed())
    with pytest.raises(InputError):
        party(ProcessMemory()).answer(PLAN.packed() + b" ")
