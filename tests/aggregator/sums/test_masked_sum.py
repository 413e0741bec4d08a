"""The server of a masked sum beside hostile, false and late parties."""

from __future__ import annotations

import numpy as np
import pytest
from support.masked_sums import World

from aggregator.secure_aggregation.server import MaskedSum
from federation.contract.errors import InputError, QuorumError
from federation.secure_aggregation.messages import AGREE, KEYS, MASKED, SHARES, UNMASK, Masked, Table, packed_bits

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


@pytest.mark.parametrize("query", [KEYS, MASKED])
def test_a_false_signature_leaves_its_party_out(query: int) -> None:
    world = World(11)
    server = summed(world, lambda at, answer: answer[:-1] + bytes([answer[-1] ^ 1]) if at == query else answer)
    assert "not signed by the party's key" in server.refused[BAD]
    total = server.total()
    assert total.values.tolist() == without_bad(world)
    assert np.flatnonzero(~total.counted).tolist() == [BAD]


@pytest.mark.parametrize("size", [0, 63, 64, 65])
def test_a_false_signature_on_who_is_counted_costs_a_helper_only(size: int) -> None:
    world = World(11)
    server = summed(world, lambda at, answer: bytes(size) if at == AGREE else answer)
    assert server.total().values.tolist() == world.parts.sum(axis=0).tolist()
    assert [*server.refused] == [BAD]


@pytest.mark.parametrize("size", [0, 3, 10_000])
def test_answers_of_other_sizes_leave_their_party_out(size: int) -> None:
    for query in (KEYS, SHARES, MASKED):
        world = World(5, quorum=0.8, absent=0.0)
        server = summed(world, lambda at, answer, query=query: bytes(size) if at == query else answer)
        assert server.total().values.tolist() == without_bad(world)


def test_false_shares_are_noticed_and_their_giver_is_named() -> None:
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


def test_letters_that_do_not_open_leave_their_writer_out() -> None:
    world = World(11)

    def scribble(query: int, answer: bytes) -> bytes:
        return answer[:16] + Table(*scribbled(answer[16:], world)).packed() if query == SHARES else answer

    def scribbled(data: bytes, world: World):
        table = Table.read(data, 88, world.plan)
        return table.numbers, table.cells ^ 1

    server = summed(world, scribble)
    assert server.total().values.tolist() == without_bad(world)
    assert "lack masks" in server.refused[BAD]


@pytest.mark.parametrize("adversary", ["active", "semi_honest"])
@pytest.mark.parametrize("lie", ["its check", "all letters but one"])
def test_false_shares_of_its_own_secrets_end_the_sum_and_nothing_is_known(adversary: str, lie: str) -> None:
    """A limit of one server that is declared: nobody but its giver can tell whose fault it is."""
    world = World(11, adversary)

    def deal(query: int, answer: bytes) -> bytes:
        if query != SHARES:
            return answer
        if lie == "its check":
            return bytes(16) + answer[16:]
        table = Table.read(answer[16:], 88, world.plan)
        forged = table.cells.copy()
        forged[1:] ^= 1
        return answer[:16] + Table(table.numbers, forged).packed()

    with pytest.raises(QuorumError, match="nothing is released"):
        summed(world, deal).total()


def test_a_letter_to_nobodys_neighbour_leaves_its_writer_out() -> None:
    """As one to itself: it would be kept for a neighbour that stands elsewhere."""
    world = World(11)

    def misdirect(query: int, answer: bytes) -> bytes:
        if query != SHARES:
            return answer
        table = Table.read(answer[16:], 88, world.plan)
        return answer[:16] + Table(np.array([BAD, *table.numbers[1:]]), table.cells).packed()

    server = summed(world, misdirect)
    assert server.total().values.tolist() == without_bad(world)
    assert "names a stranger" in server.refused[BAD]


def test_a_party_that_says_it_left_masks_out_is_left_out() -> None:
    world = World(11, "semi_honest")

    def deny(query: int, answer: bytes) -> bytes:
        if query != MASKED:
            return answer
        told = Masked.read(answer, world.plan)
        return Masked(told.vector, packed_bits(np.zeros(10, dtype=bool))).packed()

    server = summed(world, deny)
    assert server.total().values.tolist() == without_bad(world)


@pytest.mark.parametrize("query", [KEYS, SHARES, MASKED, AGREE])
def test_late_answers_are_unread_and_their_party_is_absent_for_the_rest(query: int) -> None:
    world = World(11)
    server = summed(world, late={(query, BAD)})
    expected = world.parts.sum(axis=0).tolist() if query == AGREE else without_bad(world)
    assert server.total().values.tolist() == expected


def test_a_second_answer_is_unread() -> None:
    world = World(11)
    server = MaskedSum(world.plan, world.roster)
    answers = dict(server.questions())
    first = world.ask(KEYS, BAD, answers[BAD])
    server.take(BAD, first)
    server.take(BAD, b"")
    for stranger in (-1, world.plan.parties):
        server.take(stranger, b"")
    assert server.refused == {}


def test_below_the_quorum_the_sum_is_over() -> None:
    world = World(11)
    server = MaskedSum(world.plan, world.roster)
    for number, question in list(server.questions())[:8]:
        server.take(number, world.ask(KEYS, number, question))
    with pytest.raises(QuorumError, match="8 parties are in the masked sum, and 9 of 11 are needed"):
        server.close()


def test_helpers_are_counted_before_anything_is_revealed() -> None:
    world = World(11)
    late, asked, ask = {(AGREE, number) for number in range(4)}, set(), world.ask
    world.ask = lambda query, *known: (asked.add(query), ask(query, *known))[1]
    with pytest.raises(QuorumError, match="fewer than 7 neighbours left"):
        summed(world, late=late)
    assert asked == {KEYS, SHARES, MASKED, AGREE}


def test_there_is_no_total_before_the_end_and_no_query_after_it() -> None:
    world = World(5, quorum=0.8, absent=0.0)
    server = MaskedSum(world.plan, world.roster)
    with pytest.raises(InputError, match="no total before"):
        server.total()
    server = summed(world)
    with pytest.raises(InputError, match="all queries"):
        server.close()
