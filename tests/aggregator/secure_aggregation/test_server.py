"""The server of a masked sum beside hostile, false and late parties.

The first of two servers. Secrets recovered from shares, some of them false, and what masks are left.
"""

import secrets

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from support.masked_sums import QUESTION, World

from aggregator.secure_aggregation.server import AddingServer, MaskedSum, Revealed, remaining_masks
from federation.contract.errors import InputError, QuorumError
from federation.contract.trust import TrustTerms
from federation.secure_aggregation import masks
from federation.secure_aggregation.messages import (
    AGREE,
    KEYS,
    MASKED,
    PAIR,
    RECEIPT,
    SELF,
    UNMASK,
    Masked,
    Table,
    as_cells,
    packed_bits,
)
from federation.secure_aggregation.messages import SHARES as MESSAGES_SHARES
from federation.secure_aggregation.plan import KEY, Roster, SumTerms, neighbours, planned
from scenarios.simulated.secure_aggregation import enrolled, uploading_parties

BAD = 2


def summed(world: World, changed=lambda query, answer: answer, late=()):
    """The server after all queries, where what party 2 says is changed."""
    server = MaskedSum(world.plan, world.roster)
    while server.query is not None:
        kept = []
        for number, question in server.questions():
            answer = world.ask(server.query, number, question)
            if number == BAD and answer is not None:
                answer = changed(server.query, answer)
            if answer is not None and (server.query, number) not in late:
                server.take(number, answer)
            elif answer is not None:
                kept.append((number, answer))
        server.close()
        for number, answer in kept:
            if server.query is not None:
                server.take(number, answer)
    return server


def without_bad(world: World) -> list[int]:
    return np.delete(world.parts, BAD, axis=0).sum(axis=0).tolist()


@pytest.mark.parametrize("size", [0, 63, 64, 65])
def test_a_false_signature_on_who_is_counted_costs_a_helper_only(size: int) -> None:
    world = World(11)
    server = summed(world, lambda at, answer: bytes(size) if at == AGREE else answer)
    assert server.total().values.tolist() == world.parts.sum(axis=0).tolist()
    assert [*server.refused] == [BAD]


@pytest.mark.parametrize("size", [0, 3, 10_000])
def test_answers_of_other_sizes_leave_their_party_out(size: int) -> None:
    for query in (KEYS, MESSAGES_SHARES, MASKED):
        world = World(5, quorum=0.8, absent=0.0)
        server = summed(world, lambda at, answer, query=query: bytes(size) if at == query else answer)
        assert server.total().values.tolist() == without_bad(world)


def test_false_shares_are_noticed_and_one_who_lied_to_a_neighbour_is_believed_by_no_other():
    world = World(11)

    def lie(query: int, answer: bytes) -> bytes:
        if query != UNMASK:
            return answer
        table = Table.read(answer, 37, world.plan)
        forged = table.cells.copy()
        forged[:, 5] ^= 1
        return Table(table.numbers, forged).packed()

    server = summed(world, lie)
    assert server.total().values.tolist() == world.parts.sum(axis=0).tolist()
    assert server.refused == {BAD: "it revealed false shares of its neighbours' secrets"}
    # One share to spare is enough to find a liar; those of the next party are then taken from the others alone.
    two, givers = np.isin(np.arange(PARTIES_RECOVERY), [0, 1]), [2, 3, 4, 5, 6, 7]
    found = revealed(SELF, liars=[3], givers=givers, owners=[0, 1])
    assert found.recovered(two, NOBODY, CHECKS, PUBLIC)[0] == {0: SECRETS[0], 1: SECRETS[1]}
    assert found.liars == {3}
    checks = CHECKS.copy()
    checks[3] ^= 1
    with pytest.raises(QuorumError, match="3"):
        revealed(SELF).recovered(ALL, NOBODY, checks, PUBLIC)
    with pytest.raises(InputError):
        Revealed(PLAN_RECOVERY, AROUND).take(3, Table(np.array([3]), as_cells([bytes(37)], 37)).packed())


