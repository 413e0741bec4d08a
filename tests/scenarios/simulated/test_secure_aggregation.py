"""Totals of masked sums are the plain sums, exactly, whoever stays away when; beyond the plan there is none.

Shares of many parties are added in clear with the same totals, and costs are those of sums that are really run.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.masked_sums import QUESTION, SERVERS, parts

from aggregator.secure_aggregation.server import AddingServer, MaskedSum
from federation.contract.errors import InputError, QuorumError
from federation.contract.plugins import Reference
from federation.contract.randomness import NoiseBits
from federation.contract.trust import Servers, TrustTerms
from federation.mechanisms.noise.additive import AdditiveMechanism, calibrate, calibrate_laplace
from federation.mechanisms.sums import shares
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation import messages as two_servers
from federation.secure_aggregation.plan import SumPlan, SumTerms, planned
from parties.secure_aggregation.party import ProcessMemory, UnmaskingServer
from scenarios.simulated import secure_aggregation as simulated

NEVER = 5  # no query has this number


def begun(parties: int, servers: Servers, numbers: int, quorum: float, absent: float = 0.0, second: bytes = b""):
    """The keys of so many parties, the terms of their sum, and a plan of it."""
    held, roster = simulated.enrolled(parties)
    terms = SumTerms(roster, TrustTerms(parties, quorum, servers=servers), second)
    return held, terms, planned(QUESTION, roster, numbers, terms.trust, absent, second)


def outcome(plan: SumPlan, values: np.ndarray, held, terms: SumTerms, stages: Sequence[int]):
    """The total and who is counted, if party u is silent from query `stages[u]` on; None without a total."""
    parties = simulated.masked_parties(held, terms, lambda number, plan: values[number])
    silent = {query: [number for number, stage in enumerate(stages) if stage == query] for query in range(5)}
    try:
        found = simulated.masked_total(plan, terms, parties, silent)
    except QuorumError:
        return None
    return found.values, found.counted


def expected(plan: SumPlan, values: np.ndarray, stages: Sequence[int]):
    """The same by counting, where everybody is everybody's neighbour."""
    left = [np.array(stages) > query for query in range(5)]
    if not plan.signed:
        left[3] = left[2]
    needed, least = plan.threshold, plan.least
    live = left[2]
    late = (left[1] & ~live).any()  # their masks are in what is sent
    for there, wanted in zip(left, (least, least, least, 0, 0), strict=True):
        if there.sum() < max(wanted, needed):
            return None
    if left[0].sum() <= needed or left[1].sum() <= needed:
        return None
    for signing in left[3:]:
        helpers = signing.sum() - signing
        if (helpers[live] < needed).any() or (late and signing.sum() < needed):
            return None
    return values[live].sum(axis=0), live


def agree(found, wanted) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return bool((found[0] == wanted[0]).all() and (found[1] == wanted[1]).all())


def all_patterns(parties: int, adversary: str, colluding: float, patterns) -> int:
    """Compares them all; how many give a total."""
    held, roster = simulated.enrolled(parties)
    trust = TrustTerms(parties, 0.6, colluding, SERVERS[adversary])
    terms, values = SumTerms(roster, trust), parts(parties, 2)
    totals = 0
    for stages in patterns:
        plan = planned(QUESTION, roster, 2, trust, 0.0)
        found = outcome(plan, values, held, terms, stages)
        assert agree(found, expected(plan, values, stages)), stages
        totals += found is not None
    return totals


def test_three_parties_must_all_stay_where_one_may_collude_and_else_lose_one_at_any_query():
    # Whoever has revealed its shares may go; two neighbours of each party must do so.
    assert all_patterns(3, "active", 0.1, product([0, 2, 4, NEVER], repeat=3)) == 1
    assert all_patterns(3, "semi_honest", 0.0, product([0, 1, 2, 4, NEVER], repeat=3)) > 5


@pytest.mark.parametrize(("adversary", "queries"), [("active", (2, 3)), ("semi_honest", (0, 1, 4))])
def test_some_of_five_parties_are_silent_from_one_query_on(adversary: str, queries: tuple[int, ...]) -> None:
    patterns = [
        [query if gone >> number & 1 else NEVER for number in range(5)]
        for query in queries
        for gone in (0, 1, 6, 7, 12, 16, 21, 25, 31)
    ]
    assert all_patterns(5, adversary, 0.1, patterns) > 3


