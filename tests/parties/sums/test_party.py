"""A party in masked sums: once, in order, paid for, and the same after a restart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.masked_sums import QUESTION, World

from aggregator.secure_aggregation.server import MaskedSum
from federation.contract.errors import BudgetExceededError, InputError
from federation.secure_aggregation.messages import AGREE, KEYS, MASKED, SHARES, UNMASK
from federation.secure_aggregation.plan import planned
from parties.secure_aggregation.party import FolderMemory, MaskedParty, ProcessMemory

ME = 1


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
    world, calls = World(5, quorum=0.8, absent=0.0), []

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


def test_who_cannot_pay_sends_nothing() -> None:
    world = World(5, quorum=0.8, absent=0.0)

    def refuse(plan) -> None:
        raise BudgetExceededError("too much")

    world.parties[ME] = MaskedParty(
        ME, world.held[ME], world.terms, ProcessMemory(), lambda plan: np.ones(3, dtype=np.uint64), refuse
    )
    world.honestly(SHARES)
    with pytest.raises(BudgetExceededError):
        world.parties[ME].answer(world.plan.digest, MASKED, world.letters_to(ME, [0, 2, 3, 4]))
    with pytest.raises(InputError, match="is over"):
        world.parties[ME].answer(world.plan.digest, MASKED, world.letters_to(ME, [0, 2, 3, 4]))


@pytest.mark.parametrize("query", [AGREE, UNMASK, KEYS + 9])
def test_queries_out_of_order_end_the_sum(query: int) -> None:
    world = World(5, quorum=0.8, absent=0.0)
    world.honestly(KEYS)
    assert world.ask(query, ME, b"") is None
    assert world.ask(KEYS, ME, world.plan.packed()) is None


def test_a_query_that_is_left_out_or_asked_in_other_words_is_told_so() -> None:
    world = World(5, quorum=0.8, absent=0.0)
    world.honestly(SHARES)
    unpaid = world.letters_to(ME, [0, 2, 3, 4])  # what query 2 takes, and is paid for
    with pytest.raises(InputError, match="each query once and in order"):
        world.parties[ME].answer(world.plan.digest, AGREE, unpaid)
    world = World(5, quorum=0.8, absent=0.0)
    world.honestly(MASKED)
    with pytest.raises(InputError, match="each query once and in order"):
        world.parties[ME].answer(world.plan.digest, MASKED, world.letters_to(ME, [0, 2, 3]))


def test_a_sum_begins_with_its_first_query() -> None:
    world = World(5, quorum=0.8, absent=0.0)
    with pytest.raises(InputError, match="knows nothing of this sum"):
        world.parties[ME].answer(world.plan.digest, SHARES, world.plan.packed())


def test_the_third_query_is_not_asked_of_who_trusts_the_server() -> None:
    world = World(5, "semi_honest", quorum=0.8, absent=0.0)
    world.honestly(MASKED)
    assert world.ask(AGREE, ME, world.living(ME, world.live())) is None


def test_a_plan_must_be_the_one_of_its_digest() -> None:
    world = World(5, quorum=0.8, absent=0.0)
    other = planned(QUESTION, world.roster, 3, 0.8, 0.0)
    with pytest.raises(InputError, match="another digest"):
        world.parties[ME].answer(world.plan.digest, KEYS, other.packed())
    with pytest.raises(InputError, match="another digest"):
        world.parties[ME].answer(world.plan.digest, KEYS, world.plan.packed() + b" ")
    fewer = replace(world.plan, contributors=world.plan.contributors + 1)
    with pytest.raises(InputError, match="the noise would be too little"):
        world.parties[ME].answer(fewer.digest, KEYS, fewer.packed())
    two = replace(world.plan, second="11" * 32, neighbours=0, threshold=0)
    with pytest.raises(InputError, match="second server"):
        world.parties[ME].answer(two.digest, KEYS, two.packed())


def test_a_part_must_be_integers_of_the_planned_number() -> None:
    world = World(5, quorum=0.8, absent=0.0, contribute=lambda number, plan: np.ones(4, dtype=np.uint64))
    with pytest.raises(InputError, match="must be 3 whole numbers"):
        world.parties[ME].answer(world.plan.digest, KEYS, world.plan.packed())


def test_who_leaves_keeps_no_secret() -> None:
    world = World(5, quorum=0.8, absent=0.0)
    world.honestly(SHARES)
    world.parties[ME].leave(world.plan.digest)
    assert world.parties[ME]._memory.load(world.plan.digest).root == b""
    assert not world.parties[ME]._running
    world.parties[ME].leave(bytes(32))  # of a sum that it does not know
