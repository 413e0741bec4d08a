"""Plans of masked sums: what is in them, and what a party insists on by its own configuration."""

from __future__ import annotations

from dataclasses import replace

import pytest

from federation.contract.errors import InputError
from federation.secure_aggregation.plan import KEY, MOST_NUMBERS, Roster, SumPlan, Terms, planned

ROSTER = Roster(tuple(bytes([number]) * KEY for number in range(20)))
PLAN = planned("00" * 32, ROSTER, 5, quorum=0.8, absent=0.1)


def test_a_plan_counts_the_shares_of_those_who_do_not_collude() -> None:
    assert (PLAN.parties, PLAN.least, PLAN.colluding, PLAN.contributors) == (20, 16, 2, 14)
    assert (PLAN.neighbours, PLAN.threshold) == (19, 11)
    Terms(ROSTER).require(PLAN)


def test_each_plan_has_its_own_digest() -> None:
    assert planned("00" * 32, ROSTER, 5, quorum=0.8, absent=0.1).digest != PLAN.digest
    assert SumPlan.read(PLAN.packed()) == PLAN


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (replace(PLAN, contributors=15), "the noise would be too little"),
        (replace(PLAN, contributors=16), "the noise would be too little"),
        (replace(PLAN, colluding=1), "the noise would be too little"),
        (replace(PLAN, parties=21), "other parties than this party's roster"),
        (replace(PLAN, roster="11" * 32), "other parties than this party's roster"),
        (replace(PLAN, threshold=10), "it must be 11 or more"),
        (replace(PLAN, adversary="semi_honest"), "another kind of server"),
        (replace(PLAN, neighbours=18, threshold=17), "neighbours must be all 19"),
        (replace(PLAN, contributors=4), "at most 4 times as many may"),
        (replace(PLAN, neighbours=0, threshold=0, second="11" * 32), "another kind of server"),
    ],
)
def test_a_party_refuses_what_its_own_configuration_does_not_allow(plan: SumPlan, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Terms(ROSTER).require(plan)


def test_more_noise_and_a_higher_threshold_are_allowed() -> None:
    Terms(ROSTER).require(replace(PLAN, contributors=13, threshold=12))
    Terms(ROSTER).require(replace(PLAN, colluding=3, contributors=13))
    Terms(ROSTER).require(replace(PLAN, contributors=5))  # a quarter of the parties


@pytest.mark.parametrize(
    "changed",
    [
        {"threshold": 1},
        {"threshold": 19},
        {"contributors": 1},
        {"least": 20},
        {"colluding": 0},
        {"numbers": 1},
        {"numbers": MOST_NUMBERS},
    ],
)
def test_plans_at_the_ends_of_what_can_be(changed) -> None:
    plan = replace(PLAN, **changed)
    assert SumPlan.read(plan.packed()) == plan


def test_with_a_second_server_nobody_has_neighbours_and_absences_are_not_planned_for() -> None:
    plan = planned("00" * 32, ROSTER, 5, quorum=0.95, absent=0.1, second=b"2" * KEY)
    assert (plan.neighbours, plan.threshold, plan.contributors, plan.second) == (0, 0, 17, "32" * KEY)
    Terms(ROSTER, second=b"2" * KEY).require(plan)


def test_a_party_may_take_more_of_them_to_collude() -> None:
    with pytest.raises(InputError, match="4 of them may collude"):
        Terms(ROSTER, colluding=0.2).require(PLAN)


@pytest.mark.parametrize(
    "changed",
    [
        {"contributors": 0},
        {"contributors": 17},
        {"threshold": 0},
        {"threshold": 20},
        {"neighbours": 20},
        {"numbers": 0},
        {"numbers": MOST_NUMBERS + 1},
        {"colluding": -1},
        {"least": 21},
        {"second": "11" * 32},
        {"nonce": "11"},
        {"question": "zz"},
        {"roster": ""},
    ],
)
def test_impossible_plans_are_refused(changed) -> None:
    with pytest.raises(InputError):
        replace(PLAN, **changed)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b"\xff", PLAN.packed().replace(b'"parties": 20', b'"parties": "20"')]
)
def test_what_is_no_plan_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        SumPlan.read(data)


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(InputError, match="unknown fields"):
        SumPlan.read(PLAN.packed().replace(b"{", b'{"more": 1, ', 1))


def test_keys_of_another_size_are_refused() -> None:
    with pytest.raises(InputError, match="32 bytes"):
        Roster((b"short",))


def test_a_quorum_that_planned_absences_break_is_refused() -> None:
    with pytest.raises(InputError, match=r"a quorum of 0.95 of 20 parties is not there when 2 stay away"):
        planned("00" * 32, ROSTER, 5, quorum=0.95, absent=0.1)


def test_two_parties_of_whom_one_may_collude_share_no_noise() -> None:
    two = Roster(ROSTER.keys[:2])
    with pytest.raises(InputError, match="needs 3 parties or more, got 2"):
        planned("00" * 32, two, 5, quorum=1.0, absent=0.0)