@pytest.mark.slow
@pytest.mark.parametrize("parties", [3, 4, 5])
@pytest.mark.parametrize("adversary", ["active", "semi_honest"])
def test_all_patterns_of_absence(parties: int, adversary: str) -> None:
    assert all_patterns(parties, adversary, 0.1, product([0, 1, 2, 3, 4, NEVER], repeat=parties)) > 0


@settings(max_examples=examples(12))
@given(
    seed=st.integers(0, 2**32),
    parties=st.integers(3, 12),
    numbers=st.integers(1, 9),
    adversary=st.sampled_from(["active", "semi_honest"]),
    largest=st.sampled_from([1, 2**20, 2**58]),
)
def test_any_parts_and_absences(seed: int, parties: int, numbers: int, adversary: str, largest: int) -> None:
    random = np.random.default_rng(seed)
    held, terms, plan = begun(parties, SERVERS[adversary], numbers, 0.7)
    values = random.integers(-largest, largest, (parties, numbers), endpoint=True)
    stages = random.choice([NEVER, *range(5)], parties, p=[0.8, *[0.04] * 5])
    if not plan.signed:
        stages[stages == 3] = NEVER
    assert agree(outcome(plan, values, held, terms, stages), expected(plan, values, stages))


def by_kind(kind: str) -> AdditiveMechanism:
    if kind == "discrete_laplace":
        return calibrate_laplace(l1_sensitivity=2.0, dimension=3, epsilon=0.5)
    noise = "pure" if kind == "l2_gamma" else "gaussian"
    return calibrate(noise, sensitivity=2.0, dimension=3, epsilon=0.5, delta=1e-6)


@pytest.mark.parametrize("kind", ["discrete_laplace", "discrete_gaussian", "l2_gamma"])
def test_shares_of_every_noise_add_up_exactly_in_a_ring(kind: str) -> None:
    mechanism, parties = by_kind(kind), 60
    held, terms, plan = begun(parties, "one_semi_honest", 2 * 3, 0.8, absent=0.1)
    assert plan.neighbours < parties - 1
    values = np.random.default_rng(0).normal(size=(parties, 3))

    def noisy(number: int) -> np.ndarray:
        bits = NoiseBits(1, kind, number)
        return mechanism.rounded(values[number]) + shares.draw(mechanism, plan.contributors, bits, draws=2)

    own = simulated.masked_parties(held, terms, lambda number, plan: noisy(number).ravel())
    found = simulated.masked_total(plan, terms, own, {0: [3], 1: [7], 2: [11], 4: [13]})
    assert not found.counted[[3, 7, 11]].any()
    assert found.counted[13]
    plain = sum(noisy(number) for number in np.flatnonzero(found.counted).tolist())
    assert found.values.reshape(2, 3).tolist() == plain.tolist()


def test_beyond_the_planned_absences_nothing_is_released() -> None:
    held, terms, plan = begun(60, "one_semi_honest", 2, 0.8, absent=0.1)
    own = simulated.masked_parties(held, terms, lambda number, plan: np.ones(2, dtype=np.uint64))
    with pytest.raises(QuorumError, match=r"47.*48.*60|neighbours left"):  # who is whose neighbour is drawn
        simulated.masked_total(plan, terms, own, {2: range(13)})
    assert all(party._memory.load(plan.digest).root == b"" for party in own)  # secrets are destroyed
    again = planned(QUESTION, terms.roster, 2, terms.trust, 0.1)
    with pytest.raises(QuorumError):
        simulated.masked_total(again, terms, own, {4: range(45)})


