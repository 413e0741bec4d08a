"""Plans of masked sums: what is in them, and what a party insists on by its own configuration.

Who is whose neighbour.

Who may add up a sum: each kind has words for people and an adversary for parties.

Neighbours and thresholds: as counted with whole numbers, and as tables of them were computed elsewhere.
"""

import math
from dataclasses import replace
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.trust import TrustTerms
from federation.secure_aggregation import plan as module
from federation.secure_aggregation.plan import (
    ADVERSARY,
    KEY,
    MOST_NUMBERS,
    SAID,
    Roster,
    Servers,
    SumPlan,
    SumTerms,
    complete_threshold,
    least_threshold,
    neighbourhood,
    neighbours,
    planned,
)

ROSTER = Roster(tuple(bytes([number]) * KEY for number in range(20)))
TERMS = SumTerms(ROSTER, TrustTerms(len(ROSTER)))


def plan_of(roster: Roster, absent: float, quorum: float = 0.8, second: bytes = b"", **terms) -> SumPlan:
    return planned("00" * 32, roster, 5, TrustTerms(len(roster), quorum, **terms), absent, second)


PLAN = plan_of(ROSTER, 0.1)


def test_a_plan_counts_the_shares_of_those_who_do_not_collude_and_has_its_own_digest() -> None:
    assert (PLAN.parties, PLAN.least, PLAN.colluding, PLAN.contributors) == (20, 16, 2, 14)
    assert (PLAN.neighbours, PLAN.threshold) == (19, 11)
    assert plan_of(ROSTER, 0.1).digest != PLAN.digest


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"contributors": 13, "threshold": 12},  # more noise and a higher threshold
        {"colluding": 3, "contributors": 13},
        {"contributors": 5},  # a quarter of the parties
    ],
)
def test_a_party_allows_what_is_stricter_than_its_own_configuration(changed: dict) -> None:
    TERMS.require(replace(PLAN, **changed))


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (replace(PLAN, contributors=15), None),
        (replace(PLAN, contributors=16), None),
        (replace(PLAN, colluding=1), None),
        (replace(PLAN, parties=21), None),
        (replace(PLAN, roster="11" * 32), None),
        (replace(PLAN, threshold=10), "11"),
        (replace(PLAN, adversary="semi_honest"), None),
        (replace(PLAN, neighbours=18, threshold=17), r"neighbours.*19"),
        (replace(PLAN, contributors=4), "4"),
        (replace(PLAN, neighbours=0, threshold=0, second="11" * 32), None),
    ],
)
def test_a_party_refuses_what_its_own_configuration_does_not_allow(plan: SumPlan, said: str | None) -> None:
    refused(said, TERMS.require, plan)
    with pytest.raises(InputError, match="4"):  # a party may take more of them to collude
        SumTerms(ROSTER, TrustTerms(len(ROSTER), colluding=0.2)).require(PLAN)


@pytest.mark.parametrize(
    ("name", "allowed", "impossible"),
    [
        ("threshold", (1, 19), (0, 20)),
        ("contributors", (1,), (0, 17)),
        ("least", (20,), (21,)),
        ("colluding", (0,), (-1,)),
        ("numbers", (1, MOST_NUMBERS), (0, MOST_NUMBERS + 1)),
        ("neighbours", (19,), (20,)),
        ("second", ("",), ("11" * 32,)),
        ("nonce", ("11" * 16,), ("11",)),
        ("question", ("00" * 32,), ("zz",)),
        ("roster", ("11" * 32,), ("",)),
    ],
)
def test_plans_reach_to_the_ends_of_what_can_be_and_no_further(name, allowed, impossible) -> None:
    for value in allowed:
        plan = replace(PLAN, **{name: value})
        assert SumPlan.read(plan.packed()) == plan
    for value in impossible:
        refused(None, replace, PLAN, **{name: value})


def test_with_a_second_server_nobody_has_neighbours_and_absences_are_not_planned_for() -> None:
    plan = plan_of(ROSTER, 0.1, 0.95, b"2" * KEY, servers="two")
    assert (plan.neighbours, plan.threshold, plan.contributors, plan.second) == (0, 0, 17, "32" * KEY)
    SumTerms(ROSTER, TrustTerms(len(ROSTER), servers="two"), b"2" * KEY).require(plan)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{}", b"[1]", b"\xff", PLAN.packed().replace(b'"parties": 20', b'"parties": "20"')),
        PLAN.packed().replace(b"{", b'{"more": 1, ', 1),
    ],
)
def test_what_is_no_plan_is_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        SumPlan.read(data)


MANY = Roster(tuple(number.to_bytes(KEY, "little") for number in range(80)))
RING, COMPLETE = plan_of(MANY, 0.05, servers="one_semi_honest"), plan_of(Roster(MANY.keys[:7]), 0.0)