def letters(answer: bytes, world: World) -> Table:
    return Table.read(answer[16:], 88, world.plan)


def forged(answer: bytes, world: World) -> bytes:
    return answer[:-1] + bytes([answer[-1] ^ 1])


def scribbled(answer: bytes, world: World) -> bytes:
    table = letters(answer, world)
    return answer[:16] + Table(table.numbers, table.cells ^ 1).packed()


def misdirected(answer: bytes, world: World) -> bytes:
    """Write to itself: the letter would be kept for a neighbour that stands elsewhere."""
    table = letters(answer, world)
    return answer[:16] + Table(np.array([BAD, *table.numbers[1:]]), table.cells).packed()


def denied(answer: bytes, world: World) -> bytes:
    """Say that all masks were left out."""
    return Masked(Masked.read(answer, world.plan).vector, packed_bits(np.zeros(10, dtype=bool))).packed()


@pytest.mark.parametrize(("query", "lie", "adversary", "said"), [
    *((query, forged, "active", "not signed by the party's key") for query in (KEYS, MASKED)),
    (MESSAGES_SHARES, scribbled, "active", "lack masks"),
    (MESSAGES_SHARES, misdirected, "active", "names a stranger"),
    (MASKED, denied, "semi_honest", ""),
])  # fmt: skip
def test_who_signs_falsely_writes_false_letters_or_denies_its_masks_is_left_out(query, lie, adversary, said) -> None:
    world = World(11, adversary)
    server = summed(world, lambda at, answer: lie(answer, world) if at == query else answer)
    total = server.total()
    assert total.values.tolist() == without_bad(world)
    assert np.flatnonzero(~total.counted).tolist() == [BAD]
    assert said in server.refused.get(BAD, "")


@pytest.mark.parametrize("adversary", ["active", pytest.param("semi_honest", marks=pytest.mark.slow)])
@pytest.mark.parametrize("lie", ["its check", "all letters but one"])
def test_false_shares_of_its_own_secrets_end_the_sum_and_nothing_is_known(adversary: str, lie: str) -> None:
    """A limit of one server that is declared: nobody but its giver can tell whose fault it is."""
    world = World(11, adversary)

    def deal(query: int, answer: bytes) -> bytes:
        if query != MESSAGES_SHARES:
            return answer
        if lie == "its check":
            return bytes(16) + answer[16:]
        table = letters(answer, world)
        forged = table.cells.copy()
        forged[1:] ^= 1
        return answer[:16] + Table(table.numbers, forged).packed()

    with pytest.raises(QuorumError):
        summed(world, deal).total()


@pytest.mark.parametrize("query", [KEYS, MESSAGES_SHARES, MASKED, AGREE])
def test_late_answers_are_unread_and_their_party_is_absent_for_the_rest(query: int) -> None:
    world = World(11)
    server = summed(world, late={(query, BAD)})
    expected = world.parts.sum(axis=0).tolist() if query == AGREE else without_bad(world)
    assert server.total().values.tolist() == expected


def test_second_answers_are_unread_and_there_is_no_total_before_the_end_and_no_query_after_it():
    world = World(11)
    server = MaskedSum(world.plan, world.roster)
    answers = dict(server.questions())
    first = world.ask(KEYS, BAD, answers[BAD])
    server.take(BAD, first)
    server.take(BAD, b"")
    for stranger in (-1, world.plan.parties):
        server.take(stranger, b"")
    assert server.refused == {}
    world = World(5, quorum=0.8, absent=0.0)
    server = MaskedSum(world.plan, world.roster)
    with pytest.raises(InputError):
        server.total()
    server = summed(world)
    with pytest.raises(InputError):
        server.close()


