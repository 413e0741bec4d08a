"""Shares of simulated parties: few go through a masked sum, many are added in clear, and the totals are the same."""

from __future__ import annotations

import numpy as np
import pytest
from support.masked_sums import QUESTION, parts

from federation.contract.errors import InputError, QuorumError
from federation.contract.reference import Reference
from scenarios.simulated.secure_summation import MOST_MASKED, NAME, SimulatedSummation


def summation(parties: int, quorum: float = 0.6, colluding: float = 0.1) -> SimulatedSummation:
    return SimulatedSummation(QUESTION, parties, 4, quorum, colluding)


def test_a_masked_total_is_the_plain_one_of_who_answered() -> None:
    values = parts(9, 4)
    answered = np.arange(9) != 3
    assert summation(9).masked
    assert (summation(9).total(values, answered) == values[answered].sum(axis=0)).all()


@pytest.mark.parametrize("absent", [[], [3], [3, 4, 5]])
def test_where_one_server_cannot_unmask_those_who_are_left_two_do(absent) -> None:
    values, answered = parts(9, 4), ~np.isin(np.arange(9), absent)
    found = summation(9)
    assert (found.total(values, answered) == values[answered].sum(axis=0)).all()
    few = summation(4, quorum=0.5)
    assert (few.total(values[:4], answered[:4]) == values[:4][answered[:4]].sum(axis=0)).all()
    assert ("two servers" in few.told(answered[:4])) == (3 in absent)


def test_too_few_for_any_sum_end_it() -> None:
    with pytest.raises(QuorumError, match="in the masked sum"):
        summation(9).total(parts(9, 4), np.arange(9) < 5)


def test_both_kinds_say_how_and_at_what_cost() -> None:
    assert not summation(MOST_MASKED + 1).masked
    few = summation(9).told(np.ones(9, dtype=bool))
    assert "all messages real: each party had 8 neighbours, 5 of whom unmask it, and sent 1," in few
    answered = np.arange(200) < 190
    many = summation(200).told(answered)
    assert many.startswith("shares were added in clear")
    assert "bytes with one server that may do what it likes, 128 bytes with two servers" in many
    assert "no single server could do it" in summation(200, 0.4, 0.1).told(np.arange(200) < 90)


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