@pytest.mark.parametrize("plan", [RING, COMPLETE])
def test_neighbours_are_mutual_and_at_mirrored_positions(plan) -> None:
    around = neighbours(plan, np.arange(plan.parties))
    assert around.shape == (plan.parties, plan.neighbours)
    for party, near in enumerate(around.tolist()):
        assert party not in near
        assert len(set(near)) == plan.neighbours
        assert near == neighbours(plan, party).tolist()
        for position, other in enumerate(near):
            assert around[other, plan.neighbours - 1 - position] == party


def test_they_are_those_who_stand_beside_a_party_in_a_ring_of_the_plan() -> None:
    assert RING.neighbours < 79
    around = {party: set(near) for party, near in enumerate(neighbours(RING, np.arange(80)).tolist())}
    shared = [len(around[0] & around[other]) for other in range(1, 80)]
    assert sorted(shared)[-2:] == [RING.neighbours - 2] * 2  # of the next on either side all but the two ends
    assert neighbours(replace(RING, nonce="11" * 16), 0).tolist() != neighbours(RING, 0).tolist()


def test_each_kind_is_named_and_one_only_is_believed() -> None:
    assert {*ADVERSARY} == {*SAID} == {*get_args(Servers)}
    assert [name for name, adversary in ADVERSARY.items() if adversary == "semi_honest"] == ["one_semi_honest"]


# Parties, corrupt share, absent share: neighbours/threshold for 40 bits, from a search with other code.
SEMI_HONEST = {
    (10, 0.2, 0.1): "9/3",
    (50, 0.1, 0.1): "49/6",
    (200, 0.05, 0.05): "22/11",
    (200, 0.33, 0.3): "120/64",
    (1000, 0.1, 0.1): "52/28",
    (10**4, 0.2, 0.3): "204/93",
    (10**6, 0.1, 0.1): "70/37",
}
ACTIVE = {
    (10, 0.33, 0.1): "9/7",
    (50, 0.2, 0.3): "49/30",
    (200, 0.05, 0.05): "54/44",
    (200, 0.1, 0.1): "104/84",
    (200, 0.2, 0.3): "199/120",
    (1000, 0.1, 0.1): "352/284",
    (1000, 0.2, 0.1): "614/523",
    (10**6, 0.05, 0.05): "248/201",
}


@pytest.mark.parametrize(
    ("adversary", "case", "wanted"),
    [
        *(("semi_honest", case, wanted) for case, wanted in SEMI_HONEST.items()),
        *(("active", case, wanted) for case, wanted in ACTIVE.items()),
    ],
)
def test_tables(adversary: str, case: tuple[int, float, float], wanted: str) -> None:
    parties, corrupt, absent = case
    one = neighbourhood(parties, math.ceil(corrupt * parties), math.ceil(absent * parties), adversary, 40)
    assert f"{one.neighbours}/{one.threshold}" == wanted


def exact_tail(others: int, marked: int, drawn: int, above: int) -> Fraction:
    """P[more than `above` marked], in whole numbers."""
    ways = sum(math.comb(marked, i) * math.comb(others - marked, drawn - i) for i in range(above + 1, drawn + 1))
    return Fraction(ways, math.comb(others, drawn))


def does(parties: int, corrupt: int, absent: int, neighbours: int, adversary: str, bits: int) -> tuple | None:
    """The threshold and the three failure probabilities, exactly, if so many neighbours do."""
    least = Fraction(1, 2**bits)
    chances = (parties * exact_tail(parties - 1, corrupt, neighbours, c) for c in range(neighbours + 1))
    most, failed = next((c, chance) for c, chance in enumerate(chances) if chance <= least)
    threshold = most + 1 if adversary == "semi_honest" else (2 * neighbours + 2 * most + 2) // 3 + 1
    if threshold > neighbours:
        return None
    gone = parties * exact_tail(parties - 1, absent, neighbours, neighbours - threshold)
    cut = Fraction(parties**2, 2)
    for place in range(neighbours):
        cut *= Fraction(max(0, corrupt + absent - place), parties - place)
    if gone > Fraction(1, 2**30) or (adversary == "semi_honest" and cut > least):
        return None
    return threshold, failed, gone, cut


@pytest.mark.parametrize(
    ("parties", "corrupt", "absent", "adversary", "bits"),
    [
        (100, 5, 5, "semi_honest", 40),
        (200, 20, 10, "active", 40),
        (200, 10, 10, "active", 80),
        (151, 8, 3, "active", 40),
    ],
)
def test_the_least_number_of_neighbours_by_whole_numbers(parties, corrupt, absent, adversary, bits) -> None:
    one = neighbourhood(parties, corrupt, absent, adversary, bits)
    exact = does(parties, corrupt, absent, one.neighbours, adversary, bits)
    assert exact is not None
    assert exact[0] == one.threshold
    for log, chance in zip((one.log_corrupt, one.log_absent), exact[1:3], strict=True):
        assert 2.0**log == pytest.approx(float(chance), rel=1e-9)
    if adversary == "semi_honest":
        assert 2.0**one.log_cut == pytest.approx(float(exact[3]), rel=1e-9)
    fewer = range(max(2, one.neighbours - 12), one.neighbours, 2)
    assert not any(does(parties, corrupt, absent, neighbours, adversary, bits) for neighbours in fewer)