def test_below_the_quorum_or_without_a_share_to_spare_for_a_false_one_the_sum_is_over():
    world = World(11)
    server = MaskedSum(world.plan, world.roster)
    for number, question in list(server.questions())[:8]:
        server.take(number, world.ask(KEYS, number, question))
    with pytest.raises(QuorumError, match=r"8.*9.*11"):
        server.close()
    world = World(11)
    late, asked, ask = {(AGREE, number) for number in range(4)}, set(), world.ask
    world.ask = lambda query, *known: (asked.add(query), ask(query, *known))[1]
    with pytest.raises(QuorumError, match="7"):
        summed(world, late=late)
    assert asked == {KEYS, MESSAGES_SHARES, MASKED, AGREE}
    enough = revealed(SELF, givers=range(1, 6), owners=[0])
    assert enough.recovered(ONLY, NOBODY, CHECKS, PUBLIC)[0] == {0: SECRETS[0]}
    found = revealed(SELF, liars=[1], givers=range(1, 6), owners=[0])
    with pytest.raises(QuorumError):
        found.recovered(ONLY, NOBODY, CHECKS, PUBLIC)
    assert found.liars == set()
    with pytest.raises(QuorumError):
        revealed(SELF, givers=range(1, 5), owners=[0]).recovered(ONLY, NOBODY, CHECKS, PUBLIC)
    with pytest.raises(QuorumError):  # shares of the other kind
        revealed(PAIR, owners=[0]).recovered(ONLY, NOBODY, CHECKS, PUBLIC)
    with pytest.raises(QuorumError):
        revealed(PAIR, givers=range(1, 5), owners=[0]).recovered(NOBODY, ONLY, CHECKS, PUBLIC)


HELD, ROSTER = enrolled(5)
TERMS = SumTerms(ROSTER, TrustTerms(len(ROSTER), servers="two"), b"s" * 32)
PLAN = planned(QUESTION, ROSTER, 3, TrustTerms(len(ROSTER), 0.8, servers="two"), 0.0, TERMS.second)
PARTIES = uploading_parties(HELD, TERMS, lambda number, plan: np.full(3, number, dtype=np.uint64))


def test_false_uploads_are_left_out_and_second_ones_unread() -> None:
    server = AddingServer(PLAN, ROSTER)
    for number, party in enumerate(PARTIES):
        answer = party.answer(PLAN.packed())
        server.take(number, answer if number else bytes([answer[0] ^ 1]) + answer[1:])
    server.take(1, b"again")
    for stranger in (-1, PLAN.parties):
        server.take(stranger, b"a stranger")
    assert "not signed" in server.refused[0]
    assert len(server.refused) == 1
    assert server.counted() == b"\x1e"
    (receipts,) = server.receipts()
    assert Table.read(receipts, RECEIPT, PLAN, most=5).numbers.tolist() == [1, 2, 3, 4]
    server = AddingServer(PLAN, ROSTER)
    server.take(0, b"")
    server.take(1, PARTIES[2].answer(PLAN.packed()))
    assert "size" in server.refused[0]
    assert "not signed" in server.refused[1]


def test_its_one_query_is_closed_by_a_quorum_and_below_nobody_is_shown_to_the_second_server() -> None:
    server = AddingServer(PLAN, ROSTER)
    assert [*server.questions()] == [(number, PLAN.packed()) for number in range(5)]
    for number, party in enumerate(PARTIES[: PLAN.least]):
        with pytest.raises(QuorumError):
            server.close()
        with pytest.raises(QuorumError, match=rf"{number}.*4.*5"):
            server.counted()
        assert server.query == KEYS
        server.take(number, party.answer(PLAN.packed()))
    server.close()
    assert server.query is None


PARTIES_RECOVERY = 9
NINE = Roster(tuple(bytes([n]) * KEY for n in range(PARTIES_RECOVERY)))
PLAN_RECOVERY = planned("00" * 32, NINE, 4, TrustTerms(PARTIES_RECOVERY, 0.8), 0.0)
AROUND = neighbours(PLAN_RECOVERY, np.arange(PARTIES_RECOVERY))
SECRETS = [secrets.token_bytes(32) for _ in range(PARTIES_RECOVERY)]
SHARES = [masks.split([one], PLAN_RECOVERY.threshold, 8, secrets.token_bytes(32))[0] for one in SECRETS]
CHECKS = as_cells([masks.check_of(one) for one in SECRETS], 16)
PUBLIC = as_cells([bytes(32) + masks.public(X25519PrivateKey.from_private_bytes(one)) for one in SECRETS], 64)
NOBODY, ALL = np.zeros(PARTIES_RECOVERY, dtype=bool), np.ones(PARTIES_RECOVERY, dtype=bool)
ONLY = np.arange(PARTIES_RECOVERY) == 0


