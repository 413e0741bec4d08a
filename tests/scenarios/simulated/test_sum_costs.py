"""The counts of operations and bytes are those of sums that are really run."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from support.masked_sums import QUESTION

from aggregator.secure_aggregation.server import AddingServer, MaskedSum
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation import masks as shamir
from federation.secure_aggregation import messages as two_servers
from federation.secure_aggregation.messages import MASKED
from federation.secure_aggregation.plan import Terms, planned
from parties.secure_aggregation.party import ProcessMemory, UnmaskingServer
from scenarios.simulated.secure_aggregation import (
    DERIVE,
    EXCHANGE,
    OPEN,
    PUBLIC,
    RECOVER,
    SEAL,
    SIGN,
    SPLIT,
    STREAM,
    VERIFY,
    enrolled,
    masked_parties,
    seconds,
    sum_costs,
    timed,
    uploading_parties,
)

OPERATIONS = {
    "shared": EXCHANGE,
    "public": PUBLIC,
    "signature": SIGN,
    "signed": VERIFY,
    "derived": DERIVE,
    "sealed": SEAL,
    "opened": OPEN,
    "stream": STREAM,
}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter:
    """Calls of primitive operations, wherever they are called from."""
    found: Counter = Counter()

    def counting(call, name: str):
        def counts(*given, **named):
            found[name] += 1
            return call(*given, **named)

        return counts

    for function, name in OPERATIONS.items():
        monkeypatch.setattr(keys, function, counting(getattr(keys, function), name))
    for function in ("derived", "signed"):
        monkeypatch.setattr(two_servers, function, getattr(keys, function))
    split, recovered = shamir.split, shamir.recovered
    monkeypatch.setattr(shamir, "split", counting(split, SPLIT))

    def recovering(shares, places):
        found[RECOVER] += len(places)
        return recovered(shares, places)

    monkeypatch.setattr(shamir, "recovered", recovering)
    return found


@pytest.mark.parametrize("adversary", ["active", "semi_honest"])
def test_one_server(adversary: str, counted: Counter) -> None:
    parties, gone = 12, 3
    held, roster = enrolled(parties)
    terms = Terms(roster, adversary=adversary)
    plan = planned(QUESTION, roster, 7, 0.6, 0.25, adversary=adversary)
    own = masked_parties(held, terms, lambda number, plan: np.zeros(7))
    server = MaskedSum(plan, roster)
    counted.clear()
    stays, up, down = Counter(), 0, 0
    while server.query is not None:
        for number, question in server.questions():
            if server.query >= MASKED and number < gone:
                continue
            before = Counter(counted)
            answer = own[number].answer(plan.digest, server.query, question)
            if number == parties - 1:
                stays += counted - before
                up, down = up + len(answer), down + len(question)
            counted.clear()
            counted.update(before)
            server.take(number, answer)
        server.close()
    server.total()
    counted[STREAM] -= plan.neighbours < parties - 1  # the ring's
    costs = sum_costs(plan, gone / (parties - 1))
    live = parties - 1 - gone  # of the neighbours of one who stays
    agreed = {} if adversary == "semi_honest" else {VERIFY: plan.neighbours + live + plan.threshold}
    assert {name: stays[name] for name in costs.party} == pytest.approx({**costs.party, **agreed})
    assert (up, down) == (costs.up, pytest.approx(costs.down))
    per_party = sum_costs(plan, gone / parties).server
    pairs = gone * (parties - gone)  # of a party that is gone and one that stays; the formula has k for K - 1
    exact = {EXCHANGE: pairs, DERIVE: pairs, STREAM: parties - gone + pairs}
    for name in counted:
        assert counted[name] == pytest.approx(exact.get(name, parties * per_party.get(name, 0.0)))


def test_two_servers(counted: Counter) -> None:
    held, roster = enrolled(5)
    key = X25519PrivateKey.generate()
    terms = Terms(roster, second=keys.public(key))
    plan = planned(QUESTION, roster, 7, 0.8, 0.0, second=terms.second)
    costs = sum_costs(plan, 0.0)
    own = uploading_parties(held, terms, lambda number, plan: np.zeros(7))
    counted.clear()
    answers = [party.answer(plan.packed()) for party in own]
    assert {name: 5 * count for name, count in costs.party.items()} == counted
    assert len(answers[0]) == costs.up
    first, second = AddingServer(plan, roster), UnmaskingServer(key, terms, ProcessMemory())
    counted.clear()
    for number, answer in enumerate(answers):
        first.take(number, answer)
    assert counted == {VERIFY: 5}
    counted.clear()
    shown = b"".join(first.receipts())
    second.take(plan, shown)
    counted[PUBLIC] -= 1  # its own, to compare it with the plan's
    assert +counted == {name: 5 * count for name, count in costs.second.items()}
    assert len(shown) == 5 * costs.across


def test_seconds_are_products() -> None:
    _, roster = enrolled(3)
    plan = planned(QUESTION, roster, 7, 1.0, 0.0)
    times = timed(plan)
    assert all(0 < time < 1 for time in times.values())
    assert set(sum_costs(plan, 0.0).party) <= set(times)
    assert seconds({SIGN: 2, VERIFY: 3}, {SIGN: 0.5, VERIFY: 1.0, PUBLIC: 9.0}) == 4.0
