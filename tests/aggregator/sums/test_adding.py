"""The first of two servers."""

from __future__ import annotations

import numpy as np
import pytest
from support.masked_sums import QUESTION

from aggregator.secure_aggregation.server import AddingServer
from federation.contract.errors import QuorumError
from federation.secure_aggregation.messages import KEYS, RECEIPT, Table
from federation.secure_aggregation.plan import Terms, planned
from scenarios.simulated.secure_aggregation import enrolled, uploading_parties

HELD, ROSTER = enrolled(5)
TERMS = Terms(ROSTER, second=b"s" * 32)
PLAN = planned(QUESTION, ROSTER, 3, 0.8, 0.0, second=TERMS.second)
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


def test_an_upload_of_another_size_or_party_is_refused() -> None:
    server = AddingServer(PLAN, ROSTER)
    server.take(0, b"")
    server.take(1, PARTIES[2].answer(PLAN.packed()))
    assert "size" in server.refused[0]
    assert "not signed" in server.refused[1]


def test_below_the_quorum_nobody_is_shown_to_the_second_server() -> None:
    server = AddingServer(PLAN, ROSTER)
    for number in (0, 1, 2):
        server.take(number, PARTIES[number].answer(PLAN.packed()))
    with pytest.raises(QuorumError, match="3 parties are in the masked sum, and 4 of 5 are needed"):
        server.counted()


def test_its_one_query_is_closed_by_a_quorum() -> None:
    server = AddingServer(PLAN, ROSTER)
    assert [*server.questions()] == [(number, PLAN.packed()) for number in range(5)]
    for number, party in enumerate(PARTIES):
        if number == PLAN.least:
            break
        with pytest.raises(QuorumError):
            server.close()
        assert server.query == KEYS
        server.take(number, party.answer(PLAN.packed()))
    server.close()
    assert server.query is None