def test_few_parties_are_all_neighbours() -> None:
    for parties in range(3, 51):
        corrupt = math.ceil(0.1 * parties)
        one = neighbourhood(parties, corrupt, 0, "active")
        assert one.neighbours == parties - 1
        # Two lists that `threshold` of all parties sign each share an honest signer; one less and they need not.
        assert 2 * one.threshold >= parties + corrupt
        assert 2 * (one.threshold - 1) < parties + corrupt
    survived = {
        parties: parties - 1 - complete_threshold(parties, 1, "active") for parties in (3, 4, 5, 6, 7, 8, 10, 15, 20)
    }
    assert survived == {3: 0, 4: 0, 5: 1, 6: 1, 7: 2, 8: 2, 10: 3, 15: 6, 20: 8}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: neighbourhood(2, 1, 0, "active"), r"3.*2"),
        (lambda: neighbourhood(3, 1, 1, "active"), r"3.*1"),
        (lambda: neighbourhood(10, 6, 5, "active"), None),
        (lambda: neighbourhood(2000, 800, 600, "active"), "servers: two"),
        (lambda: neighbourhood(10, 6, 4, "active"), None),
        (lambda: neighbourhood(10, -1, 4, "active"), "-1"),
        (lambda: neighbourhood(10, 4, -1, "active"), "-1"),
        (lambda: least_threshold(100, 100, 20, "active"), None),
        (lambda: least_threshold(50, 5, 40, "active"), "50"),
        (lambda: least_threshold(100, 10, 51, "active"), "51"),
        (lambda: least_threshold(100, 10, 4, "active"), "4"),
        (lambda: Roster((b"short",)), "32"),
        (lambda: plan_of(ROSTER, 0.1, 0.95), r"quorum.*0\.95.*20.*2"),  # which planned absences break
        (lambda: plan_of(Roster(ROSTER.keys[:2]), 0.0, 1.0), r"3.*2"),  # of whom one may collude
    ],
)
def test_what_cannot_be_is_refused(call, said: str | None) -> None:
    with pytest.raises(InputError, match=said):
        call()


@pytest.mark.parametrize(
    ("parties", "absent", "adversary", "wanted"),
    [(100, 0, "active", (4, 4)), (100, 0, "semi_honest", (2, 1)), (10, 2, "active", (9, 5))],
)
def test_where_nobody_is_corrupt_the_fewest_neighbours_do(parties, absent, adversary, wanted) -> None:
    one = neighbourhood(parties, 0, absent, adversary)
    assert (one.neighbours, one.threshold) == wanted
    assert least_threshold(parties, 0, one.neighbours, adversary) == one.threshold  # the bound of a party
    one = neighbourhood(1000, 50, 50, "active")
    assert least_threshold(1000, 50, one.neighbours, "active") == one.threshold
    assert least_threshold(1000, 100, one.neighbours, "active") > one.threshold


def test_bad_places_as_many_as_neighbours_may_cut_the_ring_and_fewer_cannot() -> None:
    exact = Fraction(100**2, 2) * Fraction(math.factorial(6), math.perm(100, 6))
    assert 2.0 ** module._log_cut(100, 6, 6) == pytest.approx(float(exact), rel=1e-9)
    assert module._log_cut(100, 5, 6) == -math.inf


def test_who_finds_no_ring_takes_all_others_up_to_a_limit(monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_NEIGHBOURS", 99)
    assert neighbourhood(100, 20, 29, "active").neighbours == 99
    with pytest.raises(InputError):
        neighbourhood(101, 20, 29, "active")


def test_in_random_rings_hardly_any_party_has_more_corrupt_neighbours() -> None:
    random, parties, corrupt = np.random.default_rng(0), 400, 40
    one = neighbourhood(parties, corrupt, 20, "active", bits=10)  # a chance that can be seen
    away = np.r_[-one.neighbours // 2 : 0, 1 : one.neighbours // 2 + 1]
    worse = 0
    for _ in range(300):
        bad = np.zeros(parties, dtype=bool)
        bad[random.permutation(parties)[:corrupt]] = True
        worse += (bad[(np.arange(parties)[:, None] + away) % parties].sum(axis=1) > one.corrupt)[~bad].any()
    assert worse <= 4