def revealed(kind: int, liars=(), givers=range(PARTIES_RECOVERY), owners=range(PARTIES_RECOVERY)) -> Revealed:
    found = Revealed(PLAN_RECOVERY, AROUND)
    for giver in givers:
        near = [owner for owner in owners if owner != giver]
        cells = []
        for owner in near:
            share = SHARES[owner][AROUND[owner].tolist().index(giver)].tobytes()
            cells.append(bytes([kind]) + (bytes(36) if giver in liars else share))
        found.take(giver, Table(np.array(near), as_cells(cells, 37)).packed())
    return found


def test_both_kinds_are_recovered(monkeypatch) -> None:
    monkeypatch.delattr(Revealed, "_mended")  # true shares need none of it
    assert PLAN_RECOVERY.threshold == 5
    assert revealed(SELF).recovered(ALL, NOBODY, CHECKS, PUBLIC) == (dict(enumerate(SECRETS)), {})
    assert revealed(PAIR).recovered(NOBODY, ALL, CHECKS, PUBLIC) == ({}, dict(enumerate(SECRETS)))


@pytest.mark.parametrize("liar", [0, 3, 8])
def test_one_liar_is_found(liar: int) -> None:
    found = revealed(SELF, liars=[liar])
    assert found.recovered(ALL, NOBODY, CHECKS, PUBLIC)[0] == dict(enumerate(SECRETS))
    assert found.liars == {liar}
    found = revealed(PAIR, liars=[liar])
    assert found.recovered(NOBODY, ALL, CHECKS, PUBLIC)[1] == dict(enumerate(SECRETS))


@pytest.mark.parametrize("liars", [[1, 2], [2, 7, 4], [AROUND[0][1], AROUND[0][PLAN_RECOVERY.threshold + 1]]])
def test_several_liars_are_found(liars: list[int]) -> None:
    """Three of eight are false at most, and five must be true; of the last two, one share is not needed."""
    found = revealed(SELF, liars=liars, owners=[0])
    assert found.recovered(ONLY, NOBODY, CHECKS, PUBLIC)[0] == {0: SECRETS[0]}
    assert found.liars == set(liars)


def test_masks_of_one_absent_party_and_of_a_key_that_gives_nothing_secret():
    live = np.arange(PARTIES_RECOVERY) != 4
    included = np.ones((PARTIES_RECOVERY, 8), dtype=bool)
    included[6, AROUND[6] == 4] = False  # party 6 has left its mask with party 4 out
    left = remaining_masks(PLAN_RECOVERY, {0: SECRETS[0]}, {4: SECRETS[4]}, live, included, AROUND, PUBLIC)
    wanted = masks.stream(SECRETS[0], 4).copy()
    for other in (0, 1, 2, 3, 5, 7, 8):
        key = X25519PrivateKey.from_private_bytes(SECRETS[other])
        shared = masks.shared(key, PUBLIC[4, 32:].tobytes())
        mask = masks.stream(masks.mask_key(shared, PLAN_RECOVERY.digest, other, 4), 4)
        wanted = wanted + mask if other < 4 else wanted - mask
    assert (left == wanted).all()
    # A counted party may say so of itself, to have the last step fail.
    public = PUBLIC.copy()
    public[0, 32:] = 0
    included = np.ones((PARTIES_RECOVERY, 8), dtype=bool)
    with pytest.raises(InputError):
        remaining_masks(PLAN_RECOVERY, {}, {4: SECRETS[4]}, np.arange(PARTIES_RECOVERY) != 4, included, AROUND, public)
