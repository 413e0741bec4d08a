"""Shares of simulated parties: few go through a masked sum, many are added in clear, and the totals are the same."""

from __future__ import annotations

import numpy as np
import pytest
from support.masked_sums import QUESTION, parts

from federation.contract.errors import InputError, QuorumError
from federation.contract.plugins import Reference
from federation.secure_aggregation.plan import Servers
from scenarios.simulated.secure_aggregation import MOST_MASKED, NAME, SimulatedSummation


def summation(
    parties: int, quorum: float = 0.6, colluding: float = 0.1, servers: Servers = "one"
) -> SimulatedSummation:
    return SimulatedSummation(QUESTION, parties, 4, quorum, colluding, servers)


@pytest.mark.parametrize("servers", MOST_MASKED)
def test_a_masked_total_is_the_plain_one_of_who_answered(servers) -> None:
    values = parts(9, 4)
    answered = np.arange(9) != 3
    found = summation(9, servers=servers)
    assert found.masked
    assert (found.total(values, answered) == values[answered].sum(axis=0)).all()
    found.require(answered)


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
    with pytest.raises(QuorumError, match=r"servers: two.*nothing is released"):
        one.require(too_few)
    with pytest.raises(QuorumError):
        one.total(values, too_few)


@pytest.mark.parametrize("servers", MOST_MASKED)
def test_too_few_for_any_sum_end_it(servers) -> None:
    with pytest.raises(QuorumError, match="in the masked sum"):
        summation(9, servers=servers).total(parts(9, 4), np.arange(9) < 5)


def test_all_kinds_say_how_and_at_what_cost() -> None:
    everybody = np.ones(9, dtype=bool)
    few = summation(9).told(everybody)
    assert "all messages real: each party had 8 neighbours, 5 of whom unmask it, and sent 1," in few
    obeying = summation(9, servers="one_semi_honest").told(everybody)
    assert "one server that follows the protocol" in obeying
    assert "8 neighbours, 2 of whom" in obeying
    two = summation(9, servers="two").told(everybody)
    assert "two servers that do not collude, all messages real: each party sent 128 bytes" in two
    for servers, most in MOST_MASKED.items():
        assert not summation(most + 1, servers=servers).masked
    answered = np.arange(1000) < 950
    many = summation(1000).told(answered)
    assert many.startswith("shares were added in clear")
    assert "bytes with one server that may do what it likes, 128 bytes with two servers" in many
    assert summation(1000, servers="two").told(answered).endswith("send 128 bytes with two servers that do not collude")


@pytest.mark.parametrize(
    ("parties", "quorum", "colluding", "said"),
    [
        (2, 1.0, 0.1, "needs 3 parties or more, got 2"),
        (9, 0.3, 0.3, "may collude"),
        (9, 0.5, 0.5, "may collude"),
        (10, 0.3, 0.1, "at most 4 times as many may"),
        (1000, 0.3, 0.1, "at most 4 times as many may"),
    ],
)
def test_what_no_party_would_agree_to_is_refused_before_anybody_is_asked(parties, quorum, colluding, said) -> None:
    with pytest.raises(InputError, match=said):
        summation(parties, quorum, colluding)


def test_its_name_is_that_of_a_plan() -> None:
    assert Reference(NAME).load() is SimulatedSummation