@pytest.mark.parametrize("parties", [3, 100])
def test_two_servers(parties: int) -> None:
    key = X25519PrivateKey.generate()
    held, terms, plan = begun(parties, "two", 4, 0.9, second=keys.public(key))
    values = parts(parties, 4)
    own = simulated.uploading_parties(held, terms, lambda number, plan: values[number])
    silent = range(parties // 20)
    found = simulated.uploaded_total(plan, terms, own, UnmaskingServer(key, terms, ProcessMemory()), silent)
    assert (found.values == values[len(silent) :].sum(axis=0)).all()
    assert found.counted.sum() == parties - len(silent)


@pytest.mark.slow
@pytest.mark.parametrize(("parties", "adversary", "absent"), [(200, "active", 0.1), (1000, "semi_honest", 0.1)])
def test_many_parties_in_a_ring(parties: int, adversary: str, absent: float) -> None:
    held, terms, plan = begun(parties, SERVERS[adversary], 5, 0.85, absent)
    stages = np.random.default_rng(1).permutation([NEVER] * (parties - parties // 10) + [0, 1, 2, 4] * (parties // 40))
    values, live = parts(parties, 5), stages > 2
    found = outcome(plan, values, held, terms, stages)
    assert found is not None
    assert (found[0] == values[live].sum(axis=0)).all()
    assert (found[1] == live).all()


def summation(
    parties: int, quorum: float = 0.6, colluding: float = 0.1, servers: Servers = "one"
) -> simulated.SimulatedSummation:
    return simulated.SimulatedSummation(QUESTION, TrustTerms(parties, quorum, colluding, servers), 4)


@pytest.mark.parametrize("servers", simulated.MOST_MASKED)
def test_a_masked_total_is_the_plain_one_of_who_answered_and_too_few_end_it(servers) -> None:
    values = parts(9, 4)
    answered = np.arange(9) != 3
    found = summation(9, servers=servers)
    assert found.masked
    assert (found.total(values, answered) == values[answered].sum(axis=0)).all()
    found.require(answered)
    with pytest.raises(QuorumError):
        found.total(values, np.arange(9) < 5)


@pytest.mark.parametrize(("parties", "fewest"), [(9, 6), (30, 18)])
def test_one_server_ends_a_sum_that_two_carry_out_where_many_are_absent(parties, fewest) -> None:
    """Of nine with one corrupt five unmask another, of thirty with three seventeen; whether it is masked or not."""
    values = parts(parties, 4)
    one, two = (summation(parties, 0.5, servers=servers) for servers in ("one", "two"))
    some, too_few = np.arange(parties) < fewest, np.arange(parties) < fewest - 1
    for answered in (some, too_few):
        two.require(answered)
        assert (two.total(values, answered) == values[answered].sum(axis=0)).all()
    one.require(some)
    assert (one.total(values, some) == values[some].sum(axis=0)).all()
    with pytest.raises(QuorumError, match=r"servers.*two"):
        one.require(too_few)
    with pytest.raises(QuorumError):
        one.total(values, too_few)


def test_all_kinds_say_how_and_at_what_cost() -> None:
    everybody = np.ones(9, dtype=bool)
    few = summation(9).told(everybody)
    assert "all messages real: each party had 8 neighbours, 5 of whom unmask it, and sent 1," in few
    obeying = summation(9, servers="one_semi_honest").told(everybody)
    assert "one server that follows the protocol" in obeying
    assert "8 neighbours, 2 of whom" in obeying
    two = summation(9, servers="two").told(everybody)
    assert "two servers that do not collude, all messages real: each party sent 128 bytes" in two
    for servers, most in simulated.MOST_MASKED.items():
        assert not summation(most + 1, servers=servers).masked
    answered = np.arange(1000) < 950
    many = summation(1000).told(answered)
    assert many.startswith("shares were added in clear")
    assert "bytes with one server that may do what it likes, 128 bytes with two servers" in many
    assert summation(1000, servers="two").told(answered).endswith("send 128 bytes with two servers that do not collude")


@pytest.mark.parametrize(
    ("parties", "quorum", "colluding", "said"),
    [(2, 1.0, 0.1, r"3.*2"), (9, 0.3, 0.3, None), (9, 0.5, 0.5, None), (10, 0.3, 0.1, "4"), (1000, 0.3, 0.1, "4")],
)
def test_what_no_party_would_agree_to_is_refused_before_anybody_is_asked(parties, quorum, colluding, said) -> None:
    with pytest.raises(InputError, match=said):
        summation(parties, quorum, colluding)


def test_its_name_is_that_of_a_plan() -> None:
    assert Reference(simulated.NAME).load() is simulated.SimulatedSummation


OPERATIONS = {
    "shared": simulated.EXCHANGE, "public": simulated.PUBLIC, "signature": simulated.SIGN, "signed": simulated.VERIFY,
    "derived": simulated.DERIVE, "sealed": simulated.SEAL, "opened": simulated.OPEN, "stream": simulated.STREAM,
}  # fmt: skip


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
    split, recovered = keys.split, keys.recovered

    def splitting(*given):
        found[simulated.SPLIT] += 1
        streams = found[simulated.STREAM]
        shares = split(*given)
        found[simulated.STREAM] = streams  # the stream of the coefficients is a part of a split
        return shares

    def recovering(shares, places):
        found[simulated.RECOVER] += len(places)
        return recovered(shares, places)

    monkeypatch.setattr(keys, "split", splitting)
    monkeypatch.setattr(keys, "recovered", recovering)
    return found


@pytest.mark.parametrize("adversary", ["active", "semi_honest"])
def test_one_server(adversary: str, counted: Counter) -> None:
    parties, gone = 12, 3
    held, terms, plan = begun(parties, SERVERS[adversary], 7, 0.6, absent=0.25)
    own = simulated.masked_parties(held, terms, lambda number, plan: np.zeros(7))
    server = MaskedSum(plan, terms.roster)
    counted.clear()
    stays, up, down = Counter(), 0, 0
    while server.query is not None:
        for number, question in server.questions():
            if server.query >= two_servers.MASKED and number < gone:
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
    counted[simulated.STREAM] -= plan.neighbours < parties - 1  # the ring's
    costs = simulated.sum_costs(plan, gone / (parties - 1))
    live = parties - 1 - gone  # of the neighbours of one who stays
    agreed = {} if adversary == "semi_honest" else {simulated.VERIFY: plan.neighbours + live + plan.threshold}
    assert {name: stays[name] for name in costs.party} == pytest.approx({**costs.party, **agreed})
    assert (up, down) == (costs.up, pytest.approx(costs.down))
    per_party = simulated.sum_costs(plan, gone / parties).server
    pairs = gone * (parties - gone)  # of a party that is gone and one that stays; the formula has k for K - 1
    exact = {simulated.EXCHANGE: pairs, simulated.DERIVE: pairs, simulated.STREAM: parties - gone + pairs}
    for name in counted:
        assert counted[name] == pytest.approx(exact.get(name, parties * per_party.get(name, 0.0)))


def test_two_servers_sum_costs(counted: Counter) -> None:
    key = X25519PrivateKey.generate()
    held, terms, plan = begun(5, "two", 7, 0.8, second=keys.public(key))
    costs = simulated.sum_costs(plan, 0.0)
    own = simulated.uploading_parties(held, terms, lambda number, plan: np.zeros(7))
    counted.clear()
    answers = [party.answer(plan.packed()) for party in own]
    assert {name: 5 * count for name, count in costs.party.items()} == counted
    assert len(answers[0]) == costs.up
    first, second = AddingServer(plan, terms.roster), UnmaskingServer(key, terms, ProcessMemory())
    counted.clear()
    for number, answer in enumerate(answers):
        first.take(number, answer)
    assert counted == {simulated.VERIFY: 5}
    counted.clear()
    shown = b"".join(first.receipts())
    second.take(plan, shown)
    counted[simulated.PUBLIC] -= 1  # its own, to compare it with the plan's
    assert +counted == {name: 5 * count for name, count in costs.second.items()}
    assert len(shown) == 5 * costs.across


def test_seconds_are_products() -> None:
    _, _, plan = begun(3, "one", 7, 1.0)
    assert all(0 < time < 1 for time in simulated.timed(plan).values())
    assert set(simulated.sum_costs(plan, 0.0).party) <= set(simulated.timed(plan))
    assert (
        simulated.seconds(
            {simulated.SIGN: 2, simulated.VERIFY: 3},
            {simulated.SIGN: 0.5, simulated.VERIFY: 1.0, simulated.PUBLIC: 9.0},
        )
        == 4.0
    )
