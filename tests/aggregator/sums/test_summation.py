"""What a plan names to add shares with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from aggregator.collectors.collectors import summation_of
from federation.contract.errors import InputError
from federation.contract.query import ReleaseId

PLAN = SimpleNamespace(summation="", parties=9, quorum=0.6, colluding=0.1, servers="two")
QUESTION = SimpleNamespace(release=ReleaseId("a release"))


@dataclass(frozen=True)
class Named:
    """Takes what a summation is told."""

    question: str
    parties: int
    numbers: int
    quorum: float
    colluding: float
    servers: str


def test_no_name_is_no_summation() -> None:
    assert summation_of(PLAN, QUESTION, 5) is None


def test_a_named_one_is_told_the_public_numbers() -> None:
    plan = SimpleNamespace(**{**vars(PLAN), "summation": f"{__name__}:Named"})
    found = summation_of(plan, QUESTION, 5)
    assert replace(found, question="") == Named("", 9, 5, 0.6, 0.1, "two")
    assert len(bytes.fromhex(found.question)) == 32
    other = summation_of(plan, SimpleNamespace(release=ReleaseId("another")), 5)
    assert other.question != found.question


def test_a_name_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="cannot load 'nowhere:nothing'"):
        summation_of(SimpleNamespace(**{**vars(PLAN), "summation": "nowhere:nothing"}), QUESTION, 5)
